import Alerts
import Platform
import Testing

/// The conditions that become alerts, second by second.
@Suite struct AlertPolicyTests {
  private static let start = Instant(nanoseconds: 1_000_000_000_000)

  private static func time(_ second: Int64) -> Instant { start + .seconds(second) }

  private static func noise(_ second: Int64, camera: String = "nursery") -> AlertCondition {
    AlertCondition(.noise, camera: camera, since: time(second), text: "noise")
  }

  /// The decisions of 200 seconds, in which `camera` is loud in `loud`.
  private static func decisions(loud: (Int64) -> Bool) -> [(second: Int64, decision: AlertDecision)] {
    var policy = AlertPolicy(at: start)
    var began: Int64?
    var all: [(Int64, AlertDecision)] = []
    for second in 0..<Int64(200) {
      began = loud(second) ? began ?? second : nil
      let conditions = began.map { [noise($0)] } ?? []
      all += policy.look(conditions, at: time(second)).map { (second, $0) }
    }
    return all
  }

  @Test func `an alert begins and ends once, however long it lasts`() {
    let decisions = Self.decisions { (20..<150).contains($0) }
    #expect(decisions.map(\.second) == [20, 150])
    #expect(
      decisions.map(\.decision) == [
        .begin(Self.noise(20), suppressed: 0), .end(Self.noise(20).subject, since: Self.time(20)),
      ])
  }

  @Test func `at most one alert of a kind begins each minute, and the next one says how many were left out`() {
    // Two seconds of noise every five seconds.
    let decisions = Self.decisions { $0 >= 20 && $0 % 5 < 2 }
    var beginnings: [Int64] = []
    var suppressed: [Int] = []
    for case (let second, .begin(_, let count)) in decisions {
      beginnings.append(second)
      suppressed.append(count)
    }
    #expect(beginnings == [20, 80, 140])
    // Of twelve each minute, one is told.
    #expect(suppressed == [0, 11, 11])
    #expect(decisions.count { if case .end = $0.decision { true } else { false } } == 3)
  }

  @Test func `a condition that was left out at first and lasts is told once its minute is over`() {
    let decisions = Self.decisions { $0 == 20 || $0 >= 30 }
    #expect(decisions.map(\.second) == [20, 21, 80])
    #expect(decisions.last?.decision == .begin(Self.noise(30), suppressed: 0))
  }

  @Test func `cameras and kinds do not delay each other`() {
    var policy = AlertPolicy(at: Self.start)
    let conditions = [
      Self.noise(0), Self.noise(0, camera: "door"),
      AlertCondition(.tooHot, camera: nil, since: Self.start, text: "hot"),
    ]
    #expect(policy.look(conditions, at: Self.time(0)).count == 3)
    #expect(policy.look(conditions, at: Self.time(1)).isEmpty)
  }

  @Test func `an alert of the former run ends after the start has settled, or goes on`() {
    var policy = AlertPolicy(open: [Self.noise(0).subject], at: Self.start)
    #expect(policy.look([], at: Self.time(9)).isEmpty)
    #expect(policy.look([], at: Self.time(10)).count == 1)
    var other = AlertPolicy(open: [Self.noise(0).subject], at: Self.start)
    #expect(other.look([Self.noise(3)], at: Self.time(3)).isEmpty)
    #expect(other.look([Self.noise(3)], at: Self.time(12)).isEmpty)
    #expect(other.look([], at: Self.time(13)).count == 1)
  }

  @Test(arguments: [
    ("22:00-06:30", 23 * 60, true), ("22:00-06:30", 6 * 60 + 29, true), ("22:00-06:30", 6 * 60 + 30, false),
    ("22:00-06:30", 12 * 60, false), ("13:00-14:15", 13 * 60, true), ("13:00-14:15", 14 * 60 + 15, false),
  ])
  func `quiet hours may pass midnight`(text: String, minute: Int, isQuiet: Bool) throws {
    #expect(try #require(QuietHours(text: text)).contains(minute: minute) == isQuiet)
  }

  @Test(arguments: [
    "", "22:00", "22:00-22:00", "24:00-06:00", "22:60-06:00", "22-6", "2200-0630", "-1:00-02:00", "1:5-2:00",
  ])
  func `quiet hours of another form are refused`(text: String) { #expect(QuietHours(text: text) == nil) }

  @Test func `a time that was written is read again, and no other text`() throws {
    for seconds: Int64 in [0, 951_782_399, 951_782_400, 1_764_001_234, 4_102_444_800] {
      #expect(AlertClock.seconds(of: AlertClock.text(seconds)) == seconds)
    }
    // 2000 had a leap day, and 1970 begins with zero (RFC 3339 section 5.6).
    #expect(AlertClock.seconds(of: "2000-02-29T00:00:00Z") == 951_782_400)
    for text in [
      "", "2026-11-21", "2026-11-21T12:03:04", "2026-11-21T12:03:04+01:00", "2026-02-30T12:03:04Z",
      "2026-11-21T24:03:04Z", "2026-11-21T12:03:4Z", "99999999999-11-21T12:03:04Z", "2026-11-21 12:03:04Z",
    ] {
      #expect(AlertClock.seconds(of: text) == nil, "\(text)")
    }
  }
}
