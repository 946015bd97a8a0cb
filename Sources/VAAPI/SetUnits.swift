import Media

/// The parameter sets as NAL units in their own memory, ready to be lent.
final class SetUnits {
  let sequence: NALUnit
  let picture: NALUnit
  private let memory: UnsafeMutableRawBufferPointer

  init(_ sets: ParameterSets) {
    memory = .allocate(byteCount: sets.sequence.count + sets.picture.count, alignment: 1)
    memory.copyBytes(from: sets.sequence + sets.picture)
    let bytes = UnsafeRawBufferPointer(memory)
    guard let sequence = NALUnit(UnsafeRawBufferPointer(rebasing: bytes[..<sets.sequence.count])),
      let picture = NALUnit(UnsafeRawBufferPointer(rebasing: bytes[sets.sequence.count...]))
    else { preconditionFailure("neither of ParameterSets is ever empty") }
    self.sequence = sequence
    self.picture = picture
  }

  deinit {
    memory.deallocate()
  }
}
