import Platform
import Synchronization

/// Limits the number of frames a second, and keeps them as even as they come. The limit may change from any thread.
final class FrameThinning: Sendable {
  /// The shortest interval in nanoseconds; 0 for none.
  private let interval = Atomic<Int64>(0)

  /// Allows `rate` frames a second; nil for all.
  func limit(to rate: Double?) {
    interval.store(rate.map { Int64(1e9 / $0) } ?? 0, ordering: .relaxed)
  }

  /// Returns `true` if a frame of `timestamp` may pass. `due` belongs to the caller: the time at which the next frame
  /// is due.
  func passes(_ timestamp: Instant, due: inout Instant?) -> Bool {
    let interval = Duration(nanoseconds: self.interval.load(ordering: .relaxed))
    guard interval > .zero else {
      due = nil
      return true
    }
    guard let next = due, next - timestamp < interval * 2, timestamp - next < interval * 2 else {
      // The first frame, or the first after a pause.
      due = timestamp + interval
      return true
    }
    // A camera's clock jitters: a frame that is a little early is the one that is due.
    guard timestamp + Duration(nanoseconds: interval.nanoseconds / 8) >= next else { return false }
    due = next + interval
    return true
  }
}
