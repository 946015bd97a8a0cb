public import Media
public import Platform
import VAAPI

#if X264
  import X264
#endif
#if X265
  import X265
#endif

/// The requested encoder.
public enum EncoderChoice: String, CaseIterable, Sendable {
  /// The best encoder of this host: VA-API with x264 as its fallback, or x264 alone. For HEVC, x265 takes x264's place.
  case auto
  /// The graphics hardware, without a fallback.
  case vaapi
  /// x264, in software: H.264 only.
  case x264
  /// x265, in software: HEVC only.
  case x265
  /// The camera's own H.264, and the encoder of ``auto`` for pictures that the camera cannot code as requested.
  case camera
}

/// The picture sizes that an encoder must accept.
public enum EncoderAspects: Sendable {
  /// The configuration's size only.
  case one
  /// The configuration's size, and that with width and height swapped: the picture may be rotated while the stream
  /// runs.
  case both
  /// The configuration's size, and smaller ones if the encoder is restricted while the stream runs.
  case scaled
}

/// A selected encoder and the reasons for the choice.
public struct EncoderSelection: Sendable {
  /// The encoder, which is prepared and has encoded pictures already. It is an ``EncoderLineup`` whose standby is being
  /// made, except for software of one size.
  public let encoder: any VideoEncoder
  /// The reason why a better encoder was not chosen, and the name of the fallback; nil if there was no choice.
  public let explanation: String?
  /// The events of the encoder while it runs; nil if it has none.
  public let events: EncoderEvents?
  /// The orientations that the encoder applies, so that the source need not rotate these frames; nil if the encoder
  /// rotates none.
  public let turning: TurnOffer?
  /// The hangs of the driver that was opened, or hung while it was opened; nil where no hardware was tried.
  package let health: DriverHealth?
  /// The quality levels of the hardware; nil without hardware.
  package let levels: HardwareLevels?
}

/// Opens the requested encoder.
public enum EncoderSelector {
  /// The message if the program has no x264.
  static let withoutX264 = "this build of nightjar has no x264 (package trait X264)"
  /// The message if the program has no x265.
  package static let withoutX265 = "this build of nightjar has no x265 (package trait X265)"

  /// Returns a prepared encoder for `configuration`. A candidate is accepted only after it has encoded pictures.
  ///
  /// - Parameters:
  ///   - choice: The requested encoder, or the best that works.
  ///   - configuration: The encoder's configuration.
  ///   - node: The render node that VA-API uses; nil for the first one that works.
  ///   - policy: The time limits of the hardware, and the use of standby encoders. Without standby the other
  ///     orientation's encoder is opened at the rotation.
  ///   - aspects: The picture sizes that the encoder must accept.
  ///   - turns: `true` if the hardware should rotate frames where it can. Use it for a source that would need a
  ///     separate pass for rotation and that follows ``EncoderSelection/turning``.
  /// - Throws: ``/Media/EncoderError`` with the reasons if no encoder can be opened.
  public static func select(
    _ choice: EncoderChoice, _ configuration: EncoderConfiguration, node: String? = nil,
    policy: EncoderLineup.Policy = EncoderLineup.Policy(), aspects: EncoderAspects = .one, turns: Bool = false
  ) throws(EncoderError) -> EncoderSelection {
    try configuration.check()
    try check(choice, for: configuration.codec)
    return try select(
      choice, configuration, hardware: candidates(node: node, turns: turns), policy: policy, aspects: aspects,
      turns: turns, software: software(for: configuration.codec))
  }

  /// Returns a prepared encoder like ``select(_:_:node:policy:aspects:turns:)`` for frames of a second, smaller rendition: in
  /// any orientation, with width and height swapped at any time. It keeps no standby.
  ///
  /// - Parameters:
  ///   - health: The hangs of the driver of the first rendition (``EncoderSelection/health``). While they forbid calls of the
  ///     driver, no hardware is tried.
  ///   - events: Receives the events of the encoder.
  ///   - isBesideHardware: `true` if hardware encodes the first rendition. Software for the second one is an event then.
  /// - Throws: ``/Media/EncoderError`` with the reasons if no encoder can be opened.
  package static func selectSmall(
    _ choice: EncoderChoice, _ configuration: EncoderConfiguration, node: String? = nil,
    policy: EncoderLineup.Policy = EncoderLineup.Policy(), health: DriverHealth? = nil,
    events: EncoderEvents = EncoderEvents(), isBesideHardware: Bool = false
  ) throws(EncoderError) -> any VideoEncoder {
    try configuration.check()
    try check(choice, for: configuration.codec)
    return try selectSmall(
      choice, configuration, hardware: candidates(node: node, turns: false), policy: policy, health: health,
      events: events, isBesideHardware: isBesideHardware, software: software(for: configuration.codec))
  }

