import Media

/// The parameter sets as NAL units in their own memory, ready to be lent.
final class SetUnits {
  /// The NAL units in the order of ``/Media/ParameterSets/nalUnits``.
  let units: [NALUnit]
  private let memory: UnsafeMutableRawBufferPointer

  init(_ sets: ParameterSets) {
    let sources = sets.nalUnits
    memory = .allocate(byteCount: sources.reduce(0) { $0 + $1.count }, alignment: 1)
    memory.copyBytes(from: sources.joined())
    let bytes = UnsafeRawBufferPointer(memory)
    var position = 0
    units = sources.map { source in
      let range = position..<position + source.count
      position = range.upperBound
      guard let unit = NALUnit(UnsafeRawBufferPointer(rebasing: bytes[range])) else {
        preconditionFailure("none of ParameterSets is ever empty")
      }
      return unit
    }
  }

  deinit {
    memory.deallocate()
  }
}
