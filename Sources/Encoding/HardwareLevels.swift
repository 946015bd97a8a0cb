package import Media
import Synchronization

/// The quality levels of the hardware that encodes a stream, as its last picture had them. The threads of the drivers write them;
/// any thread may read them.
package final class HardwareLevels: Sendable {
  private struct State {
    var levels: QualityLevels?
    /// `true` if the driver has refused another level in mid-stream. It would do so again.
    var isFixed = false
  }
  private let state = Mutex(State())
  private let hasRefused = Atomic(false)

  /// Creates levels that are not known yet.
  package init() {}

  /// The levels; nil before the first picture by hardware, and for hardware without levels.
  package var levels: QualityLevels? { state.withLock { $0.levels } }

  /// `true` if another level needs another encoder.
  package var isFixed: Bool { state.withLock { $0.isFixed } }

  /// Notes the levels of the picture that hardware has encoded.
  package func note(_ levels: QualityLevels?) {
    let isRefusal = state.withLock { state -> Bool in
      // An encoder that is opened again may refuse a level once more.
      let hadRefused = state.levels?.isFixed ?? false
      state.levels = levels
      guard let levels, levels.isFixed, !hadRefused else { return false }
      state.isFixed = true
      return true
    }
    if isRefusal { hasRefused.store(true, ordering: .releasing) }
  }

  /// Returns `true` once after each encoder whose driver has refused another level.
  package func takeRefusal() -> Bool {
    hasRefused.load(ordering: .relaxed) && hasRefused.exchange(false, ordering: .acquiring)
  }
}
