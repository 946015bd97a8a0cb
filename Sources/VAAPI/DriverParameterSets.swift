import Media

/// The parameter sets of a driver that writes its own. The sent sets differ from the written ones only in the VUI, and in the
/// conformance window of HEVC, of which VA-API does not tell a driver.
struct DriverParameterSets {
  /// The sent parameter sets.
  let sent: ParameterSets
  private let written: ParameterSets
  private let configuration: EncoderConfiguration

  /// Reads the parameter sets of the IDR picture `coded`, in a stream that `configuration` describes.
  ///
  /// - Throws: ``ParameterSetError`` if the picture has no parameter sets, or they cannot be read.
  init(_ coded: CodedBuffer, _ configuration: EncoderConfiguration) throws(ParameterSetError) {
    guard let written = coded.parameterSets,
      let sent = ParameterSets(
        written.codec, video: written.video, sequence: try Self.describing(written.sequence, configuration),
        picture: written.picture)
    else { throw .truncated }
    self.sent = sent
    self.written = written
    self.configuration = configuration
  }

  /// Returns `true` if the IDR picture `coded` has the same parameter sets or none. The comparison ignores what is replaced.
  func apply(to coded: CodedBuffer) -> Bool {
    if coded.has(written) { return true }
    guard let other = coded.parameterSets, other.video == written.video, other.picture == written.picture else {
      return false
    }
    do throws(ParameterSetError) {
      return try Self.describing(other.sequence, configuration) == sent.sequence
    } catch {
      // A set that cannot be read differs from the known one.
      return false
    }
  }

  private static func describing(
    _ sequence: [UInt8], _ configuration: EncoderConfiguration
  ) throws(ParameterSetError) -> [UInt8] {
    switch configuration.codec {
    case .h264:
      try SequenceParameterSet.replacingVUI(
        in: sequence, color: configuration.color, frameRate: configuration.frameRate)
    case .hevc:
      try HEVCSequenceParameterSet.replacingVUI(
        in: sequence, color: configuration.color, frameRate: configuration.frameRate, size: configuration.size)
    }
  }
}
