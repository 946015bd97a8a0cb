import Platform
import Sound
import Testing

@Suite struct CardPaceTests {
  private let start = Instant(nanoseconds: 1_000_000_000_000)

  @Test(arguments: [-500.0, 0, 500, 15_000])
  func `a card keeps its own pace, whatever its crystal, and after pauses of the machine`(deviation: Double) {
    var pace = CardPace(rate: 48_000, at: start)
    var (now, delivered, isOwn) = (start, 0.0, true)
    for turn in 0..<60_000 {
      // A pause of half a second each minute, after which the card's memory is full.
      let wait = turn % 6000 == 0 ? 0.5 : 0.01
      now = now + Duration(seconds: wait)
      delivered += min(wait, 0.2) * 48_000 * (1 + deviation * 1e-6)
      let count = Int(delivered)
      delivered -= Double(count)
      isOwn = isOwn && pace.note(count, at: now) == nil
    }
    #expect(isOwn && !pace.isByClock)
  }

  @Test func `the samples of a device that does not wait end when the clock says so`() throws {
    var pace = CardPace(rate: 44_100, at: start)
    var now = start
    var readings = 0
    while !pace.isByClock {
      now = now + .milliseconds(1)
      let place = pace.note(441, at: now)
      #expect(place == nil)
      readings += 1
    }
    // Two seconds of sound in a fifth of a second.
    #expect((200...250).contains(readings))
    let begin = now
    for turn in 1...1000 {
      let noted = pace.note(441, at: now)
      let place = try #require(noted)
      now = place.upperBound
      let end = begin + .milliseconds(10) * Int64(turn)
      #expect(place.lowerBound == end - .milliseconds(10) && now == end)
    }
    // After a pause the samples go on at the present time, not all at once.
    now = now + .seconds(3)
    let late = pace.note(441, at: now)
    #expect(late == now..<(now + .milliseconds(10)))
  }
}
