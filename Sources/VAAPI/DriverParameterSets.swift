import Media

/// The parameter sets of a driver that writes its own. The sent sets differ from the written ones only in the VUI.
struct DriverParameterSets {
  /// The sent parameter sets, with the VUI replaced.
  let sent: ParameterSets
  private let written: ParameterSets
  private let parameters: SequenceParameters

  /// Reads the parameter sets of the IDR picture `coded`, in a stream that `parameters` describes.
  ///
  /// - Throws: ``ParameterSetError`` if the picture has no parameter sets, or they cannot be read.
  init(_ coded: CodedBuffer, _ parameters: SequenceParameters) throws(ParameterSetError) {
    guard let sequence = coded.sequence, let picture = coded.picture,
      let written = ParameterSets(sequence: Array(sequence), picture: Array(picture)),
      let sent = ParameterSets(
        sequence: try Self.replacingVUI(in: written.sequence, parameters), picture: written.picture)
    else { throw .truncated }
    self.sent = sent
    self.written = written
    self.parameters = parameters
  }

  /// Returns `true` if the IDR picture `coded` has the same parameter sets or none. The comparison ignores the driver's
  /// VUI, which is replaced.
  func apply(to coded: CodedBuffer) -> Bool {
    guard let sequence = coded.sequence, let picture = coded.picture else { return true }
    guard picture.elementsEqual(written.picture) else { return false }
    if sequence.elementsEqual(written.sequence) { return true }
    do throws(ParameterSetError) {
      return try Self.replacingVUI(in: Array(sequence), parameters) == sent.sequence
    } catch {
      // A set that cannot be read differs from the known one.
      return false
    }
  }

  private static func replacingVUI(
    in sequence: [UInt8], _ parameters: SequenceParameters
  ) throws(ParameterSetError) -> [UInt8] {
    try SequenceParameterSet.replacingVUI(in: sequence, color: parameters.color, frameRate: parameters.frameRate)
  }
}
