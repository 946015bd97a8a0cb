import Platform

/// The time after a refusal in which nothing is tried again, longer each time.
struct MQTTPause {
  private var backOff: RetryBackOff
  private var end = Instant.zero

  init(_ delays: ClosedRange<Duration>) { backOff = RetryBackOff(delays) }

  /// Begins, unless it goes on.
  mutating func begin(at now: Instant) {
    if isOver(at: now) { end = now + backOff.failed() }
  }

  /// `true` while nothing keeps from another attempt.
  func isOver(at now: Instant) -> Bool { now >= end }

  /// Notes a success.
  mutating func reset() {
    backOff.reset()
    end = .zero
  }

  /// The same without a pause under way.
  var ended: MQTTPause {
    var pause = self
    pause.end = .zero
    return pause
  }
}
