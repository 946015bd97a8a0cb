import CVA
import Media

/// All driver resources of one encoder, freed with this object.
final class EncodingSession {
  // Released in this order: the destinations of encoding before its sources.
  let buffers: PictureBuffers
  let coded: CodedBuffer
  let context: VAEncodingContext
  let imports: ImportedSurfaces
  let upload: SurfaceUpload
  /// The rotation of frames before encoding; nil if it is not requested or not available.
  let turning: VideoRotation?
  /// The entry point in use and its capabilities, as the driver lists them.
  let offer: VAAPICapabilities.Encoder
  /// The rate control mode; nil if the driver lists none.
  let mode: VAAPICapabilities.RateControlMode?
  /// The packed headers that nightjar writes.
  let packed: VAAPICapabilities.PackedHeaders
  let vendor: String

  /// Opens `offer` with the settings nearest to `configuration`.
  ///
  /// - Throws: ``EncoderError``.
  private init(
    _ display: VADisplayConnection, _ offer: VAAPICapabilities.Encoder, _ configuration: EncoderConfiguration,
    turns: Bool
  ) throws(EncoderError) {
    mode = Self.mode(for: configuration.rateControl, among: offer.rateControls)
    // Packed slice headers need a packed SPS.
    packed = offer.packedHeaders.contains(.sequence) ? offer.packedHeaders.intersection([.sequence, .slice]) : []
    let config = try VAConfiguration(display, offer, mode: mode, packed: packed)
    guard try config.surfaceLimits().takesNV12 else {
      throw .unavailable("\(display.vendor) takes no NV12 pictures for \(offer.entryPoint.rawValue)")
    }
    upload = try SurfaceUpload(
      display, size: configuration.size, whole: offer.codedSize(of: configuration.size))
    context = try VAEncodingContext(config, inputs: upload.surfaces, configuration.codec)
    imports = ImportedSurfaces(display, size: configuration.size, isPossible: offer.importsDMABuffers)
    buffers = PictureBuffers(context)
    coded = CodedBuffer(context, configuration.codec)
    // The caller rotates the frames that the driver does not rotate, so the encoder does not fail without video
    // processing.
    turning =
      turns
      ? try? VideoRotation(display, size: configuration.size, imports: offer.importsDMABuffers) : nil
    self.offer = offer
    vendor = display.vendor
  }

  /// Opens the driver of `node` for `configuration`, with the preferred entry point that works, except `excluded`.
  ///
  /// - Throws: ``EncoderError`` with the failure of the first entry point if none works.
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
    throw first ?? .unavailable("\(display.vendor) (\(node.path)) offers no \(configuration.codec.title) encoder")
  }

  /// Returns the driver's encoders with the right profile, the preferred entry point first.
  private static func candidates(
    _ capabilities: VAAPICapabilities, _ configuration: EncoderConfiguration
  ) throws(EncoderError) -> [VAAPICapabilities.Encoder] {
    let vendor = capabilities.vendor
    let encoders = capabilities.encoders.filter { $0.profile.codec == configuration.codec }
    guard !encoders.isEmpty else {
      throw .unavailable("\(vendor) (\(capabilities.node.path)) offers no \(configuration.codec.title) encoder")
    }
    let wanted = configuration.vaapiProfile
    let fitting = encoders.filter { $0.profile == wanted }
    guard !fitting.isEmpty else {
      let others = VAAPICapabilities.Profile.all.filter { profile in encoders.contains { $0.profile == profile } }
      throw .unavailable(
        "\(vendor) does not encode the \(wanted.name) profile: choose "
          + others.map(\.name).joined(separator: " or "))
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
      throw .unavailable("\(vendor) encodes only key frames with \(offer.entryPoint.rawValue)")
    }
    if let tool = offer.hevc?.unmetRequirement {
      throw .unavailable("\(vendor) requires a coding tool of HEVC that nightjar does not use: \(tool)")
    }
  }

  /// Returns the nearest mode of those offered. If that is a constant quantizer, ``QuantizerControl`` keeps the
  /// bitrate.
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
  /// Returns the imported DMA-BUFs of frames that are to be rotated by `orientation`.
  func imports(for orientation: Orientation) -> ImportedSurfaces {
    guard orientation != .upright, let turning else { return imports }
    return turning.imports(for: orientation)
  }

  /// Returns the surface with the picture from ``VideoRotation/input``, rotated by `orientation`.
  ///
  /// - Throws: ``EncoderError/notTurned(_:reason:)``. After that, the driver rotates no more pictures.
  func rotatedCopy(by orientation: Orientation) throws(EncoderError) -> VASurfaceID {
    try turning(by: orientation) { (turning) throws(EncoderError) in
      let source = try turning.input.finish(orientation.size(of: turning.size))
      return try turning.turn(source, isImported: false, by: orientation)
    }
  }

  /// Returns the surface with the imported picture on `source`, rotated by `orientation`; `source` itself if the
  /// picture is upright.
  ///
  /// - Throws: ``EncoderError/notTurned(_:reason:)`` or ``EncoderError/importRefused(library:)``.
  func turned(_ source: VASurfaceID, by orientation: Orientation) throws(EncoderError) -> VASurfaceID {
    guard orientation != .upright else { return source }
    return try turning(by: orientation) { (turning) throws(EncoderError) in
      try turning.turn(source, isImported: true, by: orientation)
    }
  }

  private func turning(
    by orientation: Orientation, _ body: (VideoRotation) throws(EncoderError) -> VASurfaceID
  ) throws(EncoderError) -> VASurfaceID {
    guard let turning else { throw .notTurned(orientation, reason: "the driver does not rotate pictures") }
    do throws(EncoderError) {
      return try body(turning)
    } catch {
      if case .importRefused = error { throw error }
      turning.giveUp(error)
      throw .notTurned(orientation, reason: turning.failure)
    }
  }
}
