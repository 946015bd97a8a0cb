package import Encoding
import Glibc
package import Media
import Platform
import Streaming

/// The settings of the encoder. The preset gives the values that are missing.
package struct CameraEncoding: Hashable, Sendable {
  /// A value of `rate-control`.
  package enum RateControlMode: String, CaseIterable, Sendable {
    case cbr
    case vbr
    case cqp
  }

  /// A value of `slice-size`.
  package enum SliceSize: Hashable, Sendable {
    /// The slice size that fits one packet.
    case packet
    case bytes(Int)
  }

  /// A value of `x264-preset`.
  package enum SoftwarePreset: Hashable, Sendable {
    /// The preset is chosen by measurement, and changes while the stream runs.
    case auto
    case named(String)
  }

  /// A value of `vaapi-quality`.
  package enum HardwareQuality: Hashable, Sendable {
    /// The level is chosen by measurement, and changes while the stream runs.
    case auto
    case level(Int)
  }

  package var codec = VideoCodec.h264
  package var encoder = EncoderChoice.auto
  package var preset = EncoderPreset.liveCapture
  /// Bits per second; nil for the default of size and rate.
  package var bitrate: Int?
  /// The least bits per second of the full pictures for a weak network, which gets small ones below it; nil for a part of the
  /// bitrate.
  package var bitrateFloor: Int?
  package var rateControl: RateControlMode?
  var quantizer: Int?
  var buffer: Duration?
  var keyFrameInterval: Duration?
  var profile: H264Profile?
  var slices: Int?
  var sliceSize: SliceSize?
  var intraRefresh = false
  /// The number of x264's threads; nil for the default.
  var threads: Int?
  var lookahead: Int?
  var x264Preset: SoftwarePreset?
  /// The render node; nil for the first that works.
  package var vaapiDevice: String?
  package var vaapiQuality: HardwareQuality?
  var vaapiLowPower = false
  var hangLimit: Int?
  /// `true` if encoders are created only when they are needed.
  package var noStandby = false

  /// `true` if hardware may encode.
  package var usesHardware: Bool { encoder != .x264 && encoder != .x265 }

  /// `true` if x264's or x265's preset is chosen by measurement while the stream runs.
  package var governsEffort: Bool {
    guard encoder != .vaapi, EncoderSelector.softwareName(for: codec) != nil else { return false }
    return x264Preset == .auto || x264Preset == nil && preset == .liveCapture
  }

  /// Returns `true` if the number of x264's threads is chosen by measurement while the stream runs: for pictures of one slice and
  /// of 1280x720 samples or more, if the present thread may use two processors.
  package func triesThreads(_ configuration: EncoderConfiguration) -> Bool {
    guard governsEffort, threads == nil, Self.processors >= SlicedThreads.threads, configuration.codec == .h264 else {
      return false
    }
    return configuration.threads == 1 && configuration.size.pixels >= SlicedThreads.leastPixels
      && configuration.slices == 1 && configuration.sliceBytes == nil && !configuration.streamsSlices
      && configuration.lookahead == 0 && configuration.refreshFrames == nil
  }

  /// `true` if the quality level of hardware is chosen by measurement while the stream runs.
  package var governsQuality: Bool {
    usesHardware && (vaapiQuality == .auto || vaapiQuality == nil && preset == .liveCapture)
  }

  /// Returns the profile: the configured one, or that of the preset. With live-capture and without a named x264 preset,
  /// it is high if no viewer needs constrained baseline.
  ///
  /// - Parameter isBaselineNeeded: `true` if viewers may come that need constrained baseline, as browsers do.
  func profile(isBaselineNeeded: Bool) -> H264Profile {
    if let profile { return profile }
    // The profile of HEVC is Main, and depends on no viewer.
    guard codec == .h264 else { return preset.settings.profile }
    let isChosen = preset == .liveCapture && (x264Preset == nil || x264Preset == .auto)
    return isChosen && !isBaselineNeeded ? .high : preset.settings.profile
  }

  /// The floor of the bitrate: that of a fixed quality is the bitrate itself, which nothing changes.
  var networkFloor: Int? { rateControl == .cqp ? .max : bitrateFloor }

  /// The settings of the preset, with the given ones applied.
  package var settings: EncoderSettings {
    var settings = preset.settings
    settings.codec = codec
    if let rateControl {
      settings.rateControl =
        switch rateControl {
        case .cbr: .constantBitrate
        case .vbr: .variableBitrate
        case .cqp: .constantQuantizer(quantizer ?? 26)
        }
    }
    if let buffer { settings.bufferSeconds = buffer.seconds }
    if let keyFrameInterval { settings.keyFrameInterval = keyFrameInterval }
    settings.refreshes = intraRefresh
    if let profile { settings.profile = profile }
    if let slices { settings.slices = slices }
    if let threads { settings.threads = threads }
    if let lookahead { settings.lookahead = lookahead }
    if case .named(let name) = x264Preset { settings.x264Preset = name }
    if case .level(let level) = vaapiQuality { settings.vaapiQuality = level }
    if vaapiLowPower { settings.prefersLowPower = true }
    if case .bytes(let bytes) = sliceSize { settings.sliceBytes = bytes }
    return settings
  }

  /// Returns the encoder configuration for pictures of `format` that are rotated and mirrored by the orientation.
  ///
  /// - Parameters:
  ///   - payloadLimit: the maximum number of bytes of a slice that fits one packet.
  ///   - isBaselineNeeded: `true` if viewers may come that need constrained baseline.
  package func configuration(
    for format: SourceFormat, _ orientation: Orientation, payloadLimit: Int, isBaselineNeeded: Bool = true
  ) -> EncoderConfiguration {
    var settings = settings
    settings.profile = profile(isBaselineNeeded: isBaselineNeeded)
    if governsEffort { settings.x264Preset = firstPreset(for: format) }
    if case .packet = sliceSize { settings.sliceBytes = payloadLimit }
    return settings.configuration(
      size: orientation.size(of: format.size), frameRate: format.frameRate, bitrate: bitrate, color: format.color,
      processors: Self.processors)
  }

  /// The number of processors that the present thread may use.
  static var processors: Int { ProcessorSet.ofThread()?.numbers.count ?? max(1, sysconf(CInt(_SC_NPROCESSORS_ONLN))) }

  /// Returns the preset at the start, before anything is measured: superfast, or ultrafast for HEVC and for more pixels a
  /// second than 1280x720 at 30 has.
  private func firstPreset(for format: SourceFormat) -> String {
    guard codec == .h264 else { return "ultrafast" }
    let ordinary = 1280 * 720 * 30.5
    return Double(format.size.pixels) * format.frameRate.framesPerSecond <= ordinary ? "superfast" : "ultrafast"
  }

  /// Selects the encoder for pictures of `format` that are rotated and mirrored by the orientation.
  ///
  /// - Parameters:
  ///   - payloadLimit: the maximum number of bytes of a slice that fits one packet.
  ///   - streamsSlices: `true` if the encoder may output slices one by one.
  ///   - keepsStandby: `true` if encoders are created before they are needed.
  ///   - isBaselineNeeded: `true` if viewers may come that need constrained baseline.
  /// - Throws: `EncoderError`.
  package func select(
    for format: SourceFormat, _ orientation: Orientation, payloadLimit: Int, streamsSlices: Bool = true,
    aspects: EncoderAspects, keepsStandby: Bool, isBaselineNeeded: Bool = true
  ) throws -> EncoderSelection {
    var policy = EncoderLineup.Policy()
    if let hangLimit { policy.hangLimit = hangLimit }
    policy.keepsStandby = keepsStandby
    var configuration = configuration(
      for: format, orientation, payloadLimit: payloadLimit, isBaselineNeeded: isBaselineNeeded)
    if !streamsSlices { configuration.streamsSlices = false }
    return try EncoderSelector.select(
      encoder, configuration, node: vaapiDevice, policy: policy,
      aspects: aspects,
      turns: format.turnsApart && (aspects == .both || orientation != .upright))
  }

  /// Returns a prepared encoder for the small rendition of a stream, by the same rule as the stream's own.
  ///
  /// - Parameters:
  ///   - health: the hangs of the driver of the stream's own encoder.
  ///   - events: receives the events of the encoder.
  ///   - isBesideHardware: `true` if the stream's own encoder is hardware.
  /// - Throws: `EncoderError`.
  package func selectSmall(
    _ configuration: EncoderConfiguration, health: DriverHealth?, events: EncoderEvents, isBesideHardware: Bool
  ) throws -> any VideoEncoder {
    var policy = EncoderLineup.Policy()
    if let hangLimit { policy.hangLimit = hangLimit }
    return try EncoderSelector.selectSmall(
      encoder, configuration, node: vaapiDevice, policy: policy, health: health, events: events,
      isBesideHardware: isBesideHardware)
  }

  /// Reports settings that contradict each other.
  func check(_ faults: inout SettingFaults) {
    if quantizer != nil, rateControl != .cqp { faults.add("\(.quantizer) is for \(.rateControl) cqp only") }
    checkCodec(&faults)
    if sliceSize != nil, slices != nil { faults.add("\(.sliceSize) and \(.slices) exclude each other") }
    let hardware = [
      (vaapiDevice != nil, CameraSetting.vaapiDevice), (vaapiQuality != nil, .vaapiQuality),
      (vaapiLowPower, .vaapiLowPower), (hangLimit != nil, .hangLimit),
    ]
    let software = [
      (x264Preset != nil, CameraSetting.x264Preset), (threads != nil, .threads), (lookahead != nil, .lookahead),
      (sliceSize != nil, .sliceSize), (intraRefresh, .intraRefresh),
    ]
    for (isGiven, setting) in hardware where isGiven && (encoder == .x264 || encoder == .x265) {
      faults.add("\(setting) is for \(.encoder) auto and vaapi only")
    }
    // The others are no settings of HEVC at all.
    for (isGiven, setting) in software
    where isGiven && encoder == .vaapi && (codec == .h264 || setting == .x264Preset) {
      faults.add("\(setting) is for \(.encoder) auto and \(codec.softwareLibrary) only")
    }
    for (isGiven, setting) in [
      (bitrate != nil, CameraSetting.bitrate), (bitrateFloor != nil, .bitrateFloor), (buffer != nil, .buffer),
    ]
    where isGiven && rateControl == .cqp {
      faults.add("\(setting) is for cbr and vbr only")
    }
  }

  /// Reports an encoder and settings that are not for the codec.
  private func checkCodec(_ faults: inout SettingFaults) {
    do throws(EncoderError) {
      try EncoderSelector.check(encoder, for: codec)
    } catch {
      faults.add("\(.encoder) \(encoder.rawValue) and \(.codec) \(codec.rawValue): \(error)")
    }
    guard codec == .hevc else { return }
    if encoder == .x265, EncoderSelector.softwareName(for: codec) == nil {
      faults.add(.codec, "this build has no x265, which encodes HEVC")
    }
    for (isGiven, setting) in [
      (profile != nil, CameraSetting.profile), (slices != nil, .slices), (sliceSize != nil, .sliceSize),
      (intraRefresh, .intraRefresh), (threads != nil, .threads), (lookahead != nil, .lookahead),
    ] where isGiven {
      faults.add("\(setting) is for \(.codec) h264 only")
    }
  }
}
