import Media
import Platform
import RTP
import TestSupport
import Testing

/// Announcements on the network (RFC 2974).
@Suite struct AnnouncementTests {
  static let description = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=x\r\n"

  private func parse(_ bytes: [UInt8]) -> AnnouncementPacket? {
    bytes.withUnsafeBytes { AnnouncementPacket(parsing: $0) }
  }

  @Test func `a packet is laid out as RFC 2974 section 6 says`() throws {
    let bytes = AnnouncementPacket.bytes(announcing: Self.description, from: [192, 0, 2, 1])
    #expect(bytes[0] == 0x20 && bytes[1] == 0 && bytes[4..<8] == [192, 0, 2, 1])
    #expect(bytes[2...3] != [0, 0])
    #expect(Array(bytes[8...]) == Array("application/sdp\0\(Self.description)".utf8))
    let deletion = AnnouncementPacket.bytes(announcing: Self.description, from: [192, 0, 2, 1], isDeletion: true)
    #expect(deletion[0] == 0x24 && deletion[1...] == bytes[1...])
    let origin = (1...16).map { UInt8($0) }
    let wide = AnnouncementPacket.bytes(announcing: Self.description, from: origin)
    #expect(wide[0] == 0x30 && Array(wide[4..<20]) == origin && wide[20] == UInt8(ascii: "a"))
    // Another description, another hash.
    let changed = AnnouncementPacket.bytes(announcing: Self.description + "a=x\r\n", from: [192, 0, 2, 1])
    #expect(changed[2...3] != bytes[2...3])
    for packet in [bytes, deletion, wide, changed] {
      let read = try #require(parse(packet))
      #expect(read.identifier.hash == UInt16(packet[2]) << 8 | UInt16(packet[3]))
      #expect(read.isDeletion == (packet[0] & 4 != 0))
    }
    #expect(parse(wide)?.identifier.origin == origin)
  }

  @Test func `a packet that is no announcement is refused`() throws {
    let whole = AnnouncementPacket.bytes(announcing: "", from: [1, 2, 3, 4])
    for count in 0..<9 { #expect(parse(Array(whole[..<count])) == nil) }
    var other = whole
    other[0] = 0x40
    #expect(parse(other) == nil)
    // Authentication data longer than the packet.
    other = whole
    other[1] = 255
    #expect(parse(other) == nil)
    var generator = SeededGenerator(seed: 4)
    for _ in 0..<5000 { _ = parse(generator.bytes(Int.random(in: 0..<64, using: &generator))) }
  }

  @Test(arguments: [
    ("239.255.1.2", "239.255.255.255"), ("239.1.2.3", "239.255.255.255"), ("239.195.0.1", "239.195.255.255"),
    ("239.192.0.1", "239.195.255.255"), ("224.2.130.1", "224.2.127.254"), ("232.1.2.3", "224.2.127.254"),
    ("224.0.0.77", "224.0.0.255"), ("ff15::7", "ff05::2:7ffe"), ("ff02::1:2", "ff02::2:7ffe"),
    ("ff3e::8000:1", "ff0e::2:7ffe"), ("FF18::1", "ff08::2:7ffe"),
  ])
  func `each scope has its group`(group: String, expected: String) throws {
    let address = try #require(ConnectionAddress(group))
    #expect(AnnouncementPacket.group(for: address) == expected)
  }

  @Test func `a unicast address has no group`() throws {
    for host in ["192.0.2.1", "2001:db8::1"] {
      let address = try #require(ConnectionAddress(host))
      #expect(AnnouncementPacket.group(for: address) == nil)
    }
  }

  private func other(_ number: Int, isDeletion: Bool = false) throws -> AnnouncementPacket {
    let origin = [10, UInt8(number >> 16 & 255), UInt8(number >> 8 & 255), UInt8(number & 255)]
    return try #require(
      parse(AnnouncementPacket.bytes(announcing: "v=0", from: origin, isDeletion: isDeletion)))
  }

  @Test func `all together have 4000 bits a second, and none comes more often than every 300 s`() throws {
    var schedule = AnnouncementSchedule()
    #expect(schedule.deadline(bytes: 500) == nil)
    #expect(schedule.interval(bytes: 500) == Duration(seconds: 300))
    // 8 * 299 * 500 / 4000 = 299 s; one more makes it 300, two more 301.
    for number in 0..<300 { schedule.note(try other(number), at: .zero) }
    #expect(schedule.interval(bytes: 500) == Duration(seconds: 301))
    // Again, and taken back.
    for number in 0..<300 { schedule.note(try other(number), at: .zero) }
    #expect(schedule.count == 300)
    for number in 0..<100 { schedule.note(try other(number, isDeletion: true), at: .zero) }
    #expect(schedule.count == 200 && schedule.interval(bytes: 500) == Duration(seconds: 300))
    // A flood of them has an end.
    for number in 0..<100_000 { schedule.note(try other(number), at: .zero) }
    #expect(schedule.count == AnnouncementSchedule.limit)
    #expect(schedule.interval(bytes: 500).seconds == Double(8 * (AnnouncementSchedule.limit + 1) * 500) / 4000)
    var generator = SeededGenerator(seed: 1)
    // Ten intervals of 2099 s without a word.
    schedule.sent(at: Instant(seconds: 30_000), using: &generator)
    #expect(schedule.count == 0)
  }

  @Test func `the first announcements come closer together, within the bandwidth of all`() throws {
    var generator = SeededGenerator(seed: 2)
    func times(_ schedule: inout AnnouncementSchedule, from start: Double) throws -> [Double] {
      var times: [Double] = []
      var now = start
      for _ in 0..<5 {
        schedule.sent(at: Instant(seconds: now), using: &generator)
        now = try (#require(schedule.deadline(bytes: 450)) - .zero).seconds
        times.append(now - start)
      }
      return times
    }
    var alone = AnnouncementSchedule()
    let first = try times(&alone, from: 10)
    #expect(first.prefix(3) == [1, 3, 7] && first[3] >= 207 && first[4] >= 407, "\(first)")
    // Another description.
    alone.begin()
    #expect(try times(&alone, from: 2000).prefix(3) == [1, 3, 7])
    // Ninety-nine others: 8 * 100 * 450 / 4000 = 90 s for each.
    var many = AnnouncementSchedule()
    for number in 0..<99 { many.note(try other(number), at: .zero) }
    #expect(try times(&many, from: 10).prefix(3) == [90, 180, 270])
  }

  @Test func `announcements are scattered over two thirds of the interval`() throws {
    var generator = SeededGenerator(seed: 9)
    var schedule = AnnouncementSchedule()
    var times: [Double] = []
    for _ in 1..<AnnouncementSchedule.firstCount { schedule.sent(at: .zero, using: &generator) }
    for _ in 0..<500 {
      schedule.sent(at: .zero, using: &generator)
      times.append(try (#require(schedule.deadline(bytes: 500)) - .zero).seconds)
    }
    let (least, most) = (times.min() ?? 0, times.max() ?? 0)
    #expect(least >= 200 && least < 210 && most <= 400 && most > 390, "\(least) \(most)")
  }
}
