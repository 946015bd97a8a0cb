import Encoding
import Media
import Platform
import Synchronization
import TestSupport
import Testing

/// A clock that stands still unless it is told otherwise.
final class ManualClock: Sendable {
  private let time = Mutex(Instant(seconds: 1000))

  func now() -> Instant { time.withLock { $0 } }

  func advance(by step: Duration) { time.withLock { $0 = $0 + step } }
}

@Suite struct DriverHealthTests {
  private static let reason = EncoderError.hung(library: "driver", after: Duration(seconds: 1))

  @Test func `a driver that hangs again and again is asked after 1, 2, 4, … 60 s, and after 1 s where it has worked`()
    throws
  {
    let clock = ManualClock()
    let health = DriverHealth(clock: clock.now)
    #expect(health.reason == nil)
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
      let number = health.abandon(Self.reason, after: Duration(seconds: 59))
      #expect(health.retryDelay == Duration(seconds: Double(seconds)))
      clock.advance(by: Duration(seconds: Double(seconds)) - Duration(nanoseconds: 1))
      #expect(health.reason != nil)
      clock.advance(by: Duration(nanoseconds: 1))
      #expect(health.reason == nil)
      health.comeBack(number)
    }
    _ = health.abandon(Self.reason, after: Duration(seconds: 60))
    #expect(health.retryDelay == Duration(seconds: 1))
    #expect(health.takeHangs() == 9)
    #expect(health.takeHangs() == 0)
  }

  @Test func `no more than three threads hang in a driver`() {
    let clock = ManualClock()
    let health = DriverHealth(clock: clock.now)
    let numbers = (0..<DriverHealth.stuckLimit).map { _ in health.abandon(Self.reason, after: .zero) }
    #expect(health.retryDelay == nil)
    clock.advance(by: Duration(seconds: 86_400))
    #expect(health.reason != nil)
    health.comeBack(numbers[1])
    #expect(health.reason == nil)
  }

  @Test func `a connection is stale while a thread hangs that got there after it was opened`() {
    let health = DriverHealth(clock: ManualClock().now)
    let before = health.hangs
    let number = health.abandon(Self.reason, after: .zero)
    let after = health.hangs
    #expect(health.isStale(since: before) && !health.isStale(since: after))
    health.comeBack(number)
    #expect(!health.isStale(since: before))
  }

  @Test func `each hang is told once`() {
    let health = DriverHealth(clock: ManualClock().now)
    for _ in 0..<2 {
      _ = health.abandon(Self.reason, after: .zero)
      #expect(health.takeNotice())
      #expect(!health.takeNotice())
    }
  }

  @Test func `hardware may take longer for the first frame after a rest`() {
    let patience = DriverPatience(working: Duration(seconds: 0.1), waking: Duration(seconds: 3))
    for idle in [0, 0.033, 0.99] { #expect(patience.limit(after: Duration(seconds: idle)) == Duration(seconds: 0.1)) }
    for idle in [1, 5, 86_400] {
      #expect(patience.limit(after: Duration(seconds: Double(idle))) == Duration(seconds: 3))
    }
    // Of a camera of one picture in two seconds every frame comes after a rest.
    let slow = DriverPatience(working: Duration(seconds: 6), waking: Duration(seconds: 3))
    #expect(slow.limit(after: Duration(seconds: 2)) == Duration(seconds: 6))
  }
}
