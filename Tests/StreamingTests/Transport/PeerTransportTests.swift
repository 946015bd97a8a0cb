import CLinux
import Foundation
import Glibc
import Platform
import RTP
import SRTP
import Streaming
import TestSupport
import Testing

/// SRTP of one track to one peer: its numbers, and its ways.
@Suite struct PeerTransportTests {
  private let key = SRTPKey(random: .aes128GCM)
  private static let ssrc: UInt32 = 0x0102_0304

  /// The stream begins just before its numbers wrap.
  private func frames() throws -> FrameMaker {
    try FrameMaker(
      RTPStream(payloadType: .h264, ssrc: Self.ssrc, firstSequenceNumber: 65_533, timestampOffset: 0))
  }

  private func way(to socket: TestSocket) throws -> PeerTransport.Way {
    let loopback = try #require(IPAddress("127.0.0.1"))
    return .datagrams(
      try PeerSocket(isIPv6: false, port: 0, host: loopback), to: SocketAddress(loopback, port: socket.port), from: nil)
  }

  private func number(_ packet: PacketBatch.Packet) -> UInt16 { Array(packet.header).rtpSequenceNumber }

  @Test func `a peer that joins just before a wrap and loses the packets before it decrypts the rest`() throws {
    let socket = try TestSocket(port: UDPPort.free())
    let transport = try PeerTransport(.init(media: 109, retransmission: 110), key: key, way: way(to: socket))
    let frame = try frames().frame(packets: 20, isKeyFrame: true)
    let progress = transport.send(frame, 0..<20)
    #expect(progress.packets == 20 && progress.end == .done)
    let packets = socket.drain(limit: 20).map(\.bytes)
    #expect(packets.count == 20)
    let receiver = try SecureReceiver(key, ssrc: Self.ssrc)
    // Those before the wrap, and some more, are lost.
    for (index, packet) in packets.enumerated().dropFirst(6) {
      let opened = try #require(receiver.open(Data(packet)), "\(index)")
      #expect(opened[1] & 0x7f == 109)
      #expect(Array(opened.dropFirst(12)) == Array(frame.batch[index].payload(behindHeader: 12)))
    }
    let numbers = packets.map(\.rtpSequenceNumber)
    #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 &+ 1 == $1 } && numbers[0] < 0x4000)
    #expect(transport.sequenceOffset == number(frame.batch[0]) &- numbers[0])
  }

