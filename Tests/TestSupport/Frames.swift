package import Media
package import Platform

extension FramePool {
  /// A frame taken at `time`; an error where the pool has none left. (`#require` takes no noncopyable value.)
  package func frame(at time: Instant = .zero, color: ColorDescription = .bt709) throws -> Frame {
    guard let frame = checkout(color: color, timestamp: time, captured: time) else { throw Exhausted() }
    return frame
  }

  /// Every frame was in use.
  package struct Exhausted: Error {}
}
