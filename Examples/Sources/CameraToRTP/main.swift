// camera-to-rtp ADDRESS PORT SECONDS [DEVICE]: sends a camera as RTP (RFC 6184) to an IPv4 address for so long, and prints
// the session description that a player needs first. Without a device it is the synthetic camera.
import Capture
import Encoding
import Glibc
import Media
import Platform
import RTP

let arguments = CommandLine.arguments
guard arguments.count >= 4, let address = ConnectionAddress(arguments[1]), address.family == .ip4,
  let port = UInt16(arguments[2]), let seconds = Double(arguments[3]), seconds > 0, seconds <= 86_400
else {
  print("usage: camera-to-rtp ADDRESS PORT SECONDS [DEVICE]")
  exit(64)
}

/// A UDP socket that is connected to the receiver.
func connectedSocket() throws -> Int32 {
  var receiver = sockaddr_in()
  receiver.sin_family = sa_family_t(AF_INET)
  receiver.sin_port = port.bigEndian
  inet_pton(AF_INET, arguments[1], &receiver.sin_addr)
  let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
  let result = withUnsafePointer(to: &receiver) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
  guard result == 0 else { throw SystemFailure("connect", errorNumber: errno) }
  return descriptor
}

do {
  // snippet.camera
  let camera: any VideoSource
  if arguments.count > 4 {
    camera = try V4L2Camera(path: arguments[4], request: FormatRequest(size: PictureSize(width: 1280, height: 720)))
  } else {
    camera = try SyntheticCamera(size: PictureSize(width: 1280, height: 720), frameRate: .thirty)
  }
  // snippet.end

  // snippet.encoder
  // What the driver really gave decides: size, rate and colours are the camera's.
  let format = camera.format
  let encoder = try EncoderSelector.select(
    .auto,
    EncoderConfiguration(
      size: format.size, frameRate: format.frameRate,
      bitrate: BitrateLadder.bitrate(for: format.size, at: format.frameRate), color: format.color)
  ).encoder
  // snippet.end

  // snippet.description
  let description = SessionDescription(
    payload: .h264(encoder.parameterSets, frameRate: format.frameRate), address: address, port: port,
    sessionID: UInt64(Instant.now().nanoseconds), name: camera.name)
  print(description.text, terminator: "")
  // snippet.end
  fflush(nil)

  let socket = try connectedSocket()

  // snippet.loop
  var packetizer = try H264Packetizer()
  let batch = PacketBatch()
  var keyFrames = KeyFrameClock(interval: Duration(seconds: 2))
  let interrupt = try Interrupt()
  let end = Instant.now() + Duration(seconds: seconds)
  try camera.start()
  streaming: while Instant.now() < end {
    switch try camera.next(interrupt: interrupt) {
    case .frame(let frame):
      let isDue = keyFrames.isDue(at: frame.timestamp, frameInterval: format.frameRate.interval)
      try encoder.encode(frame, keyFrame: isDue) { unit in
        // The packets borrow the unit's bytes: they go out before the encoder gets them back.
        batch.removeAll()
        packetizer.packetize(unit, into: batch)
        for number in 0..<batch.count { send(batch[number]) }
      }
      if isDue { keyFrames.keyFrameDelivered(at: frame.timestamp) }
    case .dropped: continue
    case .idle: continue
    case .ended: break streaming
    }
  }
  camera.stop()
  encoder.stop()
  // snippet.end

  // snippet.send
  /// One datagram out of a packet's two parts. Nobody may be listening yet: that is no reason to stop.
  func send(_ packet: PacketBatch.Packet) {
    let parts = [
      iovec(iov_base: UnsafeMutableRawPointer(mutating: packet.header.baseAddress), iov_len: packet.header.count),
      iovec(iov_base: UnsafeMutableRawPointer(mutating: packet.payload.baseAddress), iov_len: packet.payload.count),
    ]
    _ = writev(socket, parts, 2)
  }
  // snippet.end
} catch {
  let line = "camera-to-rtp: \(error)\n"
  write(STDERR_FILENO, line, line.utf8.count)
  exit(69)
}
