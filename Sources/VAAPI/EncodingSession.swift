import CVA
import Media

/// Everything that an encoder has with the driver; gone with it.
final class EncodingSession {
  // Released in this order: what is encoded before what it is encoded from.
  let buffers: PictureBuffers
  let coded: CodedPicture
  let context: VAEncodingContext
  let imports: ImportedSurfaces
  let upload: SurfaceUpload
  /// What turns frames first; nil where that is not wanted, or not to be had.
  let turning: VideoTurning?
  /// The entry point that it goes through, and what the driver says of it.
  let offer: VAAPICapabilities.Encoder
  /// The rate control; nil where the driver says of none.
  let mode: VAAPICapabilities.RateControlMode?
  /// The headers that are ours.
  let packed: VAAPICapabilities.PackedHeaders
  let vendor: String

  /// Opens what of `offer` comes nearest to `configuration`.
  ///
  /// - Throws: ``EncoderError``.
  private init(
    _ display: VADisplayConnection, _ offer: VAAPICapabilities.Encoder, _ configuration: EncoderConfiguration,
    turns: Bool
  ) throws(EncoderError) {
    mode = Self.mode(for: configuration.rateControl, among: offer.rateControls)
    // Slice headers of ours go with an SPS of ours alone.
    packed = offer.packedHeaders.contains(.sequence) ? offer.packedHeaders.intersection([.sequence, .slice]) : []
    let config = try VAConfiguration(display, offer, mode: mode, packed: packed)
    guard try config.surfaceLimits().takesNV12 else {
      throw .unavailable("\(display.vendor) takes no NV12 pictures for \(offer.entryPoint.rawValue)")
    }
    upload = try SurfaceUpload(display, size: configuration.size)
    context = try VAEncodingContext(config, inputs: upload.surfaces)
    imports = ImportedSurfaces(display, size: configuration.size, isPossible: offer.importsDMABuffers)
    buffers = PictureBuffers(context)
    coded = CodedPicture(context)
    // The caller turns what this does not: that it cannot be had is no failure of the encoder's.
    turning =
      turns
      ? try? VideoTurning(display, size: configuration.size, imports: offer.importsDMABuffers) : nil
    self.offer = offer
    vendor = display.vendor
  }

  /// Opens the driver of `node` for `configuration`, by the preferred entry point that works, but for `excluded`.
  ///
  /// - Throws: ``EncoderError`` with what the first one lacked, where there is none.
  static func open(
    _ configuration: EncoderConfiguration, node: RenderNode, turns: Bool,
    without excluded: VAAPICapabilities.EntryPoint? = nil
  ) throws(EncoderError) -> EncodingSession {
    let display = try VADisplayConnection(node)
    let capabilities = try VAAPICapabilities(of: node, through: display)
    let offers = try candidates(capabilities, configuration).filter { $0.entryPoint != excluded }
    var first: EncoderError?
    for offer in offers {
      do throws(EncoderError) {
        try check(offer, configuration.size, vendor: display.vendor)
        return try EncodingSession(
          display, offer, configuration, turns: turns && capabilities.hasVideoProcessing)
      } catch {
        first = first ?? error
      }
    }
    throw first ?? .unavailable("\(display.vendor) (\(node.path)) offers no H.264 encoder")
  }

  /// What of the driver's has the right profile, the preferred entry point first.
  private static func candidates(
    _ capabilities: VAAPICapabilities, _ configuration: EncoderConfiguration
  ) throws(EncoderError) -> [VAAPICapabilities.Encoder] {
    let vendor = capabilities.vendor
    guard !capabilities.encoders.isEmpty else {
      throw .unavailable("\(vendor) (\(capabilities.node.path)) offers no H.264 encoder")
    }
    let fitting = capabilities.encoders.filter { $0.profile == configuration.profile }
    guard !fitting.isEmpty else {
      let others = H264Profile.allCases.filter { profile in capabilities.encoders.contains { $0.profile == profile } }
      throw .unavailable(
        "\(vendor) does not encode the \(configuration.profile.rawValue) profile: choose "
          + others.map(\.rawValue).joined(separator: " or "))
    }
    let preferred: VAAPICapabilities.EntryPoint = configuration.prefersLowPower ? .lowPower : .slice
    return fitting.filter { $0.entryPoint == preferred } + fitting.filter { $0.entryPoint != preferred }
  }

  private static func check(
    _ offer: VAAPICapabilities.Encoder, _ size: PictureSize, vendor: String
  ) throws(EncoderError) {
    guard size.width <= offer.maximumSize.width, size.height <= offer.maximumSize.height else {
      throw .configuration("cannot encode \(size): \(vendor) takes at most \(offer.maximumSize)")
    }
    guard size.width >= offer.minimumSize.width, size.height >= offer.minimumSize.height else {
      throw .configuration("cannot encode \(size): \(vendor) takes at least \(offer.minimumSize)")
    }
    guard offer.referenceFrames > 0 else {
      throw .unavailable("\(vendor) encodes key frames alone with \(offer.entryPoint.rawValue)")
    }
  }

  /// The nearest of what is offered. Where that is a constant quantizer, ``QuantizerControl`` keeps the bitrate.
  private static func mode(
    for wanted: RateControl, among offered: [VAAPICapabilities.RateControlMode]
  ) -> VAAPICapabilities.RateControlMode? {
    let order: [VAAPICapabilities.RateControlMode] =
      switch wanted {
      case .constantBitrate: [.constantBitrate, .variableBitrate, .constantQuantizer]
      case .variableBitrate: [.variableBitrate, .constantBitrate, .constantQuantizer]
      case .constantQuantizer: [.constantQuantizer, .variableBitrate, .constantBitrate]
      }
    return order.first { offered.contains($0) }
  }
}

extension EncodingSession {
  /// The DMA-BUFs of frames that are to be laid by `orientation`.
  func imports(for orientation: Orientation) -> ImportedSurfaces {
    guard orientation != .upright, let turning else { return imports }
    return turning.imports(for: orientation)
  }

  /// The surface with what was copied into ``VideoTurning/input``, laid by `orientation`.
  ///
  /// - Throws: ``EncoderError/notTurned(_:reason:)``, and then nothing is turned any more.
  func turnedCopy(by orientation: Orientation) throws(EncoderError) -> VASurfaceID {
    try turning(by: orientation) { (turning) throws(EncoderError) in
      let source = try turning.input.finish(orientation.size(of: turning.size))
      return try turning.turn(source, isImported: false, by: orientation)
    }
  }

  /// The same of an imported surface; `source` itself where it is not to be turned.
  ///
  /// - Throws: ``EncoderError/importRefused(library:)`` too.
  func turned(_ source: VASurfaceID, by orientation: Orientation) throws(EncoderError) -> VASurfaceID {
    guard orientation != .upright else { return source }
    return try turning(by: orientation) { (turning) throws(EncoderError) in
      try turning.turn(source, isImported: true, by: orientation)
    }
  }

  private func turning(
    by orientation: Orientation, _ body: (VideoTurning) throws(EncoderError) -> VASurfaceID
  ) throws(EncoderError) -> VASurfaceID {
    guard let turning else { throw .notTurned(orientation, reason: "the driver does not turn pictures") }
    do throws(EncoderError) {
      return try body(turning)
    } catch {
      if case .importRefused = error { throw error }
      turning.giveUp(error)
      throw .notTurned(orientation, reason: turning.failure)
    }
  }
}
