public import Foundation

/// A USB webcam of the rig (`UVCCameraTool`) with the kernel's own uvcvideo as its driver; unplugged with the value.
public final class UVCCamera {
  /// What the camera says of itself.
  public struct State: Decodable, Sendable {
    /// Whether it hangs on the bus.
    public let plugged: Bool
    /// Whether the host wants pictures.
    public let streaming: Bool
    /// Such as `MJPG 1280x720`; nil where nothing is streamed.
    public let format: String?
    /// How many pictures it has seen since it was plugged in, sent or not, at its pace.
    public let number: Int
    /// How many pictures it has sent whole.
    public let frames: Int
    /// How many it could not send, because the host took none.
    public let late: Int
    /// How many JPEGs it damaged, and how many pictures it cut in half.
    public let corrupted: Int
    /// See ``corrupted``.
    public let shortened: Int
    /// Values as they are in the camera.
    public let controls: [String: Int]
  }

  /// Its serial number, by which a camera is known wherever it is plugged in.
  public let serial = "NJ\(UInt32.random(in: 0...UInt32.max))"
  private let socket: String
  private let tool: Subprocess
  private let directory: TemporaryDirectory

  /// Plugs a camera in, and waits until the kernel has made its node.
  ///
  /// - Parameter sizes: Of the JPEGs that it offers.
  public init(jpegs sizes: [String] = ["1280x720"], in directory: TemporaryDirectory) throws {
    self.directory = directory
    socket = directory.path("camera-\(serial).sock")
    let path = URL(fileURLWithPath: nightjarPath).deletingLastPathComponent().appendingPathComponent("UVCCameraTool")
    var arguments = [path.path, socket, "--serial", serial]
    for size in sizes { arguments += ["--mjpeg", try NumberedPictures.clip(of: size, in: directory)] }
    tool = try Subprocess(arguments, in: directory)
    guard eventually({ tool.outputSoFar.contains("ready") && node != nil }) else { throw Failed(text: tool.errorSoFar) }
  }

  deinit {
    tool.send(SIGKILL)
    _ = try? tool.wait(limit: 10)
  }

  /// The node that delivers its pictures; nil while there is none.
  public var node: String? {
    let root = "/sys/class/video4linux"
    for entry in (try? FileManager.default.contentsOfDirectory(atPath: root).sorted()) ?? [] {
      func attribute(_ name: String) -> String? {
        let text = try? String(contentsOfFile: "\(root)/\(entry)/\(name)", encoding: .utf8)
        return text?.trimmingCharacters(in: .whitespacesAndNewlines)
      }
      // The second node, of index 1, is for metadata.
      guard attribute("device/../serial") == serial, attribute("index") == "0" else { continue }
      if FileManager.default.fileExists(atPath: "/dev/\(entry)") { return "/dev/\(entry)" }
    }
    return nil
  }

  /// Gives it a command, such as `corrupt 3` (see `UVCCameraTool`).
  public func command(_ line: String) throws {
    let answer = try ask(line)
    guard answer == "ok" else { throw Failed(text: answer) }
  }

  /// Its state.
  public func state() throws -> State {
    try JSONDecoder().decode(State.self, from: Data(ask("state").utf8))
  }

  private func ask(_ line: String) throws -> String {
    let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(socket.utf8).prefix($0.count - 1)) }
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    let request = Array((line + "\n").utf8)
    guard result == 0, write(descriptor, request, request.count) == request.count else {
      throw Failed(text: "no camera listens at \(socket): \(tool.errorSoFar)")
    }
    var answer: [UInt8] = []
    while answer.last != 0x0a {
      var bytes = [UInt8](repeating: 0, count: 4096)
      let count = read(descriptor, &bytes, bytes.count)
      guard count > 0 else { throw Failed(text: "the camera does not answer to \(line)") }
      answer += bytes[0..<count]
    }
    return String(decoding: answer.dropLast(), as: UTF8.self)
  }

  /// What went wrong.
  public struct Failed: Error, CustomStringConvertible {
    let text: String
    /// The same.
    public var description: String { text }
  }
}

/// Pictures that carry their number: sixteen blocks across the upper eighteenth are its bits, black or white, the
/// lowest one at the left.
public enum NumberedPictures {
  /// How many JPEGs there are of a size, 0 … 63, before they begin again.
  public static let clipLength = 64

  /// The path of such JPEGs, made by ffmpeg.
  static func clip(of size: String, in directory: TemporaryDirectory) throws -> String {
    let path = directory.path("\(size).mjpeg")
    if FileManager.default.fileExists(atPath: path) { return path }
    // The blocks are drawn small, one pixel each.
    let bits = "color=black:s=16x18:r=30,format=gray,geq=lum='if(mod(floor(N/pow(2\\,X))\\,2)\\,235\\,16)'"
    let enlarged = "scale=\(size.replacing("x", with: ":")):flags=neighbor,crop=iw:ih/18:0:0"
    let result = try Subprocess.run(
      [
        "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", bits, "-f", "lavfi", "-i", "testsrc2=s=\(size):r=30",
        "-filter_complex", "[0]\(enlarged)[n];[1][n]overlay=0:0:format=yuv420,format=yuvj420p", "-frames:v",
        "\(clipLength)", "-c:v", "mjpeg", "-q:v", "4", "-f", "mjpeg", path,
      ], in: directory)
    guard result.status == 0 else { throw UVCCamera.Failed(text: result.error) }
    return path
  }

  /// The numbers of the I420 pictures in the file at `url`.
  public static func read(_ url: URL, width: Int, height: Int) throws -> [Int] {
    let file = try FileHandle(forReadingFrom: url)
    defer { try? file.close() }
    let pictureBytes = width * height * 3 / 2
    let count = Int(try file.seekToEnd()) / pictureBytes
    let middle = height / 36
    return try (0..<count).map { picture in
      try file.seek(toOffset: UInt64(picture * pictureBytes + middle * width))
      let row = [UInt8](try file.read(upToCount: width) ?? Data())
      guard row.count == width else { throw CocoaError(.fileReadCorruptFile) }
      return (0..<16).reduce(0) { $0 | (row[($1 * 2 + 1) * width / 32] > 128 ? 1 : 0) << $1 }
    }
  }
}
