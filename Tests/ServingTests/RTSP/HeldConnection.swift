import Glibc
import NIOCore
import NIOPosix
import Platform
import Serving
import Streaming
import TestSupport
import Testing

/// A connection of the server whose viewer reads only when a test wants it, and keeps little of what it has not read.
final class HeldConnection {
  /// A message that has come to the viewer.
  struct Arrival: Equatable, CustomStringConvertible {
    /// The channel of an interleaved packet; nil for the answer.
    var channel: UInt8?
    /// The packet's number; a negative one if its bytes are wrong.
    var number = 0

    var description: String { channel.map { "\($0):\(number)" } ?? "answer" }
  }

  let pictures: InterleavedTransport
  let sound: InterleavedTransport
  private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
  private let loop: any EventLoop
  private let service: NIOLoopBound<RTSPService>
  private let connection: NIOLoopBound<RTSPConnection>
  private let viewer: Int32
  private var bytes: [UInt8] = []
  private var place = 0
  private var hasEnded = false

  /// The bytes of an answer.
  static let answer = Array("RTSP/1.0 200 OK\r\n\r\n".utf8)

  init() throws {
    let pictures = try InterleavedTransport(media: 0, control: 1) { _ in }
    let sound = try InterleavedTransport(media: 2, control: 3, overtakesPictures: true) { _ in }
    (self.pictures, self.sound) = (pictures, sound)
    let loop = group.next()
    self.loop = loop
    let handover = try Handover()
    let service = try loop.submit {
      let configuration = RTSPServerConfiguration(listeners: [])
      return NIOLoopBound(RTSPService(configuration, loop, handover, RTSPServerEvents()), eventLoop: loop)
    }.wait()
    self.service = service
    let (listener, port) = try loopbackListener(backlog: 1)
    defer { Glibc.close(listener) }
    var size: Int32 = 8192
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    let channel = try ClientBootstrap(group: group).connect(host: "127.0.0.1", port: Int(port)).wait()
    viewer = try syscall("accept") { accept(listener, nil, nil) }
    _ = fcntl(viewer, F_SETFL, O_NONBLOCK)
    connection = try loop.submit {
      let made = RTSPConnection(channel, number: 1, isEncrypted: false, service.value, at: .now())
      let connection = try #require(made)
      connection.add(pictures)
      connection.add(sound)
      return NIOLoopBound(connection, eventLoop: loop)
    }.wait()
  }

  deinit {
    try? group.syncShutdownGracefully()
    Glibc.close(viewer)
  }

  /// Calls `body` on the connection's event loop.
  func onLoop<Value: Sendable>(_ body: @escaping @Sendable (RTSPConnection) -> Value) throws -> Value {
    let connection = connection
    return try loop.submit { body(connection.value) }.wait()
  }

  /// Returns interleaved packets with these numbers, one behind the other.
  static func packets(_ numbers: Range<Int>, channel: UInt8, size: Int = 1200) -> ByteBuffer {
    var buffer = ByteBuffer()
    for number in numbers {
      buffer.writeBytes([0x24, channel])
      buffer.writeInteger(UInt16(size))
      buffer.writeInteger(UInt16(number))
      buffer.writeRepeatingByte(UInt8(number & 0xff), count: size - 2)
    }
    return buffer
  }

  /// Writes packets of a picture.
  func write(picture numbers: Range<Int>) throws {
    let pictures = pictures
    try onLoop { $0.write(Self.packets(numbers, channel: 0), of: pictures, endsFrame: true) }
  }

  /// Writes packets of sound one by one, or RTCP of it.
  func write(sound numbers: Range<Int>, isControl: Bool = false) throws {
    let sound = sound
    try onLoop { connection in
      for number in numbers {
        let packet = Self.packets(number..<number + 1, channel: isControl ? 3 : 2, size: 100)
        connection.write(packet, of: sound, endsFrame: !isControl)
      }
    }
  }

  /// Writes an answer.
  func writeAnswer() throws { try onLoop { $0.write(ByteBuffer(bytes: Self.answer)) } }

  /// Lets go of the pictures' transport, as PAUSE does.
  func endPictures() throws {
    let pictures = pictures
    try onLoop { $0.letGo(of: pictures) }
  }

  /// Reads until so many messages have come; fewer if the connection ends, or after a minute.
  func read(_ count: Int) -> [Arrival] {
    var arrivals: [Arrival] = []
    _ = eventually(within: 60) {
      receive()
      while let arrival = next() { arrivals.append(arrival) }
      return arrivals.count >= count || hasEnded
    }
    return arrivals
  }

  private func receive() {
    var memory = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = recv(viewer, &memory, 4096, 0)
      if count == 0 { hasEnded = true }
      guard count > 0 else { return }
      bytes += memory[..<count]
    }
  }

  /// Returns the next message that has come as a whole (RFC 2326 section 10.12).
  private func next() -> Arrival? {
    guard place < bytes.count else { return nil }
    guard bytes[place] == 0x24 else {
      let end = place + Self.answer.count
      guard end <= bytes.count else { return nil }
      defer { place = end }
      return Arrival(number: bytes[place..<end].elementsEqual(Self.answer) ? 0 : -1)
    }
    guard place + 6 <= bytes.count else { return nil }
    let end = place + 4 + (Int(bytes[place + 2]) << 8 | Int(bytes[place + 3]))
    guard end <= bytes.count else { return nil }
    defer { place = end }
    let number = Int(bytes[place + 4]) << 8 | Int(bytes[place + 5])
    let isWhole = bytes[(place + 6)..<end].allSatisfy { Int($0) == number & 0xff }
    return Arrival(channel: bytes[place + 1], number: isWhole ? number : -1)
  }
}
