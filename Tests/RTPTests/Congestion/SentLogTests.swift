import Platform
import RTP
import TestSupport
import Testing

/// The age of packets, by reports about the newest one that has arrived.
@Suite struct SentLogTests {
  @Test func `a report says how old the newest packet is, and how long the next one has waited`() throws {
    var log = SentLog()
    #expect(log.place(of: 5, at: Instant(seconds: 1)) == nil)
    for index in 0..<10 {
      let time = Instant(seconds: 1 + Double(index) * 0.03)
      log.note(position: Int64(100 + index * 4), packets: 4, bytes: 5000, at: time)
    }
    let now = Instant(seconds: 1.3)
    let whole = try #require(log.place(of: 108, at: now))
    #expect(whole.packets == 12 && whole.bytes == 15_000)
    #expect(abs(whole.age.seconds - 0.24) < 1e-6)
    #expect(abs(whole.waiting.seconds - 0.21) < 1e-6)
    // In the middle of those that left together.
    let part = try #require(log.place(of: 110, at: now))
    #expect(part.packets == 14 && part.bytes == 17_500)
    #expect(part.age == part.waiting)
    let all = try #require(log.place(of: 136, at: now))
    #expect(all.packets == 40 && all.bytes == log.bytes && all.waiting == .zero)
    // A report about a packet that was never sent is one about all.
    #expect(log.place(of: 1000, at: now)?.packets == 40)
    // The bytes of the third picture begin behind 10 000.
    #expect(abs(try #require(log.age(ofByte: 10_000, at: now)).seconds - 0.24) < 1e-6)
    #expect(abs(try #require(log.age(ofByte: 9999, at: now)).seconds - 0.27) < 1e-6)
    #expect(log.age(ofByte: log.bytes, at: now) == nil)
  }

  @Test func `a log that was reset begins anew`() throws {
    var log = SentLog()
    for index in 0..<3000 {
      log.note(position: Int64(index), packets: 1, bytes: 1000, at: Instant(seconds: Double(index)))
    }
    log.reset()
    #expect(log.packets == 0 && log.bytes == 0 && log.place(of: 5, at: Instant(seconds: 4000)) == nil)
    log.note(position: 7, packets: 2, bytes: 500, at: Instant(seconds: 4000))
    let place = try #require(log.place(of: 7, at: Instant(seconds: 4001)))
    #expect(place.packets == 2 && place.bytes == 500 && place.age.seconds == 1)
    // Bytes that do not divide by the packets: none is lost to that.
    #expect(SentLog.Place(packets: 3, bytes: 1000, age: .zero, waiting: .zero).arrivedBytes(lost: 3) == 0)
  }

  @Test func `packets that leave one by one share a place, and the oldest are forgotten`() throws {
    var log = SentLog()
    for index in 0..<100_000 {
      log.note(position: Int64(index), packets: 1, bytes: 1000, at: Instant(nanoseconds: Int64(index) * 1_000_000))
    }
    let now = Instant(seconds: 100)
    let near = try #require(log.place(of: 99_500, at: now))
    #expect(abs(near.age.seconds - 0.5) < 0.005)
    #expect(abs(near.packets - 99_501) <= 4)
    // The oldest that is known.
    let far = try #require(log.place(of: 10, at: now))
    #expect(far.age > Duration(seconds: 4) && far.packets > 90_000)
    #expect(try #require(log.age(ofByte: 10, at: now)) == far.age)
    #expect(abs(log.rate(over: 0.5, until: now) - 8_000_000) < 100_000)
  }

  @Test func `lost packets are no arrived bytes`() {
    let place = SentLog.Place(packets: 10, bytes: 12_000, age: .zero, waiting: .zero)
    #expect(place.arrivedBytes(lost: 3) == 8400)
    #expect(place.arrivedBytes(lost: -1) == 12_000)
    #expect(place.arrivedBytes(lost: 50) == 0)
  }
}