  @Test func `a retransmission names the number that the peer knows`() throws {
    let socket = try TestSocket(port: UDPPort.free())
    let transport = try PeerTransport(.init(media: 109, retransmission: 110), key: key, way: way(to: socket))
    let frame = try frames().frame(packets: 5)
    _ = transport.send(frame, 0..<5)
    let sent = socket.drain(limit: 5).map(\.bytes.rtpSequenceNumber)
    var again = RetransmissionStream(RTPStream(protected: .retransmission, clockRate: 90_000, ssrc: 77))
    let original = Array(frame.batch[4].header) + Array(frame.batch[4].payload)
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 128, alignment: 8)
    defer { memory.deallocate() }
    let isSent = original.withUnsafeBytes { bytes in
      again.wrap(bytes, into: memory).map { transport.send(header: $0.header, payload: $0.payload) }
    }
    let packet = try #require(socket.next()?.bytes)
    let opened = try #require(SecureReceiver(key, ssrc: 77).open(Data(packet)))
    #expect(isSent == true && opened[1] & 0x7f == 110)
    #expect([UInt8](opened).number(at: 12, bytes: 2) == UInt64(sent[4]))
    #expect(Array(opened.dropFirst(14)) == Array(original.dropFirst(12)))
  }

  @Test func `packets have the time of sending, and one that is sent again is the same to the last bit`() throws {
    let socket = try TestSocket(port: UDPPort.free())
    let transport = try PeerTransport(.init(media: 109, sendTime: 3), key: key, way: way(to: socket))
    let frames = try frames()
    let frame = try frames.frame(packets: 5, isKeyFrame: true)
    let before = SendTimeExtension.time(at: .now())
    _ = transport.send(frame, 0..<5)
    usleep(2000)
    let packet = frame.batch[1]
    #expect(transport.send(header: packet.header, payload: packet.payload))
    let after = SendTimeExtension.time(at: .now())
    let sent = socket.drain(limit: 6).map(\.bytes)
    try #require(sent.count == 6)
    #expect(sent[5] == sent[1])
    let receiver = try SecureReceiver(key, ssrc: Self.ssrc)
    for index in 0..<5 {
      let opened = [UInt8](try #require(receiver.open(Data(sent[index]))))
      #expect(opened[0] == 0x90 && Array(opened[12..<17]) == [0xbe, 0xde, 0, 1, 0x32])
      // 64 seconds are a turn.
      let time = UInt32(opened.number(at: 17, bytes: 3))
      #expect((time &- before) & 0xff_ffff <= (after &- before) & 0xff_ffff)
      #expect(Array(opened.dropFirst(20)) == Array(frame.batch[index].payload(behindHeader: 12)))
    }
  }

  @Test func `without a stream of retransmissions, packets of long ago are sent again, and no room is told`() throws {
    let socket = try TestSocket(port: UDPPort.free())
    let transport = try PeerTransport(.init(media: 109), key: key, way: way(to: socket))
    let frames = try frames()
    let first = try frames.frame(packets: 1)
    _ = transport.send(first, 0..<1)
    for _ in 0..<20 { _ = transport.send(try frames.frame(packets: 100), 0..<100) }
    let packet = first.batch[0]
    #expect(transport.send(header: packet.header, payload: packet.payload))
    let sent = socket.drain().map(\.bytes)
    #expect(sent.count == 2002 && sent.first == sent.last)
    // Where the way is closed, the packet does not count as sent.
    let connection = try TestConnection()
    connection.server.close()
    transport.move(to: .connection(connection.server))
    #expect(!transport.send(header: packet.header, payload: packet.payload) && !transport.isReachable())
  }

  @Test func `on a connection each packet follows its length, and what has no room is left whole`() throws {
    let connection = try TestConnection()
    let transport = try PeerTransport(
      .init(media: 109, retransmission: 110), key: key, way: .connection(connection.server))
    let frames = try frames()
    var (sent, frame) = (0, try frames.frame(packets: 100))
    var progress = transport.send(frame, 0..<100)
    // Nobody reads.
    for _ in 0..<1000 where progress.end == .done {
      sent += progress.packets
      frame = try frames.frame(packets: 100)
      progress = transport.send(frame, 0..<100)
    }
    sent += progress.packets
    #expect(progress.end == .full && progress.next < 100)
    #expect(transport.descriptors.output == connection.server.fileDescriptor)
    // A small datagram waits behind the rest of a packet.
    let report = [UInt8](repeating: 9, count: 40)
    report.withUnsafeBytes { connection.server.send($0) }
    let receiver = try SecureReceiver(key, ssrc: Self.ssrc)
    var opened = 0
    while opened < sent {
      let packet = try #require(connection.next { _ = connection.server.flush() }, "\(opened) of \(sent)")
      if packet == report { continue }
      #expect(receiver.open(Data(packet)) != nil, "\(opened)")
      opened += 1
    }
    // There is room again: the packets that were left follow.
    let rest = progress.next..<100
    progress = transport.send(frame, rest)
    #expect(progress.end == .done && progress.packets == rest.count)
    for _ in rest {
      var packet = connection.next()
      if packet == report { packet = connection.next() }
      #expect(receiver.open(Data(try #require(packet))) != nil)
    }
  }

  @Test func `small datagrams that nobody takes are dropped beyond a limit, and counted`() throws {
    let connection = try TestConnection()
    let datagram = [UInt8](repeating: 1, count: 1000)
    for _ in 0..<100_000 where connection.server.dropped == 0 {
      datagram.withUnsafeBytes { connection.server.send($0) }
    }
    #expect(connection.server.dropped == 1)
  }
}

extension PacketBatch.Packet {
  fileprivate func payload(behindHeader count: Int) -> [UInt8] {
    Array((Array(header) + Array(payload)).dropFirst(count))
  }
}

/// A connection of a peer, and the peer's end of it.
private final class TestConnection {
  let server: PeerConnection
  private let client: CInt
  private var bytes: [UInt8] = []

  init() throws {
    let listener = try PeerListener(isIPv6: false, port: 0, host: IPAddress("127.0.0.1"))
    client = try #require(loopbackConnection(port: listener.port))
    var accepted = listener.accept { _ in }
    while case .none = accepted { accepted = listener.accept { _ in } }
    guard case .connection(let server) = accepted else { throw SystemFailure("accept") }
    self.server = server
    #expect(server.local == IPAddress("127.0.0.1") && server.peer.address == IPAddress("127.0.0.1"))
  }

  deinit { close(client) }

  /// The next datagram; nil where none comes.
  ///
  /// - Parameter idle: is done while nothing comes.
  func next(idle: () -> Void = {}) -> [UInt8]? {
    for _ in 0..<1000 {
      if bytes.count >= 2 {
        let end = 2 + (Int(bytes[0]) << 8 | Int(bytes[1]))
        if bytes.count >= end {
          defer { bytes.removeFirst(end) }
          return Array(bytes[2..<end])
        }
      }
      var memory = [UInt8](repeating: 0, count: 65_536)
      let count = recv(client, &memory, memory.count, CInt(MSG_DONTWAIT))
      if count > 0 {
        bytes += memory[..<count]
      } else {
        idle()
        usleep(10_000)
      }
    }
    return nil
  }
}
