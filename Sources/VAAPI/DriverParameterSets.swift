import Media

/// The parameter sets of a driver that writes its own: what it wrote, and what is sent instead, which is the same with
/// a VUI of ours.
struct DriverParameterSets {
  /// With our VUI.
  let sent: ParameterSets
  private let written: ParameterSets
  private let parameters: SequenceParameters

  /// Those of the IDR picture `coded`, in a stream that is to be described by `parameters`.
  ///
  /// - Throws: ``ParameterSetError`` where there are none in it, or none that can be read.
  init(_ coded: CodedPicture, _ parameters: SequenceParameters) throws(ParameterSetError) {
    guard let sequence = coded.sequence, let picture = coded.picture,
      let written = ParameterSets(sequence: Array(sequence), picture: Array(picture)),
      let sent = ParameterSets(
        sequence: try Self.replacingVUI(in: written.sequence, parameters), picture: written.picture)
    else { throw .truncated }
    self.sent = sent
    self.written = written
    self.parameters = parameters
  }

  /// Whether the IDR picture `coded` goes with them: it brings the same or none. The driver's VUI does not count, since
  /// ours is in its place.
  func apply(to coded: CodedPicture) -> Bool {
    guard let sequence = coded.sequence, let picture = coded.picture else { return true }
    guard picture.elementsEqual(written.picture) else { return false }
    if sequence.elementsEqual(written.sequence) { return true }
    do throws(ParameterSetError) {
      return try Self.replacingVUI(in: Array(sequence), parameters) == sent.sequence
    } catch {
      // What cannot be read is none of ours.
      return false
    }
  }

  private static func replacingVUI(
    in sequence: [UInt8], _ parameters: SequenceParameters
  ) throws(ParameterSetError) -> [UInt8] {
    try SequenceParameterSet.replacingVUI(in: sequence, color: parameters.color, frameRate: parameters.frameRate)
  }
}
