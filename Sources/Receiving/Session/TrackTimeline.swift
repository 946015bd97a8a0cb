import Platform
import RTP

/// The mapping of a track's RTP time stamps to instants. It begins with the first one's arrival.
struct TrackTimeline {
  /// The RTP clock rate in ticks per second.
  let clockRate: Int64
  /// The ticks since the first time stamp, however often the time stamps wrapped or began anew.
  private(set) var position: Int64 = 0
  /// The instant that belongs to a position, and the last time stamp.
  private var origin: (instant: Instant, position: Int64, last: UInt32)?

  /// The distance between the timeline and the clock beyond which the timeline begins anew.
  private static let limit = Duration.seconds(60)

  init(clockRate: Int64) { self.clockRate = clockRate }

  /// Goes on to a time stamp that came at `arrival`, and returns its instant. A sender that begins anew has another time stamp:
  /// then the timeline begins anew too.
  mutating func proceed(to timestamp: UInt32, at arrival: Instant) -> Instant {
    guard let former = origin else {
      origin = (arrival, position, timestamp)
      return arrival
    }
    position &+= Int64(Int32(bitPattern: timestamp &- former.last))
    origin?.last = timestamp
    let instant = former.instant + span(position &- former.position)
    guard abs((instant - arrival).nanoseconds) < Self.limit.nanoseconds else {
      origin = (arrival, position, timestamp)
      return arrival
    }
    return instant
  }

  /// Returns the instant of a time stamp near the last one; nil before the first.
  func instant(of timestamp: UInt32) -> Instant? {
    guard let origin else { return nil }
    let ticks = position &- origin.position &+ Int64(Int32(bitPattern: timestamp &- origin.last))
    return origin.instant + span(ticks)
  }

  /// Moves all later instants by `shift`.
  mutating func move(by shift: Duration) {
    if let instant = origin?.instant { origin?.instant = instant + shift }
  }

  private func span(_ ticks: Int64) -> Duration {
    // Positions of one origin are within the limit's ticks and one time stamp's range.
    let (seconds, rest) = ticks.quotientAndRemainder(dividingBy: clockRate)
    return Duration(nanoseconds: seconds &* 1_000_000_000 &+ rest * 1_000_000_000 / clockRate)
  }
}

/// The common clock of a session's tracks, by their sender reports (RFC 3550 section 6.4.1): the picture's timeline is the
/// sound's too.
package final class SessionClock {
  /// An instant of the picture's timeline, and the sender's wall clock at that time.
  private var reference: (instant: Instant, ntp: NTPTimestamp)?

  /// Creates a clock without a report.
  package init() {}

  /// The smallest step that the sound's timeline makes: less is the sender's rounding.
  private static let least = Duration.milliseconds(1)
  /// The largest step: tracks that are farther apart have no common clock.
  private static let most = Duration.seconds(10)

  /// Takes a report of the picture's sender.
  func take(_ report: SenderReport, on timeline: TrackTimeline) {
    if let instant = timeline.instant(of: report.rtpTimestamp) { reference = (instant, report.ntp) }
  }

  /// Brings the sound's timeline to the picture's.
  func align(_ timeline: inout TrackTimeline, _ report: SenderReport) {
    guard let reference, let present = timeline.instant(of: report.rtpTimestamp) else { return }
    let difference = Int64(bitPattern: report.ntp.rawValue &- reference.ntp.rawValue)
    let span = Duration(seconds: Double(difference) / 4_294_967_296)
    guard abs(span.nanoseconds) < 3600 * 1_000_000_000 else { return }
    let shift = reference.instant + span - present
    guard abs(shift.nanoseconds) >= Self.least.nanoseconds, abs(shift.nanoseconds) <= Self.most.nanoseconds else {
      return
    }
    timeline.move(by: shift)
  }
}
