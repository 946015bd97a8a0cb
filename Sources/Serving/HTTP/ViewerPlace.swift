import HTTPTypes
import Platform
import Synchronization

/// A viewer's place among a camera's viewers, which the viewer can leave: a response body lives as long as its answer.
final class ViewerPlace<Sequence: Sendable>: Sendable {
  private let sequence: Mutex<Sequence?>

  init(_ sequence: Sequence) { self.sequence = Mutex(sequence) }

  /// The sequence that the camera delivers to the viewer; nil once the viewer has left.
  var current: Sequence? { sequence.withLock { $0 } }

  func take(_ new: Sequence) { sequence.withLock { $0 = new } }

  func leave() {
    // Released outside the lock.
    _ = sequence.withLock { $0.take() }
  }
}

extension ControlTarget {
  /// Returns a place that `open` gives, once a camera streams again and has room; nil if that takes longer than
  /// `patience`. ``changes`` tells of both.
  func again<Sequence>(for patience: Duration, _ open: () throws -> Sequence) async -> Sequence? {
    await changes.value(by: .now() + patience) { try? open() }
  }
}

extension HTTPFields {
  /// Returns headers that keep a browser from storing the answer, and from reading it as another type. They also keep
  /// it from pages that have not said where they are from.
  static func unstored(_ type: String, _ context: ControlContext) -> HTTPFields {
    [
      .contentType: type, .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
      .crossOriginResourcePolicy: context.isForAnyPage ? "cross-origin" : "same-origin",
    ]
  }
}
