import Platform
import Serving
import TestSupport
import Testing

/// The round trip by which a connection's kernel gets packets of pictures.
@Suite struct PresentRoundTripTests {
  @Test func `it follows a longer round trip slowly, and a shorter one at once`() {
    var roundTrip = PresentRoundTrip()
    /// Returns the milliseconds after the kernel has told its smoothed round trip at that time.
    func note(_ smoothed: Double, at seconds: Double, shortest: Double = 0.03) -> Int {
      roundTrip.note(smoothed: smoothed, shortest: shortest, at: Instant(seconds: seconds))
      return Int((roundTrip.seconds * 1000).rounded())
    }
    #expect(note(0.05, at: 100) == 30)
    #expect(note(0.05, at: 101) == 50)
    // The queue behind a key frame is no round trip, and soon over.
    #expect(note(0.5, at: 101.1) == 70)
    #expect(note(0.04, at: 101.2) == 40)
    // A longer route is.
    #expect(note(0.15, at: 101.3) == 60)
    #expect(note(0.15, at: 102) == 150)
    #expect(note(0.15, at: 103) == 150)
    // The kernel has forgotten the shorter ones.
    #expect(note(0.15, at: 103, shortest: 0.16) == 160)
    // A clock that does not advance changes nothing.
    #expect(note(0.9, at: 103, shortest: 0.03) == 160)
  }
}
