package import Platform

/// The review of pictures of half the size: once the processors have sufficed for the full size long enough, the encoder is made anew.
/// The value has no clock.
///
/// A full size that did not last doubles the time for the next one, so that the size does not change to and fro.
package struct SizeReview: Sendable {
  private var backOff: RetryBackOff
  /// The time for which the processors must suffice.
  private var patience: Duration
  /// The time after which a full size has lasted.
  private let proof: Duration
  /// The time between two notes.
  private let interval: Duration
  private var nextNote = Instant.zero
  private var isHalf = false
  /// The time since which the processors suffice; nil if they did not suffice at the last note.
  private var sufficesSince: Instant?
  /// The time since which the pictures have the full size; nil if they have not.
  private var fullSince: Instant?

  /// Creates a review of pictures that begin.
  ///
  /// - Parameter patience: the time for which the processors must suffice at first. It doubles up to 32 times as long, and a sixth of
  ///   it is the time between two notes.
  package init(patience: Duration) {
    var backOff = RetryBackOff(patience...patience * 32)
    self.patience = backOff.failed()
    self.backOff = backOff
    proof = patience * 20
    interval = Duration(nanoseconds: patience.nanoseconds / 6)
  }

  /// Notes an encoder that begins at `now`.
  package mutating func begin(isHalf: Bool, at now: Instant) {
    if isHalf, let fullSince {
      if now - fullSince >= proof { backOff.reset() }
      patience = backOff.failed()
    }
    fullSince = isHalf ? nil : fullSince ?? now
    (self.isHalf, sufficesSince, nextNote) = (isHalf, nil, now + interval)
  }

  /// Returns `true` if the room is to be measured, and noted, at `now`.
  package func isDue(at now: Instant) -> Bool { isHalf && now >= nextNote }

  /// Notes that the processors suffice for the full size, or that they do not. Returns `true` if the encoder is to be made anew.
  package mutating func note(suffices: Bool, at now: Instant) -> Bool {
    nextNote = now + interval
    sufficesSince = suffices ? sufficesSince ?? now : nil
    guard let sufficesSince else { return false }
    return now - sufficesSince >= patience
  }
}
