import CLinux
import Foundation
import TestSupport

/// A USB webcam of the rig (`UVCCameraTool`) with the kernel's own uvcvideo as its driver; unplugged with the value.
final class UVCCamera {
  /// The state of the camera, by its own account.
  struct State: Decodable, Sendable {
    /// `true` if it hangs on the bus.
    let plugged: Bool
    /// `true` if the host wants pictures.
    let streaming: Bool
    /// Such as `MJPG 1280x720`; nil where nothing is streamed.
    let format: String?
    /// The number of pictures that it has seen since it was plugged in, sent or not, at its pace.
    let number: Int
    /// The number of pictures that it has sent whole.
    let frames: Int
    /// The number of pictures that it could not send, because the host took none.
    let late: Int
    /// The number of times that the host asked its H.264 for a key frame.
    let keyFrameRequests: Int
    /// The bitrate that the host set for its H.264; 0 before.
    let bitrate: Int
    /// The kind of key frame that the host asked for last: 1 for an IDR picture, 2 for one with new parameter sets.
    let lastPictureType: Int
    /// The number of JPEGs that it damaged, and the number of pictures that it cut in half.
    let corrupted: Int
    /// See ``corrupted``.
    let shortened: Int
    /// The state of its microphone; nil for a camera without one.
    let sound: Sound?
    /// Values as they are in the camera.
    let controls: [String: Int]

    private enum CodingKeys: String, CodingKey {
      case plugged, streaming, format, number, frames, late, corrupted, shortened, sound, controls, bitrate
      case keyFrameRequests = "key_frame_requests"
      case lastPictureType = "last_picture_type"
    }
  }

  /// The state of its microphone, by its own account.
  struct Sound: Decodable, Sendable {
    /// `true` if the host wants sound.
    let listening: Bool
    /// The number of packets of a millisecond that it has sent.
    let packets: Int
    /// The number of packets that it could not send, because the host took none.
    let lost: Int
  }

  /// Its serial number, by which a camera is known wherever it is plugged in.
  let serial: String
  private let socket: String
  private let tool: Subprocess
  private let directory: TemporaryDirectory

  /// Plugs a camera in, and waits until the kernel has made its node.
  ///
  /// - Parameters:
  ///   - sizes: Of the JPEGs that it offers.
  ///   - clips: Files of other JPEGs that it offers.
  ///   - h264: Files of H.264 that it offers, as in `640x480:FILE`.
  ///   - tone: The tone that its microphone hears, in Hz; nil for a camera without one.
  ///   - port: Of the bus, from 0 to 7.
  init(
    jpegs sizes: [String] = ["1280x720"], clips: [String] = [], h264: [String] = [], tone: Int? = nil, port: Int = 0,
    serial: String = newSerial(), in directory: TemporaryDirectory
  ) throws {
    (self.directory, self.serial) = (directory, serial)
    socket = directory.path("camera-\(serial)-\(port).sock")
    var arguments = [builtPath("UVCCameraTool"), socket, "--serial", serial, "--port", "\(port)"]
    for size in sizes { arguments += ["--mjpeg", try NumberedPictures.clip(of: size, in: directory)] }
    for clip in clips { arguments += ["--mjpeg", clip] }
    for clip in h264 { arguments += ["--h264", clip] }
    if let tone { arguments += ["--microphone", "\(tone)"] }
    tool = try Subprocess(arguments, in: directory)
    guard eventually({ tool.outputSoFar.contains("ready") }) else {
      throw Failed(text: "the camera could not be plugged in: \(tool.errorSoFar)")
    }
    guard eventually({ node != nil }) else {
      let kernel = try Subprocess.run(["dmesg"], in: directory).outputText.split(separator: "\n").suffix(20)
      throw Failed(text: "the kernel made no node of the camera:\n\(kernel.joined(separator: "\n"))")
    }
  }

  /// A number that no other camera has.
  static func newSerial() -> String { "NJ\(UInt32.random(in: 0...UInt32.max))" }

  deinit {
    tool.send(SIGCONT)
    tool.send(SIGKILL)
    _ = try? tool.wait(limit: 10)
  }

  /// The node that delivers its pictures; nil while there is none.
  var node: String? {
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

  /// The name of its microphone by the kernel's own files, as `--audio` takes it; nil while there is none.
  var microphone: String? {
    let root = "/sys/class/sound"
    for entry in (try? FileManager.default.contentsOfDirectory(atPath: root).sorted()) ?? [] {
      func attribute(_ name: String) -> String? {
        let text = try? String(contentsOfFile: "\(root)/\(entry)/\(name)", encoding: .utf8)
        return text?.trimmingCharacters(in: .whitespacesAndNewlines)
      }
      // The folder of the card, not those of its devices.
      guard entry.hasPrefix("card"), attribute("device/../serial") == serial else { continue }
      if let id = attribute("id") { return "hw:CARD=\(id),DEV=0" }
    }
    return nil
  }

  /// Lets the camera stop to answer, though it stays on the bus, until ``answer()``.
  func hang() { tool.send(SIGSTOP) }

  /// Lets the camera answer again.
  func answer() { tool.send(SIGCONT) }

  /// Gives it a command, such as `corrupt 3` (see `UVCCameraTool`).
  func command(_ line: String) throws {
    let answer = try ask(line)
    guard answer == "ok" else { throw Failed(text: answer) }
  }

  /// Its state.
  func state() throws -> State {
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

  /// The error of a step that failed.
  struct Failed: Error, CustomStringConvertible {
    let text: String
    /// The same.
    var description: String { text }
  }
}