  /// Returns a prepared encoder of a second rendition from the given candidates.
  package static func selectSmall(
    _ choice: EncoderChoice, _ configuration: EncoderConfiguration, hardware: [HardwareCandidate],
    policy: EncoderLineup.Policy, health: DriverHealth?, events: EncoderEvents, isBesideHardware: Bool,
    software: EncoderLineup.MakeSoftware?
  ) throws(EncoderError) -> any VideoEncoder {
    var policy = policy
    policy.keepsStandby = false
    let selection = try select(
      choice, configuration, hardware: hardware, policy: policy, aspects: .both, turns: true, rotatesInSoftware: true,
      health: health, events: events, software: software)
    if isBesideHardware, let reason = selection.explanation, softwareCodec(ofEncoder: selection.encoder.name) != nil {
      events.add(.standbyWithoutHardware(size: configuration.size, reason: .unavailable(reason), retry: nil))
    }
    return selection.encoder
  }

  /// Returns the parameter sets of x264 or x265 in `configuration`: those of an encoder that ends at once.
  ///
  /// - Throws: ``/Media/EncoderError`` for an impossible value, or in a build without it.
  package static func softwareParameterSets(
    for configuration: EncoderConfiguration
  ) throws(EncoderError) -> ParameterSets {
    guard let software = software(for: configuration.codec) else { throw .unavailable(without(configuration.codec)) }
    let encoder = try software(configuration)
    defer { encoder.stop() }
    return encoder.parameterSets
  }

  private static func candidates(node: String?, turns: Bool) -> [HardwareCandidate] {
    let nodes = node.map { [$0] } ?? RenderNode.all().map(\.path)
    return nodes.map { path in
      HardwareCandidate(library: "VA-API (\(path))") { configuration throws(EncoderError) in
        try VAAPIEncoder(configuration, node: path, turns: turns)
      }
    }
  }

  /// Checks that the encoder can make a stream of `codec`.
  ///
  /// - Throws: ``/Media/EncoderError/configuration(_:)`` with the encoder to choose.
  public static func check(_ choice: EncoderChoice, for codec: VideoCodec) throws(EncoderError) {
    switch (choice, codec) {
    case (.auto, _), (.vaapi, _), (.x264, .h264), (.camera, .h264), (.x265, .hevc): break
    case (.x264, .hevc): throw .configuration("x264 encodes H.264 only: choose x265 or auto for HEVC")
    case (.camera, .hevc): throw .configuration("only H.264 of a camera is passed on: choose x265 or auto for HEVC")
    case (.x265, .h264): throw .configuration("x265 encodes HEVC only: choose x264 or auto for H.264")
    }
  }

  /// A hardware candidate: its name and the closure that opens it.
  package struct HardwareCandidate: Sendable {
    let library: String
    let open: EncoderLineup.MakeHardware

    /// Creates a candidate.
    package init(library: String, open: @escaping EncoderLineup.MakeHardware) {
      self.library = library
      self.open = open
    }
  }

  /// Returns a prepared encoder from the given candidates.
  package static func select(
    _ choice: EncoderChoice, _ configuration: EncoderConfiguration, hardware: [HardwareCandidate],
    policy: EncoderLineup.Policy, aspects: EncoderAspects = .one, turns: Bool = false, rotatesInSoftware: Bool = false,
    health shared: DriverHealth? = nil, events: EncoderEvents = EncoderEvents(),
    clock: @escaping @Sendable () -> Instant = { .now() },
    software: EncoderLineup.MakeSoftware?
  ) throws(EncoderError) -> EncoderSelection {
    var obstacles: [EncoderError] = []
    let isSoftware = choice == .x264 || choice == .x265
    var health = shared
    if !isSoftware, let reason = shared?.reason {
      obstacles.append(reason)
    } else if !isSoftware {
      tries: for candidate in hardware {
        do throws(EncoderError) {
          let offer = turns ? TurnOffer() : nil
          let driver = shared ?? DriverHealth(clock: clock)
          health = driver
          let encoder = try EncoderLineup(
            configuration, library: candidate.library, policy: policy, aspects: aspects, offer: offer,
            health: driver, events: events, software: choice == .vaapi ? nil : software,
            hardware: candidate.open)
          return try prepared(
            encoder, explanation: behind(choice, configuration.codec, software, policy), events: events,
            turning: offer, health: driver, levels: encoder.makers.levels)
        } catch {
          obstacles.append(error)
          // Try no further candidate: one thread that is stuck in a driver is enough.
          if case .hung = error { break tries }
        }
      }
      if hardware.isEmpty {
        obstacles.append(.unavailable("no render node in /dev/dri (is there a GPU, and its kernel driver loaded?)"))
      }
    }
    let reasons = obstacles.map(\.description).joined(separator: "; ")
    if choice == .vaapi {
      // A single obstacle is thrown unchanged, so that the kind of error is kept.
      throw obstacles.count == 1 ? obstacles[0] : .unavailable(reasons)
    }
    guard let software else {
      let missing = without(configuration.codec)
      throw .unavailable(reasons.isEmpty ? missing : "\(reasons); and \(missing)")
    }
    // Without a fallback and without rotation the encoder needs no lineup.
    let encoder: any VideoEncoder =
      aspects == .one
      ? try software(configuration)
      : try EncoderLineup(
        configuration, policy: policy, aspects: aspects, offer: rotatesInSoftware ? TurnOffer() : nil, events: events,
        software: software)
    return try prepared(
      encoder, explanation: reasons.isEmpty ? nil : "no VA-API: \(reasons)", events: aspects == .one ? nil : events,
      turning: nil, health: health, levels: nil)
  }

