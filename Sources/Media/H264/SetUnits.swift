/// The parameter sets of a stream as NAL units, in memory that lives as long as this object. An encoder lends them before each
/// key frame.
package final class SetUnits {
  /// The NAL units in the order of ``ParameterSets/nalUnits``.
  package let units: [NALUnit]
  private let memory: UnsafeMutableRawBufferPointer

  /// Copies `sets`.
  package init(_ sets: ParameterSets) {
    let sources = sets.nalUnits
    memory = .allocate(byteCount: sources.reduce(0) { $0 + $1.count }, alignment: 1)
    memory.copyBytes(from: sources.joined())
    let bytes = UnsafeRawBufferPointer(memory)
    var position = 0
    units = sources.map { source in
      let range = position..<position + source.count
      position = range.upperBound
      guard let unit = NALUnit(UnsafeRawBufferPointer(rebasing: bytes[range])) else {
        preconditionFailure("a parameter set has at least its header")
      }
      return unit
    }
  }

  deinit {
    memory.deallocate()
  }
}
