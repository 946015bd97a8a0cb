/// Detects a thread of sound that stands still: in libopus, or before a track whose send stage does not go on. A driver
/// cannot do that, because another thread reads the card.
package struct SoundPulse: Sendable {
  /// The checks, a second apart, after which the thread is stuck. A pause of the whole program is one check.
  package static let limit = 10

  private var last = 0
  private var still = 0
  private var isStuck = false

  /// Notes the rounds of the thread so far. Returns `true` if the thread has become stuck, `false` if it goes on again,
  /// and nil where nothing has changed.
  mutating func note(_ rounds: Int) -> Bool? {
    still = rounds == last ? still + 1 : 0
    last = rounds
    guard isStuck != (still >= Self.limit) else { return nil }
    isStuck.toggle()
    return isStuck
  }
}
