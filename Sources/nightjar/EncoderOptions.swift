public import ArgumentParser
public import Encoding
import Glibc
public import Media
import Threading

/// How to encode. What is not given comes from the preset.
struct EncoderOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The encoder: auto, vaapi or x264.",
      discussion: """
        auto takes VA-API hardware and goes on with x264 when that fails; where there is no such hardware, x264 alone. \
        vaapi and x264 have nothing behind them.
        """))
  var encoder = EncoderChoice.auto

  @Option(
    help: ArgumentHelp(
      "What the stream is for.",
      discussion: """
        A set of values for the options below, each of which may be given as well. ultra-low-latency has four slices, \
        each of which leaves as soon as x264 has coded it, and frames of nearly one size. The transcoding presets look \
        ahead and so delay the picture by 10 and 40 frames with x264.
        """))
  var preset = EncoderPreset.liveCapture

  @Option(
    help: ArgumentHelp(
      "Bits a second, as in 2.5M or 800k; auto goes by size and rate (3M for 1280x720 at 30).", valueName: "rate"),
    transform: OptionValues.bitrate)
  var bitrate = Choice<Int>.auto

  @Option(help: "How bits are spent: cbr (even), vbr (by need, the bitrate on average), cqp (the same quality always).")
  var rateControl: RateControlChoice?

  @Option(
    help: ArgumentHelp("For cqp: 1 (best) to 51; without it 26.", valueName: "number"),
    transform: { try OptionValues.number($0, within: EncoderConfiguration.quantizerLimits) })
  var quantizer: Int?

  @Option(
    help: ArgumentHelp(
      "How much of the stream one frame may be, as in 500ms: smaller is smoother, larger is sharper.",
      valueName: "time"),
    transform: { try OptionValues.duration($0, within: EncoderConfiguration.bufferLimits, example: "500ms or 1s") })
  var buffer: MediaTime?

  @Option(
    help: ArgumentHelp("The longest time from one key frame to the next, as in 2s or 500ms.", valueName: "time"),
    transform: { try OptionValues.duration($0, within: 0.1...600, example: "2s or 500ms") })
  var keyframeInterval: MediaTime?

  @Option(
    help: ArgumentHelp(
      "The H.264 profile: baseline (every decoder takes it), main or high (a better picture for the bits).",
      discussion: "x264's ultrafast preset uses none of what main and high add."))
  var profile: H264Profile?

  @Option(
    help: ArgumentHelp(
      "Slices of a picture: more of them lose less with a packet.",
      discussion: "They leave together; one by one with --preset ultra-low-latency alone.", valueName: "count"),
    transform: { try OptionValues.number($0, within: EncoderConfiguration.sliceLimits) })
  var slices: Int?

  @Option(
    help: ArgumentHelp(
      "x264: slices of at most so many bytes, in place of --slices; mtu makes each one packet.",
      discussion: """
        A packet that is lost then costs its own slice and nothing else. mtu goes by the smallest packets of the \
        destinations and of RTSP. VA-API has no such slices: auto takes x264 then.
        """, valueName: "bytes"),
    transform: OptionValues.sliceSize)
  var sliceSize: SliceSize?

  @Flag(
    help: ArgumentHelp(
      "x264: refresh the picture column by column within --keyframe-interval, instead of key frames that burst.",
      discussion: """
        Key frames come at the start, at a turn and a fail-over, and where a viewer asks for one. One who cannot ask, as \
        in a multicast group, sees a whole picture after up to twice the interval, which is counted in frames of the \
        camera's full rate. VA-API has none: auto takes x264 then.
        """))
  var intraRefresh = false

  @Option(
    help: ArgumentHelp("Threads of x264: auto or a number; each adds a slice.", valueName: "count"),
    transform: OptionValues.threads)
  var threads = Choice<Int>.auto

  @Option(
    help: ArgumentHelp("Frames that x264 may hold back for a better picture; 0 for none.", valueName: "count"),
    transform: { try OptionValues.number($0, within: EncoderConfiguration.lookaheadLimits) })
  var lookahead: Int?

  @Option(
    help: ArgumentHelp(
      "x264's speed against quality: ultrafast (least CPU) to veryslow.", valueName: "preset"))
  var x264Preset: String?

  @Option(
    help: ArgumentHelp(
      "VA-API: the render node, such as /dev/dri/renderD128; without it the first that works.",
      valueName: "path"))
  var vaapiDevice: String?

  @Option(
    help: ArgumentHelp(
      "VA-API: quality level, 1 (best) to what the driver has (see nightjar devices).",
      valueName: "level"),
    transform: { try OptionValues.number($0, within: 1...65_535) })
  var vaapiQuality: Int?

  @Flag(help: "VA-API: prefer the low-power entry point (EncSliceLP): less power, a little less quality.")
  var vaapiLowPower = false

  @Option(
    help: ArgumentHelp(
      "VA-API: how many frame intervals the driver may take before x264 goes on (3).", valueName: "frames"),
    transform: { try OptionValues.number($0, within: FailoverEncoder.Policy.hangLimits) })
  var hangLimit: Int?

  @Flag(
    help: ArgumentHelp(
      "Make the encoder behind VA-API, and the one for the turned picture, only when they are needed.",
      discussion: "Saves some 18 MB each at 1280x720, and costs time when it happens."))
  var noStandby = false

  mutating func validate() throws {
    if quantizer != nil, rateControl != .cqp { throw ValidationError("--quantizer is for --rate-control cqp only") }
    if let x264Preset, !EncoderSelector.x264Presets.contains(x264Preset) {
      throw ValidationError(
        EncoderSelector.x264Presets.isEmpty
          ? "--x264-preset: this build has no x264"
          : "--x264-preset: choose \(EncoderSelector.x264Presets.joined(separator: ", "))")
    }
    if sliceSize != nil, slices != nil { throw ValidationError("--slice-size goes in place of --slices: give one") }
    let hardware = [
      (vaapiDevice != nil, "--vaapi-device"), (vaapiQuality != nil, "--vaapi-quality"),
      (vaapiLowPower, "--vaapi-low-power"), (hangLimit != nil, "--hang-limit"),
    ]
    let software = [
      (x264Preset != nil, "--x264-preset"), (threads.value != nil, "--threads"), (lookahead != nil, "--lookahead"),
      (sliceSize != nil, "--slice-size"), (intraRefresh, "--intra-refresh"),
    ]
    if encoder == .x264 { try refuse(hardware, "--encoder auto and vaapi") }
    if encoder == .vaapi { try refuse(software, "--encoder auto and x264") }
    if rateControl == .cqp {
      try refuse([(bitrate.value != nil, "--bitrate"), (buffer != nil, "--buffer")], "cbr and vbr")
    }
  }

  /// Refuses the options among `options` that were given, because they would do nothing.
  private func refuse(_ options: [(isGiven: Bool, name: String)], _ place: String) throws {
    for option in options where option.isGiven { throw ValidationError("\(option.name) is for \(place) only") }
  }

  /// The preset with what was given.
  var settings: EncoderSettings {
    var settings = preset.settings
    if let rateControl {
      settings.rateControl =
        switch rateControl {
        case .cbr: .constantBitrate
        case .vbr: .variableBitrate
        case .cqp: .constantQuantizer(quantizer ?? 26)
        }
    }
    if let buffer { settings.bufferSeconds = buffer.seconds }
    if let keyframeInterval { settings.keyFrameInterval = keyframeInterval }
    settings.refreshes = intraRefresh
    if let profile { settings.profile = profile }
    if let slices { settings.slices = slices }
    if let threads = threads.value { settings.threads = threads }
    if let lookahead { settings.lookahead = lookahead }
    if let x264Preset { settings.x264Preset = x264Preset }
    if let vaapiQuality { settings.vaapiQuality = vaapiQuality }
    if vaapiLowPower { settings.prefersLowPower = true }
    if case .bytes(let bytes) = sliceSize { settings.sliceBytes = bytes }
    return settings
  }

  /// How pictures of `format` that are laid so are to be encoded.
  ///
  /// - Parameter payloadLimit: the most bytes of a slice that goes as one packet.
  func configuration(
    for format: SourceFormat, _ orientation: Orientation, payloadLimit: Int
  ) -> EncoderConfiguration {
    var settings = settings
    if case .packet = sliceSize { settings.sliceBytes = payloadLimit }
    return settings.configuration(
      size: orientation.size(of: format.size), frameRate: format.frameRate, bitrate: bitrate.value, color: format.color,
      processors: ProcessorSet.ofThread()?.numbers.count ?? max(1, sysconf(CInt(_SC_NPROCESSORS_ONLN))))
  }

  /// The encoder for pictures of `format` that are laid so.
  ///
  /// - Parameters:
  ///   - payloadLimit: the most bytes of a slice that goes as one packet.
  ///   - streamsSlices: whether slices may leave one by one.
  ///   - keepsStandby: whether encoders are made before they are needed.
  /// - Throws: `EncoderError`.
  func select(
    for format: SourceFormat, _ orientation: Orientation, payloadLimit: Int, streamsSlices: Bool = true,
    aspects: EncoderAspects, keepsStandby: Bool
  ) throws -> EncoderSelection {
    var policy = FailoverEncoder.Policy()
    if let hangLimit { policy.hangLimit = hangLimit }
    policy.keepsStandby = keepsStandby
    var configuration = configuration(for: format, orientation, payloadLimit: payloadLimit)
    if !streamsSlices { configuration.streamsSlices = false }
    return try EncoderSelector.select(
      encoder, configuration, node: vaapiDevice, policy: policy,
      aspects: aspects,
      turns: format.turnsApart && (aspects == .both || orientation != .upright))
  }
}

/// What `--slice-size` takes.
enum SliceSize: Hashable {
  /// What fits one packet.
  case packet
  case bytes(Int)
}

/// What `--rate-control` takes.
enum RateControlChoice: String, CaseIterable, ExpressibleByArgument {
  case cbr
  case vbr
  case cqp
}

extension EncoderChoice: ExpressibleByArgument {}
extension EncoderPreset: ExpressibleByArgument {}
extension H264Profile: ExpressibleByArgument {}
