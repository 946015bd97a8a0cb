// serve-rtsp PORT SECONDS: shows the synthetic camera at rtsp://127.0.0.1:PORT/camera for so long, to one viewer after the
// other, with the packets in RTSP's own connection (RFC 2326 section 10.12).
import Capture
import Encoding
import Glibc
import Media
import Platform
import RTP
import RTSP

guard CommandLine.arguments.count == 3, let port = UInt16(CommandLine.arguments[1]),
  let seconds = Double(CommandLine.arguments[2]), seconds > 0, seconds <= 86_400
else {
  print("usage: serve-rtsp PORT SECONDS")
  exit(64)
}

func fail(_ reason: String, _ code: Int32) -> Never {
  let line = "serve-rtsp: \(reason)\n"
  write(STDERR_FILENO, line, line.utf8.count)
  exit(code)
}

/// A TCP socket that listens at the loopback address alone.
func listeningSocket() -> Int32 {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  var on: Int32 = 1
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
  var here = sockaddr_in()
  here.sin_family = sa_family_t(AF_INET)
  here.sin_port = port.bigEndian
  inet_pton(AF_INET, "127.0.0.1", &here.sin_addr)
  let result = withUnsafePointer(to: &here) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
  guard result == 0, listen(descriptor, 8) == 0 else { fail("port \(port): \(String(cString: strerror(errno)))", 69) }
  return descriptor
}

func isReadable(_ descriptor: Int32, milliseconds: Int32) -> Bool {
  var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
  return poll(&waiting, 1, milliseconds) == 1
}

signal(SIGPIPE, SIG_IGN)
let end = Instant.now() + Duration(seconds: seconds)

do {
  let camera = try SyntheticCamera(size: PictureSize(width: 640, height: 480), frameRate: .thirty)
  let format = camera.format
  let encoder = try EncoderSelector.select(
    .auto,
    EncoderConfiguration(size: format.size, frameRate: format.frameRate, bitrate: 1_000_000, color: format.color)
  ).encoder
  // snippet.served
  var packetizer = try H264Packetizer()
  let description = SessionDescription(
    payload: .h264(encoder.parameterSets, frameRate: format.frameRate), announcement: .rtsp, address: .loopback,
    port: 0, sessionID: UInt64(Instant.now().nanoseconds), name: camera.name)
  var sessions = SessionTable(
    configuration: SessionTable.Configuration(
      presentations: ["/camera": 1], transports: TransportCapabilities(profiles: [.avp], isUDPServed: false)))
  // snippet.end
  let listener = listeningSocket()
  let batch = PacketBatch()
  let interrupt = try Interrupt()
  camera.start()

  var connections: UInt64 = 0
  while Instant.now() < end {
    guard isReadable(listener, milliseconds: 100) else { continue }
    let socket = accept(listener, nil, nil)
    guard socket >= 0 else { continue }
    defer { close(socket) }
    connections += 1

    // snippet.answers
    let connection = SessionTable.Connection(
      identifier: connections, client: .loopback, authority: "127.0.0.1:\(port)")
    var parser = RequestParser()
    var channel: UInt8 = 0
    var isPlaying = false
    var needsKeyFrame = false

    /// Answers the requests that have come whole; what is left waits in the parser.
    func answer(_ received: UnsafeRawBufferPointer) throws(RequestError) {
      var rest = received
      while let message = try parser.next(from: &rest) {
        // Else it is RTCP from the viewer.
        guard case .request(let request) = message else { continue }
        var answer = sessions.answer(request, on: connection, at: .now())
        switch answer.effect {
        case .describe(_, let contentBase, _):
          answer.response.setDescription(description.text, contentBase: contentBase)
        case .setup(_, _, let transport):
          if case .interleaved(let channels) = transport.delivery { channel = channels.rtp }
          answer.response.setTransport(
            TransportAnswer(transport, server: .interleaved, ssrc: packetizer.stream.ssrc))
        case .play(_, let urls):
          answer.response.setRTPInformation(
            urls.values.map { RTPInformation(url: $0, sequenceNumber: packetizer.stream.nextSequenceNumber) })
          isPlaying = true
          needsKeyFrame = true
        case .pause, .release, .teardown:
          isPlaying = false
        case .none: break
        }
        let bytes = answer.response.bytes
        _ = write(socket, bytes, bytes.count)
      }
    }
    // snippet.end

    // snippet.viewer
    viewing: while Instant.now() < end {
      if isReadable(socket, milliseconds: isPlaying ? 0 : 100) {
        var received = [UInt8](repeating: 0, count: 4096)
        let count = read(socket, &received, received.count)
        guard count > 0 else { break viewing }
        do {
          try received.withUnsafeBytes { try answer(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        } catch let error as RequestError {
          let bytes = Response(to: error, sequenceNumber: parser.sequenceNumber).bytes
          _ = write(socket, bytes, bytes.count)
          break viewing
        }
      }
      guard isPlaying, case .frame(let frame) = camera.next(interrupt: interrupt) else { continue }
      var isThere = true
      try encoder.encode(frame, keyFrame: needsKeyFrame) { unit in
        batch.removeAll()
        packetizer.packetize(unit, into: batch)
        for number in 0..<batch.count where isThere { isThere = send(batch[number], to: socket, on: channel) }
      }
      needsKeyFrame = false
      guard isThere else { break viewing }
    }
    for session in sessions.connectionClosed(connections) { print("\(session) ended with its connection") }
    // snippet.end
  }
  camera.stop()
  encoder.stop()

  // snippet.interleaved
  /// One packet within the connection; false where the viewer is gone. A viewer that does not read holds this program up:
  /// a real server gives each a queue.
  func send(_ packet: PacketBatch.Packet, to socket: Int32, on channel: UInt8) -> Bool {
    var header = InterleavedFrame.header(channel: channel, payloadBytes: UInt16(packet.count))
    return withUnsafeMutableBytes(of: &header) { header in
      let parts = [
        iovec(iov_base: header.baseAddress, iov_len: header.count),
        iovec(iov_base: UnsafeMutableRawPointer(mutating: packet.header.baseAddress), iov_len: packet.header.count),
        iovec(iov_base: UnsafeMutableRawPointer(mutating: packet.payload.baseAddress), iov_len: packet.payload.count),
      ]
      return writev(socket, parts, 3) == header.count + packet.count
    }
  }
  // snippet.end
} catch {
  fail("\(error)", 70)
}
