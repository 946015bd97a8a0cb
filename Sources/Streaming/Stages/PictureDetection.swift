import Detection
import Media
package import Platform
import Synchronization

/// The findings of the detectors of the picture.
package struct PictureFindings: Hashable, Sendable {
  /// The time since which something has moved; nil if nothing moves, or nobody looks for it.
  package var movement: Instant?
  /// The confidence of the movement, 0…1.
  package var confidence = 0.0
  /// The time since which the picture has been black; nil if it is not.
  package var dark: Instant?
  /// The mean brightness of the last measured picture, 0…255.
  package var brightness = 0.0

  /// Creates findings of nothing.
  package init() {}
}

/// Looks for movement, and for a picture that is black. The capture thread notes each picture; a few of them are
/// measured. Nobody waits: others read the findings.
package final class PictureDetection: @unchecked Sendable {
  // Sendable: `grid`, `detector` and `due` are the capture thread's own. The findings are under a lock.
  private var grid = LumaGrid()
  private var detector: MovementDetector?
  private var due = Instant.zero
  private let interval: Duration
  private let shared = Mutex(PictureFindings())

  /// Creates a detection.
  ///
  /// - Parameter movement: the settings for movement; nil measures brightness alone, every ten seconds.
  init(_ movement: MovementDetector.Settings?) {
    if let movement { detector = MovementDetector(movement) }
    interval = Duration(seconds: movement == nil ? 10 : 1 / MovementDetector.rate)
  }

  /// The findings so far. Any thread may read them.
  package var findings: PictureFindings { shared.withLock { $0 } }

  /// Notes a picture. A placeholder says nothing about the room, and a picture that the camera has coded has no samples.
  func note(_ frame: borrowing Frame) {
    let time = frame.captured
    guard frame.coded == nil else {
      if due != .zero {
        due = .zero
        shared.withLock { $0 = PictureFindings() }
      }
      return
    }
    guard time >= due, !frame.isPlaceholder else { return }
    due = time + interval
    grid.measure(frame.planes)
    detector?.note(grid, at: Double(time.nanoseconds) / 1e9)
    let movement = (detector?.since).map { Instant(nanoseconds: Int64($0 * 1e9)) }
    let confidence = detector?.confidence ?? 0
    let (isDark, brightness) = (grid.isDark, Double(grid.mean))
    shared.withLock { findings in
      findings.movement = movement
      findings.confidence = confidence
      findings.dark = isDark ? findings.dark ?? time : nil
      findings.brightness = brightness
    }
  }
}
