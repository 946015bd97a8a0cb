import Glibc

/// A USB webcam for the rig's kernel: `UVCCameraTool SOCKET [--mjpeg FILE]… [--yuyv WxH:FILE]…
/// [--h264 WxH:FILE]… [--serial TEXT] [--product TEXT] [--port 0…7] [--microphone HZ] [--log FILE] [--slow PPM]`, as
/// root. The kernel's own uvcvideo drives it, over USB/IP.
///
/// It offers YUYV at 640x480 and 1280x720, and MJPEG at the size of each file of concatenated JPEGs, all at 30 and
/// 15 fps. It offers H.264 too, at the size of each file of access units: it begins with the first one, and goes on with a
/// later key frame when it is asked for one. The YUYV pictures of a size are those of a file, if one is given. The log is
/// that of ``HandoverLog``. With `--slow` its clock is slow, by millionths: else its pictures keep step with the kernel's timer, which is on the same
/// clock. With `--microphone` it has a microphone, which hears a tone of so many Hz; the kernel's snd-usb-audio drives it.
///
/// "ready" on standard output says that it is plugged in. Commands come as lines to SOCKET (or from
/// `UVCCameraTool ctl SOCKET WORD…`) and are answered with a line, "ok", JSON, or "error: …":
///
/// - `state`: format, pictures and packets of sound sent, faults, and every control's value, as JSON
/// - `unplug`, `plug`: true ones, of picture and sound; the camera forgets its controls' values
/// - `stall`: no picture comes any more
/// - `freeze`: the same picture comes, bit for bit
/// - `rate-drop`: it is dark, and the rate is halved unless exposure_dynamic_framerate is off or exposure is manual
/// - `corrupt N [truncated|header|bits]`: the next N JPEGs are damaged, each kind in turn unless one is named
/// - `short N`: the next N pictures are cut in half
/// - `resume`: all is well again
@main
struct UVCCameraTool {
  static func main() {
    let arguments = Array(CommandLine.arguments.dropFirst())
    signal(SIGPIPE, SIG_IGN)
    do throws(CameraToolError) {
      if arguments.first == "ctl", arguments.count > 2 {
        let answer = try CommandSocket.ask(arguments[2...].joined(separator: " "), at: arguments[1])
        say(answer, to: STDOUT_FILENO)
        exit(answer.hasPrefix("error") ? 1 : 0)
      }
      try serve(arguments)
    } catch {
      say("UVCCameraTool: \(error)", to: STDERR_FILENO)
      exit(64)
    }
  }

  private static func serve(_ arguments: [String]) throws(CameraToolError) -> Never {
    guard let socket = arguments.first, !socket.hasPrefix("-"), !arguments.count.isMultiple(of: 2) else {
      throw .usage
    }
    var identity = CameraIdentity()
    var clips: [JPEGClip] = []
    var raws: [RawClip] = []
    var coded: [H264Clip] = []
    var log: HandoverLog?
    var slowness = 0
    var port = 0
    var tone: Int?
    for index in stride(from: 1, to: arguments.count, by: 2) {
      let value = arguments[index + 1]
      switch arguments[index] {
      case "--mjpeg": clips.append(try JPEGClip(path: value))
      case "--yuyv": raws.append(try RawClip(value))
      case "--h264": coded.append(try H264Clip(value))
      case "--log": log = try HandoverLog(path: value)
      case "--serial": identity.serial = value
      case "--product": identity.product = value
      case "--slow":
        guard let number = Int(value), (0...100_000).contains(number) else { throw .usage }
        slowness = number
      case "--microphone":
        guard let number = Int(value), (100...20_000).contains(number) else { throw .usage }
        tone = number
      case "--port":
        guard let number = Int(value), (0...7).contains(number) else { throw .usage }
        port = number
      default: throw .usage
      }
    }
    // A real camera does not wait for a program that computes; without the right to it, it is only less exact.
    var parameters = sched_param(sched_priority: 50)
    if sched_setscheduler(0, SCHED_FIFO, &parameters) != 0 {
      say("UVCCameraTool: no real-time priority, pictures may come late", to: STDERR_FILENO)
    }
    let camera = Camera(
      identity: identity, source: PictureSource(clips: clips, raws: raws, coded: coded), tone: tone, log: log,
      slowness: slowness, port: port, commands: try CommandSocket(path: socket))
    try camera.plug()
    say("ready", to: STDOUT_FILENO)
    camera.run()
  }

  private static func say(_ line: String, to descriptor: CInt) {
    let bytes = Array((line + "\n").utf8)
    _ = write(descriptor, bytes, bytes.count)
  }
}
