import Media
import Synchronization

/// Lets no more frames through than so many a second, as evenly as they come. The limit may change from any thread.
final class FrameThinning: Sendable {
  /// The shortest interval in nanoseconds; 0 for none.
  private let interval = Atomic<Int64>(0)

  /// Allows `rate` frames a second; nil for all.
  func limit(to rate: Double?) {
    interval.store(rate.map { Int64(1e9 / $0) } ?? 0, ordering: .relaxed)
  }

  /// Whether a frame of `timestamp` may pass. `due` is the caller's: when the next one is to come.
  func passes(_ timestamp: MediaTime, due: inout MediaTime?) -> Bool {
    let interval = MediaTime(nanoseconds: self.interval.load(ordering: .relaxed))
    guard interval > .zero else {
      due = nil
      return true
    }
    guard let next = due, next - timestamp < interval * 2, timestamp - next < interval * 2 else {
      // The first one, or the first after a pause.
      due = timestamp + interval
      return true
    }
    // A camera's clock trembles: a frame that is a little early is the one that is due.
    guard timestamp + MediaTime(nanoseconds: interval.nanoseconds / 8) >= next else { return false }
    due = next + interval
    return true
  }
}
