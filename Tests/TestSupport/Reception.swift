package import Foundation

/// A stream from the program under test to ffmpeg, from its first packet to its last.
package struct Reception {
  /// The program's own figures, from `--stats-json`.
  package let statistics: [String: Any]
  /// The program's standard error.
  package let log: String
  /// The complaints of the receiver.
  package let receiverLog: String
  /// The decoded pictures as I420, if they were asked for.
  package let pictures: URL
  /// The number of pictures that were decoded.
  package let pictureCount: Int
  /// The session description that the program wrote.
  package let description: String

  /// `true` if every picture that was sent was decoded, without a complaint.
  package var isWhole: Bool { receiverLog.isEmpty && figure("frames", "sent") == pictureCount }

  /// A whole number of the program's figures, such as `["frames", "sent"]`.
  package func figure(_ path: String...) -> Int {
    var value: Any? = statistics
    for key in path { value = (value as? [String: Any])?[key] }
    return (value as? NSNumber)?.intValue ?? -1
  }

  /// Runs `nightjar stream` with `arguments` and an H.264 destination, and decodes everything with ffmpeg.
  ///
  /// A first short run writes the session description, so that ffmpeg listens before the stream begins: only then can
  /// the frames be compared one by one.
  ///
  /// - Parameters:
  ///   - scheme: `rtp` or `srtp`.
  ///   - seconds: After how long the stream is ended, from its first picture on; nil where `arguments` or `body` end it.
  ///     With `--duration` the time runs from the program's start, and a busy machine may have no picture by then.
  ///   - pictures: The number of decoded pictures after which the stream is ended instead, at the latest after a minute.
  ///   - body: The work while the program streams.
  package static func ofH264(
    _ arguments: [String], size: (width: Int, height: Int), scheme: String = "rtp", host: String = "127.0.0.1",
    options: String = "", for seconds: Double? = nil, until pictures: Int? = nil, in directory: TemporaryDirectory,
    whileStreaming body: (Subprocess) throws -> Void = { _ in }
  ) throws -> Reception {
    let receiver = try Receiver(
      arguments, size: size, scheme: scheme, host: host, options: options, in: directory)
    let running = try receiver.stream(arguments)
    _ = eventually { running.log.isStreaming || !running.isRunning }
    try body(running)
    if let seconds {
      usleep(UInt32(seconds * 1_000_000))
      running.send(SIGTERM)
    } else if let pictures {
      _ = eventually(within: 60) { receiver.pictureCount >= pictures || !running.isRunning }
      running.send(SIGTERM)
    }
    return try receiver.finish(running)
  }

  /// The same of the y4m clip at `path`, no picture of which is lost, however slow the machine is: the program gets
  /// each one only once ffmpeg has decoded those before, but for as many as it may miss, `losses`. It gets the clip so
  /// many `times`, as one.
  package static func ofClip(
    _ path: String, _ arguments: [String], size: (width: Int, height: Int), times: Int = 1, losses: Int = 0,
    scheme: String = "rtp", host: String = "127.0.0.1", options: String = "", in directory: TemporaryDirectory
  ) throws -> Reception {
    let pacing = ["--loop", "1", "--rate", "max"]
    let receiver = try Receiver(
      ["--source", "file:\(path)"] + pacing + arguments, size: size, scheme: scheme, host: host, options: options,
      in: directory)
    let pipe = directory.path("\(receiver.port).y4m")
    guard mkfifo(pipe, 0o600) == 0 else { throw CocoaError(.fileWriteUnknown) }
    let clip = try Data(contentsOf: URL(fileURLWithPath: path))
    let running = try receiver.stream(["--source", "file:\(pipe)"] + pacing + arguments)
    // Opened for both, so that neither side waits for the other, nor a write for ever where the program has ended.
    let output = open(pipe, O_RDWR | O_NONBLOCK)
    guard output >= 0 else { throw CocoaError(.fileWriteUnknown) }
    let frameBytes = "FRAME\n".utf8.count + receiver.pictureBytes
    let first = (clip.firstIndex(of: UInt8(ascii: "\n")) ?? clip.startIndex) + 1
    let frames = (clip.endIndex - first) / frameBytes
    func write(_ bytes: Data) {
      var rest = bytes
      while !rest.isEmpty, running.isRunning {
        let count = rest.withUnsafeBytes { Glibc.write(output, $0.baseAddress, $0.count) }
        if count > 0 { rest = rest.dropFirst(count) } else { usleep(1000) }
      }
    }
    write(clip[..<first])
    for written in 0..<frames * times where running.isRunning {
      // ffmpeg's parser and decoder keep two or three. A socket without privileges has room for twice as many bytes.
      _ = eventually {
        guard running.isRunning else { return true }
        guard receiver.pictureCount + 5 + losses > written else { return false }
        return (try? UDPPort.waitingBytes(receiver.port)) ?? 0 < 200_000
      }
      let start = first + written % frames * frameBytes
      write(clip[start..<start + frameBytes])
    }
    close(output)
    return try receiver.finish(running)
  }

  /// The stream could not be had; the log says why.
  package struct Failed: Error, CustomStringConvertible {
    fileprivate let log: String
    /// The log.
    package var description: String { log }
  }
}

