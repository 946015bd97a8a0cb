import Media
import Synchronization

/// A frame on its way to another thread.
final class Parcel: Sendable {
  private let frame: Mutex<Frame?>

  init(_ frame: consuming Frame) {
    var content: Frame? = consume frame
    self.frame = Mutex(content.take())
  }

  /// The parts that are values.
  func look<Result>(_ body: (NV12Planes, DMABuffer?) -> Result) -> Result? {
    frame.withLock { frame in
      guard let planes = frame?.planes else { return nil }
      return body(planes, frame?.dmaBuffer)
    }
  }

  /// Lets the frame go.
  func end() { frame.withLock { $0 = nil } }
}
