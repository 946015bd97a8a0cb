import Appliance
import Platform
import Streaming
import TestSupport
import Testing

@Suite struct MissingDestinationsTests {
  @Test func `attempts come after 1, 2, 4, … 60 s, a new host is tried at once, and each complaint comes once`() throws
  {
    let (first, second) = (
      try StreamDestination(url: "rtp://a.invalid:5004"), try StreamDestination(url: "rtp://[::1]:5006")
    )
    #expect(first.hasName && !second.hasName)
    let missing = MissingDestinations()
    var now = Instant(seconds: 1000)
    #expect(missing.next == nil)
    missing.add([first], at: now)
    #expect(missing.next == now)
    for (index, seconds) in [1, 2, 4, 8, 16, 32, 60, 60].enumerated() {
      #expect(missing.note("no", of: first) == (index == 0))
      missing.noteAttempt(of: [first], at: now)
      #expect(missing.next == now + Duration(seconds: Double(seconds)))
      now = now + Duration(seconds: Double(seconds))
    }
    #expect(missing.note("not allowed", of: first))
    // Added while the other is looked for.
    missing.add([second], at: now)
    missing.noteAttempt(of: [first], at: now)
    #expect(missing.next == now)
    missing.noteAttempt(of: [first, second], at: now)
    #expect(missing.next == now + Duration(seconds: 1))
    #expect(missing.remove(first) == (true, true))
    #expect(missing.remove(first) == (false, false))
    #expect(missing.remove(second) == (true, false))
    #expect(missing.next == nil && missing.destinations.isEmpty)
  }
}
