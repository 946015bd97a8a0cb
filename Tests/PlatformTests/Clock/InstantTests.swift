import Platform
import Testing

@Suite struct InstantTests {
  private static let begin = Instant(nanoseconds: 5_000_000_000)

  @Test func `from one point to another is a length of time, of either sign`() {
    let later = Self.begin + .milliseconds(1500)
    #expect(later == Instant(nanoseconds: 6_500_000_000))
    #expect(later - Self.begin == .milliseconds(1500))
    #expect(Self.begin - later == .milliseconds(-1500))
    #expect(later - .milliseconds(1500) == Self.begin)
    #expect(Self.begin + .seconds(-5) == .zero)
  }

  @Test func `the earlier point is the lesser`() {
    let later = Self.begin + Duration(nanoseconds: 1)
    #expect(Self.begin < later && later > Self.begin && max(Self.begin, later) == later)
    #expect(.zero < Self.begin)
    #expect(Set([Self.begin, later, Self.begin]).count == 2)
  }

  @Test func `the clock goes on`() {
    let first = Instant.now()
    let second = Instant.now()
    #expect(first > .zero && second >= first)
  }

  @Test(arguments: [
    (Int64(0), Int64(0)), (1_000_000_000, 90_000), (33_333_333, 3000), (11_111, 1), (5_555, 0), (5_556, 1),
    (9_000_000_000_000_000_000, 810_000_000_000_000),
  ])
  func `nanoseconds become ticks of 90 kHz, rounded, without overflow`(nanoseconds: Int64, ticks: Int64) {
    #expect(Instant(nanoseconds: nanoseconds).ticks(rate: 90_000) == ticks)
    #expect(Duration(nanoseconds: nanoseconds).ticks(rate: 90_000) == ticks)
  }
}

@Suite struct DurationTests {
  @Test func `lengths have a sum, a difference, multiples and an order`() {
    let (short, long) = (Duration.milliseconds(40), Duration.seconds(2))
    #expect(long + short == Duration(nanoseconds: 2_040_000_000))
    #expect(short - long == Duration(nanoseconds: -1_960_000_000))
    #expect(short * 50 == long && short * 0 == .zero)
    #expect(short < long && min(short, long) == short)
    #expect(Set([short * 2, .milliseconds(80)]).count == 1)
  }

  @Test func `seconds and milliseconds may have fractions`() {
    #expect(Duration.milliseconds(1500).seconds == 1.5)
    #expect(Duration(nanoseconds: 2_500_000).milliseconds == 2.5)
    #expect(Duration(nanoseconds: -250_000_000).seconds == -0.25)
  }

  @Test func `seconds are rounded to the nanosecond, and clamped`() {
    #expect(Duration(seconds: 0.04) == .milliseconds(40))
    #expect(Duration(seconds: 1.4e-9) == Duration(nanoseconds: 1))
    #expect(Duration(seconds: -0.5) == .milliseconds(-500))
    #expect(Duration(seconds: 1e12) == Duration(nanoseconds: 9_200_000_000_000_000_000))
    #expect(Duration(seconds: -.infinity) == Duration(nanoseconds: -9_200_000_000_000_000_000))
  }
}
