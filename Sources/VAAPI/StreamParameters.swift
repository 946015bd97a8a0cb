import Media

/// The headers, the rate control and the name of a stream through one entry point.
struct StreamParameters {
  /// The entry point and its capabilities, as the driver lists them.
  let offer: VAAPICapabilities.Encoder
  let parameters: H264Parameters
  let rate: RateParameters
  /// The parameter sets that nightjar writes.
  let parameterSets: ParameterSets
  /// The encoder's name, for display.
  let name: String

  /// - Throws: ``EncoderError/output(library:_:)`` if the parameter sets cannot be made.
  init(_ configuration: EncoderConfiguration, _ session: EncodingSession) throws(EncoderError) {
    offer = session.offer
    // A level above the driver's range becomes the driver's fastest one, because presets are written for every driver.
    let levels = session.offer.qualityLevels
    rate = RateParameters(
      mode: session.mode, quality: levels > 0 ? configuration.vaapiQuality.map { min($0, levels) } : nil)
    parameters = Self.headers(configuration, session.offer)
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

  private static func headers(
    _ configuration: EncoderConfiguration, _ offer: VAAPICapabilities.Encoder
  ) -> H264Parameters {
    var (peak, buffer, initial) = (0, 0, 26)
    switch configuration.rateControl {
    case .constantQuantizer(let quantizer): initial = quantizer
    case .constantBitrate, .variableBitrate:
      let factor = configuration.rateControl == .variableBitrate ? EncoderConfiguration.peakFactor : 1
      peak = Int(Double(configuration.bitrate) * factor)
      buffer = Int(Double(configuration.bitrate) * configuration.bufferSeconds)
    }
    let level = H264Level.lowest(
      size: configuration.size, frameRate: configuration.frameRate, profile: configuration.profile, peak: peak,
      buffer: buffer)
    return H264Parameters(
      SequenceParameters(
        profile: configuration.profile, levelIDC: level, size: configuration.size, color: configuration.color,
        frameRate: configuration.frameRate),
      PictureParameterSet(profile: configuration.profile, initialQuantizer: initial),
      slices: min(configuration.slices, max(1, offer.slices)), powerOfTwoRows: offer.needsPowerOfTwoRows)
  }
}