  private static func prepared(
    _ encoder: any VideoEncoder, explanation: String?, events: EncoderEvents?, turning: TurnOffer?,
    health: DriverHealth?, levels: HardwareLevels?
  ) throws(EncoderError) -> EncoderSelection {
    do throws(EncoderError) {
      try encoder.prepare()
    } catch {
      encoder.stop()
      throw error
    }
    return EncoderSelection(
      encoder: encoder, explanation: explanation, events: events, turning: turning, health: health, levels: levels)
  }

  private static func behind(
    _ choice: EncoderChoice, _ codec: VideoCodec, _ software: EncoderLineup.MakeSoftware?,
    _ policy: EncoderLineup.Policy
  ) -> String {
    let library = codec.softwareLibrary
    guard software != nil else { return "there is no fallback: \(without(codec))" }
    guard choice != .vaapi else { return "there is no fallback; --encoder auto adds \(library)" }
    return policy.keepsStandby ? "\(library) stands by" : "\(library) takes over when needed"
  }

  /// Returns the number of threads for `--threads auto`: one up to 1080p30, which one core encodes in half its time.
  /// Otherwise it is one for each such share, at most `processors`, since every thread costs a slice.
  public static func threads(for size: PictureSize, at frameRate: FrameRate, processors: Int) -> Int {
    let share = 1920 * 1088 * 30.0
    let wanted = (Double(size.pixels) * frameRate.framesPerSecond / share).rounded(.up)
    return max(1, min(Int(wanted), processors, 8))
  }

  /// Returns the effort of x264's preset with that name; nil if there is no such preset.
  public static func effort(ofPreset name: String) -> EncodingEffort? {
    x264Presets.firstIndex(of: name).map { EncodingEffort(rawValue: $0) }
  }

  /// Returns the name of x264's preset for `effort`; nil if there is none.
  public static func preset(of effort: EncodingEffort) -> String? {
    x264Presets.indices.contains(effort.rawValue) ? x264Presets[effort.rawValue] : nil
  }

  /// The names of x264's presets, which x265 has too, the fastest first; empty in a build without both.
  public static var x264Presets: [String] {
    #if X264
      X264Encoder.presets
    #elseif X265
      X265Encoder.presets
    #else
      []
    #endif
  }

  /// Returns the name of the library that encodes `codec` in software, for display; nil in a build without it.
  public static func softwareName(for codec: VideoCodec) -> String? {
    switch codec {
    case .h264:
      #if X264
        return X264Encoder.libraryName
      #else
        return nil
      #endif
    case .hevc:
      #if X265
        return X265Encoder.libraryName
      #else
        return nil
      #endif
    }
  }

  /// Returns the codec of the software encoder with that name; nil for hardware.
  public static func softwareCodec(ofEncoder name: String) -> VideoCodec? {
    VideoCodec.allCases.first { name.hasPrefix($0.softwareLibrary) }
  }

  private static func without(_ codec: VideoCodec) -> String {
    switch codec {
    case .h264: withoutX264
    case .hevc: withoutX265
    }
  }

  private static func software(for codec: VideoCodec) -> EncoderLineup.MakeSoftware? {
    switch codec {
    case .h264:
      #if X264
        return { configuration throws(EncoderError) in try X264Encoder(configuration) }
      #else
        return nil
      #endif
    case .hevc:
      #if X265
        return { configuration throws(EncoderError) in try X265Encoder(configuration) }
      #else
        return nil
      #endif
    }
  }
}

extension VideoCodec {
  /// The name of the library that encodes the codec in software.
  package var softwareLibrary: String {
    switch self {
    case .h264: "x264"
    case .hevc: "x265"
    }
  }
}
