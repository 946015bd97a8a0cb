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

/// Lends NAL units with these bytes, one behind the other in memory, to `body`.
package func withNALUnits<Result>(
  _ nalUnits: [[UInt8]], _ body: (UnsafeBufferPointer<NALUnit>) throws -> Result
) rethrows -> Result {
  try nalUnits.flatMap { $0 }.withUnsafeBytes { bytes in
    var start = 0
    let units = nalUnits.compactMap { unit in
      defer { start += unit.count }
      return NALUnit(UnsafeRawBufferPointer(rebasing: bytes[start..<start + unit.count]))
    }
    return try units.withUnsafeBufferPointer(body)
  }
}
