import Media

/// The headers, the rate control and the name of a stream through one entry point.
struct StreamParameters {
  /// The entry point and its capabilities, as the driver lists them.
  let offer: VAAPICapabilities.Encoder
  /// The configuration that the parameter sets describe, whatever changes while the stream runs.
  let configuration: EncoderConfiguration
  let parameters: CodecParameters
  var rate: RateParameters
  /// The number of the driver's quality levels; nil if there are none to choose from.
  let levelCount: Int?
  /// The parameter sets that nightjar writes.
  let parameterSets: ParameterSets
  /// The encoder's name, for display.
  let name: String

  /// - Throws: ``EncoderError/output(library:_:)`` if the parameter sets cannot be made.
  init(_ configuration: EncoderConfiguration, _ session: EncodingSession) throws(EncoderError) {
    offer = session.offer
    self.configuration = configuration
    // A level above the driver's range becomes the driver's fastest one, because presets are written for every driver.
    let levels = session.offer.qualityLevels
    rate = RateParameters(
      mode: session.mode, quality: levels > 0 ? configuration.vaapiQuality.map { min($0, levels) } : nil)
    levelCount = levels > 1 && VAAPICapabilities.hasOrderedLevels(vendor: session.vendor) ? levels : nil
    // A driver that writes slice headers itself may refer to a PPS of its own choice.
    let choosesIDs = session.packed.isSuperset(of: [.sequence, .slice])
    if let hevc = session.offer.hevc {
      parameters = .hevc(
        Self.headers(configuration, hevc, isRateControlled: rate.isControlled, choosesIDs: choosesIDs))
    } else {
      parameters = .h264(Self.headers(configuration, session.offer, choosesIDs: choosesIDs))
    }
    guard let sets = parameters.parameterSets else {
      throw .output(library: "VA-API", "parameter sets that are none")
    }
    parameterSets = sets
    let slices = parameters.sliceCount
    let mode = session.mode.map(\.rawValue) ?? "CQP"
    name =
      "VA-API (\(session.vendor)), \(offer.entryPoint.rawValue), \(mode), \(slices) slice\(slices == 1 ? "" : "s")"
      + (slices == configuration.slices ? "" : " of \(configuration.slices)")
  }

  /// Returns what the level follows from, and the initial quantizer of the PPS: 0 bits a second and 0 bits without rate control.
  private static func demands(
    _ configuration: EncoderConfiguration
  ) -> (peak: Int, buffer: Int, initialQuantizer: Int) {
    switch configuration.rateControl {
    case .constantQuantizer(let quantizer): return (0, 0, quantizer)
    case .constantBitrate, .variableBitrate:
      let factor = configuration.rateControl == .variableBitrate ? EncoderConfiguration.peakFactor : 1
      return (
        Int(Double(configuration.bitrate) * factor), Int(Double(configuration.bitrate) * configuration.bufferSeconds),
        26
      )
    }
  }

  private static func headers(
    _ configuration: EncoderConfiguration, _ offer: VAAPICapabilities.Encoder, choosesIDs: Bool
  ) -> H264Parameters {
    let (peak, buffer, initial) = demands(configuration)
    let level = H264Level.lowest(
      size: configuration.size, frameRate: configuration.frameRate, profile: configuration.profile, peak: peak,
      buffer: buffer)
    let ids = choosesIDs ? ParameterSetIDs(configuration) : ParameterSetIDs()
    var sequence = SequenceParameters(
      profile: configuration.profile, levelIDC: level, size: configuration.size, color: configuration.color,
      frameRate: configuration.frameRate)
    var picture = PictureParameterSet(profile: configuration.profile, initialQuantizer: initial)
    sequence.identifier = ids.sequence
    (picture.identifier, picture.sequenceParameterSet) = (ids.picture, ids.sequence)
    return H264Parameters(
      sequence, picture, slices: min(configuration.slices, max(1, offer.slices)),
      powerOfTwoRows: offer.needsPowerOfTwoRows)
  }

  private static func headers(
    _ configuration: EncoderConfiguration, _ hevc: HEVCCapabilities, isRateControlled: Bool, choosesIDs: Bool
  ) -> HEVCParameters {
    let (peak, buffer, initial) = demands(configuration)
    var sequence = HEVCSequenceParameters(
      levelIDC: 0, size: configuration.size, color: configuration.color, frameRate: configuration.frameRate)
    hevc.apply(to: &sequence)
    let level = HEVCLevel.lowest(
      size: sequence.codedSize, frameRate: configuration.frameRate, peak: peak, buffer: buffer)
    (sequence.levelIDC, sequence.isHighTier) = level
    // The level follows from the size, which the tree blocks do not change.
    if level.identifier >= 150 { hevc.apply(to: &sequence, leastTreeBlockLog2: 5) }
    let ids = choosesIDs ? ParameterSetIDs(configuration) : ParameterSetIDs()
    var picture = HEVCPictureParameters(initialQuantizer: initial)
    hevc.apply(to: &picture, in: sequence, isRateControlled: isRateControlled)
    sequence.identifier = ids.sequence
    (picture.identifier, picture.sequenceParameterSet) = (ids.picture, ids.sequence)
    return HEVCParameters(sequence, picture, needsBothLists: hevc.needsBothLists)
  }
}
