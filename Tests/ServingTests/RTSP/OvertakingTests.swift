import NIOCore
import Serving
import Streaming
import TestSupport
import Testing

/// Sound that leaves before the rest of a picture, within one connection.
@Suite(.serialized) struct OvertakingTests {
  private typealias Arrival = HeldConnection.Arrival

  private static func arrivals(_ numbers: Range<Int>, channel: UInt8) -> [Arrival] {
    numbers.map { Arrival(channel: channel, number: $0) }
  }

  @Test func `sound leaves before the rest of a picture that waits`() throws {
    let connection = try HeldConnection()
    connection.pictures.noteLimit(300_000)
    try connection.write(picture: 0..<160)
    // More waits than a client may leave waiting and get another track.
    #expect(try connection.onLoop { !$0.takesMore })
    try connection.write(sound: 0..<10)
    try connection.write(sound: 0..<1, isControl: true)
    try connection.write(sound: 10..<20)
    try connection.write(picture: 160..<170)
    try connection.write(sound: 1..<2, isControl: true)
    let arrivals = connection.read(192)
    // Each channel has all of its packets, whole and in order.
    let counts: [(channel: UInt8, count: Int)] = [(0, 170), (2, 20), (3, 2)]
    for (channel, count) in counts {
      #expect(arrivals.filter { $0.channel == channel } == Self.arrivals(0..<count, channel: channel))
    }
    #expect(arrivals.count == 192)
    // Before the sound are only the packets that the kernel and the viewer had.
    let last = try #require(arrivals.lastIndex { $0.channel != 0 })
    #expect(arrivals[..<last].count { $0.channel == 0 } < 80, "\(arrivals)")
    #expect(try eventually { try connection.onLoop { $0.takesMore } })
  }

  @Test func `no sound overtakes an answer`() throws {
    let connection = try HeldConnection()
    connection.pictures.noteLimit(300_000)
    connection.sound.noteLimit(300_000)
    try connection.write(picture: 0..<80)
    try connection.write(sound: 0..<1)
    // The answer to PAUSE, after which no picture comes.
    try connection.endPictures()
    try connection.writeAnswer()
    try connection.write(sound: 1..<3)
    let arrivals = connection.read(84)
    #expect(arrivals.count == 84)
    let first = try #require(arrivals.firstIndex { $0.channel == 2 })
    #expect(first < 60, "\(arrivals)")
    let end = Self.arrivals(79..<80, channel: 0) + [Arrival()] + Self.arrivals(1..<3, channel: 2)
    #expect(Array(arrivals.suffix(4)) == end)
    // Once the answer has left, sound overtakes again.
    try connection.write(picture: 80..<160)
    try connection.write(sound: 3..<4)
    let later = connection.read(81)
    let overtaking = try #require(later.firstIndex { $0.channel == 2 })
    #expect(overtaking < 60, "\(later)")
    #expect(later.filter { $0.channel == 0 } == Self.arrivals(80..<160, channel: 0))
  }

  @Test func `an answer that ends no track leaves before the rest of a picture, and so does sound`() throws {
    let connection = try HeldConnection()
    connection.pictures.noteLimit(300_000)
    try connection.write(picture: 0..<80)
    try connection.writeAnswer()
    try connection.write(sound: 0..<2)
    let arrivals = connection.read(83)
    let answer = try #require(arrivals.firstIndex(of: Arrival()))
    #expect(answer < 60, "\(arrivals)")
    let sound = arrivals.indices.filter { arrivals[$0].channel == 2 }
    #expect(sound.count == 2 && sound.allSatisfy { answer < $0 && $0 < 60 }, "\(arrivals)")
    #expect(arrivals.filter { $0.channel == 0 } == Self.arrivals(0..<80, channel: 0))
    // After a track has ended, another answer waits for its pictures too, and sound then for the answer.
    connection.sound.noteLimit(300_000)
    try connection.write(picture: 80..<160)
    try connection.write(sound: 2..<3)
    try connection.endPictures()
    try connection.writeAnswer()
    try connection.writeAnswer()
    try connection.write(sound: 3..<4)
    let ended = connection.read(84)
    let expected = Self.arrivals(159..<160, channel: 0) + [Arrival(), Arrival()] + Self.arrivals(3..<4, channel: 2)
    #expect(Array(ended.suffix(4)) == expected, "\(ended)")
  }

  @Test func `on an open network all leaves in the order in which it was written`() throws {
    let connection = try HeldConnection()
    try connection.write(picture: 0..<40)
    try connection.write(sound: 0..<2)
    try connection.write(picture: 40..<50)
    var expected = Self.arrivals(0..<50, channel: 0)
    expected.insert(contentsOf: Self.arrivals(0..<2, channel: 2), at: 40)
    #expect(connection.read(52) == expected)
  }

  @Test func `what waits leaves once the network is open, before what is written then`() throws {
    let connection = try HeldConnection()
    connection.pictures.noteLimit(300_000)
    try connection.write(picture: 0..<100)
    connection.pictures.noteLimit(nil)
    try connection.write(picture: 100..<110)
    #expect(connection.read(110) == Self.arrivals(0..<110, channel: 0))
  }

  @Test func `what waits leaves before the connection closes`() throws {
    let connection = try HeldConnection()
    connection.pictures.noteLimit(300_000)
    try connection.write(picture: 0..<30)
    try connection.writeAnswer()
    try connection.onLoop { $0.closeSoon() }
    let arrivals = connection.read(.max)
    #expect(arrivals.count == 31 && arrivals.contains(Arrival()), "\(arrivals)")
    #expect(arrivals.filter { $0.channel == 0 } == Self.arrivals(0..<30, channel: 0))
  }

  @Test func `packets are taken whole, as many as begin within the room`() {
    var waiting = WaitingPackets()
    func take(_ room: Int) -> ByteBuffer? { waiting.take(within: room) }
    #expect(waiting.isEmpty)
    #expect(take(.max) == nil)
    let picture = HeldConnection.packets(0..<6, channel: 0, size: 100)
    let answer = ByteBuffer(bytes: HeldConnection.answer)
    waiting.append(picture, isPicture: true)
    #expect(waiting.allowsOvertaking && waiting.count == 624)
    waiting.append(answer, isPicture: false)
    waiting.append(picture, isPicture: true)
    #expect(!waiting.allowsOvertaking)
    #expect(take(0) == nil)
    #expect(take(-1) == nil)
    var taken = ByteBuffer()
    for (room, length) in [(1, 104), (104, 104), (105, 208), (1000, 208)] {
      let piece = take(room)
      #expect(piece?.readableBytes == length, "\(room)")
      if var piece { taken.writeBuffer(&piece) }
    }
    #expect(taken == picture)
    // An answer leaves as a whole.
    #expect(take(1) == answer)
    #expect(waiting.allowsOvertaking)
    #expect(take(.max) == picture)
    #expect(waiting.isEmpty && waiting.count == 0)
  }

  @Test func `the kernel gets what the network takes in a round trip and 60 ms, and two packets at least`() {
    #expect(OutgoingBytes.ahead(limit: 800_000, roundTrip: 0.04) == 10_000)
    #expect(OutgoingBytes.ahead(limit: 30_000, roundTrip: 0.04) == OutgoingBytes.leastAhead)
    #expect(OutgoingBytes.ahead(limit: 300_000, roundTrip: 0) == OutgoingBytes.leastAhead)
  }
}