/// ffmpeg, which listens for a stream of the program under test, and the program's command.
private final class Receiver {
  let port: UInt16
  /// Where nothing is ever sent to but the end.
  private let otherPort: UInt16
  /// The size of a picture in bytes, as ffmpeg writes it.
  let pictureBytes: Int
  /// The pictures that ffmpeg has decoded.
  let pictures: URL
  private let process: Subprocess
  private let host: String
  private let directory: TemporaryDirectory
  private let description: String
  private let stream: [String]

  init(
    _ arguments: [String], size: (width: Int, height: Int), scheme: String, host: String, options: String,
    in directory: TemporaryDirectory
  ) throws {
    (port, otherPort) = (try UDPPort.free(), try UDPPort.free())
    pictureBytes = size.width * size.height * 3 / 2
    pictures = directory.url.appendingPathComponent("\(port).yuv")
    (self.host, self.directory) = (host, directory)
    description = directory.path("\(port).sdp")
    let bracketed = host.contains(":") ? "[\(host)]" : host
    stream = ["--to", "\(scheme)://\(bracketed):\(port)\(options)", "--sdp", description]
    let prelude = try Subprocess([nightjarPath, "stream"] + arguments + stream, in: directory)
    _ = eventually(within: 60) { prelude.log.isStreaming || !prelude.isRunning }
    prelude.send(SIGTERM)
    let ended = try prelude.wait()
    guard ended.status == 0, FileManager.default.fileExists(atPath: description) else {
      throw Reception.Failed(log: ended.error)
    }
    // ffmpeg looks at RTCP before RTP, and at the BYE of its last stream it ends, whatever waits in its sockets. The program's is
    // not the last one's where there is another stream, of which nothing ever comes.
    let text = try String(contentsOfFile: description, encoding: .utf8)
    let listened = directory.path("\(port)-both.sdp")
    try Data((text + "m=audio \(otherPort) RTP/AVP 0\r\n").utf8).write(to: URL(fileURLWithPath: listened))
    process = try Subprocess(
      [
        // No probing, whose packets would be missing, and one thread, which holds no picture back.
        "ffmpeg", "-nostdin", "-v", "warning", "-protocol_whitelist", "file,udp,rtp,srtp,crypto", "-probesize", "32",
        "-analyzeduration", "0", "-threads", "1", "-flags", "low_delay", "-buffer_size", "4000000",
        // Loopback keeps the order, and another source would be taken for packets that are late.
        "-reorder_queue_size", "0", "-i", listened,
        "-map", "0:v", "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-flush_packets", "1", "-y",
        pictures.path,
      ], in: directory)
    guard try eventually({ try UDPPort.isBound(port) }) else {
      throw Reception.Failed(log: "the receiver does not listen: \(process.errorSoFar)")
    }
  }

  /// The number of decoded pictures.
  var pictureCount: Int {
    let attributes = try? FileManager.default.attributesOfItem(atPath: pictures.path)
    return ((attributes?[.size] as? NSNumber)?.intValue ?? 0) / pictureBytes
  }

  private var figures: String { directory.path("\(port).json") }

  /// Starts the program.
  func stream(_ arguments: [String]) throws -> Subprocess {
    try Subprocess([nightjarPath, "stream"] + arguments + stream + ["--stats-json", figures], in: directory)
  }

  /// Waits for the program's end, and until ffmpeg has taken all that it sent.
  func finish(_ running: Subprocess) throws -> Reception {
    let program = try running.wait(limit: 300)
    guard program.status == 0 else { throw Reception.Failed(log: program.error) }
    let statistics = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: figures)))
    _ = try eventually { try UDPPort.waitingBytes(port) == 0 || !process.isRunning }
    let dropped = try UDPPort.droppedDatagrams(port)
    // Of less than twelve bytes ffmpeg takes no RTCP packet; hence the reason, "end".
    try UDPPort.send([0x80 | 1, 203, 0, 2, 0, 0, 0, 0, 3] + Array("end".utf8), to: host, port: otherPort + 1)
    let received = try process.wait(limit: 60)
    // No complaints about the stream: that it was told not to probe; that the kernel gives a socket less room than was asked
    // for, since what that loses is counted; that two pictures of a jittering camera fall on one tick of its own output's
    // 30 Hz clock; what it calls full range; what it says of the stream of no packets.
    let ownAffairs = [
      "not enough frames to estimate rate", "[rawvideo @", "deprecated pixel format used", "Last message repeated",
      "Guessed Channel Layout", "Could not find codec parameters", "Consider increasing the value for",
      "attempted to set receive buffer",
    ]
    var complaints = received.error.split(separator: "\n")
      .filter { line in !ownAffairs.contains { line.contains($0) } }.map(String.init)
    if dropped > 0 { complaints.append("the receiver's socket had no room for \(dropped) datagrams") }
    return Reception(
      statistics: statistics as? [String: Any] ?? [:], log: program.error,
      receiverLog: complaints.joined(separator: "\n"), pictures: pictures, pictureCount: pictureCount,
      description: description)
  }
}
