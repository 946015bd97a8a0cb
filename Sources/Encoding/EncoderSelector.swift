public import Media
import VAAPI

#if X264
  import X264
#endif

/// Which encoder is wanted.
public enum EncoderChoice: String, CaseIterable, Sendable {
  /// The best one that this machine has: VA-API with x264 behind it, or x264 alone.
  case auto
  /// The graphics hardware, with nothing behind it.
  case vaapi
  /// x264, in software.
  case x264
}

/// Which pictures an encoder is to take.
public enum EncoderAspects: Sendable {
  /// Those of the configuration's size.
  case one
  /// Those with width and height swapped too: the picture turns while the stream runs.
  case both
  /// Those of the configuration's size, and smaller ones where the encoder is restricted while the stream runs.
  case scaled
}

/// An encoder that was chosen, and why.
public struct EncoderSelection: Sendable {
  /// The encoder; it has encoded pictures already and is warm. But for one size alone an ``OrientedEncoder``, whose
  /// standby is being made.
  public let encoder: any VideoEncoder
  /// Why a better one was passed over, and what stands behind this one; nil where there was no choice.
  public let explanation: String?
  /// What will happen to it while it runs; nil where nothing can.
  public let events: EncoderEvents?
  /// Which frames need not be turned by their source; nil where the encoder turns none.
  public let turning: TurnOffer?
}

/// Makes the encoder that was asked for.
public enum EncoderSelector {
  /// What is said where no x264 is in the program.
  static let withoutX264 = "this build of nightjar has no x264 (package trait X264)"

  /// An encoder for `configuration`, warmed up. A candidate is believed only after it has encoded pictures.
  ///
  /// - Parameters:
  ///   - choice: which encoder, or the best that works.
  ///   - configuration: what it is to make.
  ///   - node: the render node that VA-API is to use; nil for the first one that works.
  ///   - policy: how the hardware and what stands behind it are used; without its standby the other aspect's encoder is
  ///     made when the picture turns.
  ///   - aspects: whether the picture may turn.
  ///   - turns: whether the hardware is to turn frames by itself where it can; for a source that would need a pass of
  ///     its own for it, and is told of ``EncoderSelection/turning``.
  /// - Throws: ``/Media/EncoderError`` with the reasons, where none can be had.
  public static func select(
    _ choice: EncoderChoice, _ configuration: EncoderConfiguration, node: String? = nil,
    policy: FailoverEncoder.Policy = FailoverEncoder.Policy(), aspects: EncoderAspects = .one, turns: Bool = false
  ) throws(EncoderError) -> EncoderSelection {
    try configuration.check()
    let nodes = node.map { [$0] } ?? RenderNode.all().map(\.path)
    let hardware = nodes.map { path in
      HardwareCandidate(library: "VA-API (\(path))") { configuration throws(EncoderError) in
        try VAAPIEncoder(configuration, node: path, turns: turns)
      }
    }
    return try select(
      choice, configuration, hardware: hardware, policy: policy, aspects: aspects, turns: turns, software: software)
  }

  /// Hardware that is to be tried: what it is, and how it is opened.
  struct HardwareCandidate: Sendable {
    let library: String
    let open: @Sendable (EncoderConfiguration) throws(EncoderError) -> any StagedVideoEncoder
  }

  /// As above, of given encoders.
  static func select(
    _ choice: EncoderChoice, _ configuration: EncoderConfiguration, hardware: [HardwareCandidate],
    policy: FailoverEncoder.Policy, aspects: EncoderAspects = .one, turns: Bool = false,
    clock: @escaping @Sendable () -> MediaTime = { .now() }, software: FailoverEncoder.MakeFallback?
  ) throws(EncoderError) -> EncoderSelection {
    let events = EncoderEvents()
    var obstacles: [EncoderError] = []
    if choice != .x264 {
      tries: for candidate in hardware {
        do throws(EncoderError) {
          let hardware = HardwareFactory(
            candidate: candidate, policy: policy, events: events, fallback: choice == .auto ? software : nil,
            offer: turns ? TurnOffer() : nil, health: DriverHealth(clock: clock))
          let encoder = try hardware.encoder(configuration)
          return try prepared(
            try oriented(encoder, aspects, policy, events, hardware.encoderOrFallback),
            explanation: behind(choice, software, policy), events: events,
            turning: hardware.offer)
        } catch {
          obstacles.append(error)
          // One thread that is stuck in a driver is enough.
          if case .hung = error { break tries }
        }
      }
      if hardware.isEmpty {
        obstacles.append(.unavailable("no render node in /dev/dri (is there a GPU, and its kernel driver loaded?)"))
      }
    }
    let reasons = obstacles.map(\.description).joined(separator: "; ")
    if choice == .vaapi {
      // One obstacle is thrown as it is, for its kind's sake.
      throw obstacles.count == 1 ? obstacles[0] : .unavailable(reasons)
    }
    guard let software else {
      throw .unavailable(reasons.isEmpty ? withoutX264 : "\(reasons); and \(withoutX264)")
    }
    return try prepared(
      try oriented(try software(configuration), aspects, policy, events, software),
      explanation: reasons.isEmpty ? nil : "no VA-API: \(reasons)", events: aspects == .one ? nil : events,
      turning: nil)
  }

  /// Makes the encoders of one selection on one driver, of either aspect.
  private struct HardwareFactory: Sendable {
    let candidate: HardwareCandidate
    let policy: FailoverEncoder.Policy
    let events: EncoderEvents
    let fallback: FailoverEncoder.MakeFallback?
    /// Where it is told which frames are turned by them; nil where none are to be.
    let offer: TurnOffer?
    let health: DriverHealth

    func encoder(
      _ configuration: EncoderConfiguration, mayStartOnFallback: Bool = false
    ) throws(EncoderError) -> any VideoEncoder {
      turning(try failover(configuration, mayStartOnFallback: mayStartOnFallback))
    }

    private func turning(_ encoder: any VideoEncoder) -> any VideoEncoder {
      guard let offer else { return encoder }
      return TurningEncoder(encoder, offer: offer)
    }

    private func failover(
      _ configuration: EncoderConfiguration, mayStartOnFallback: Bool
    ) throws(EncoderError) -> any VideoEncoder {
      let open = candidate.open
      return try FailoverEncoder(
        configuration, library: candidate.library, policy: policy, health: health, events: events, fallback: fallback,
        mayStartOnFallback: mayStartOnFallback
      ) { () throws(EncoderError) in try open(configuration) }
    }

    /// The fall-back alone where the hardware does not do it: a limit of its size in one direction is no reason not to
    /// turn. A driver that hung or failed is asked again later.
    @Sendable func encoderOrFallback(_ configuration: EncoderConfiguration) throws(EncoderError) -> any VideoEncoder {
      guard let fallback else {
        if let reason = health.reason { throw reason }
        return try encoder(configuration)
      }
      do throws(EncoderError) {
        return try encoder(configuration, mayStartOnFallback: true)
      } catch {
        events.add(.standbyWithoutHardware(size: configuration.size, reason: error, retry: nil))
      }
      return turning(try fallback(configuration))
    }
  }

  /// `encoder` alone, or with one of the other aspect.
  private static func oriented(
    _ encoder: any VideoEncoder, _ aspects: EncoderAspects, _ policy: FailoverEncoder.Policy, _ events: EncoderEvents,
    _ makeEncoder: @escaping OrientedEncoder.MakeEncoder
  ) throws(EncoderError) -> any VideoEncoder {
    guard aspects != .one else { return encoder }
    var own = OrientedEncoder.Policy()
    own.keepsStandby = policy.keepsStandby && aspects == .both
    do throws(EncoderError) {
      return try OrientedEncoder(active: encoder, policy: own, events: events, makeEncoder: makeEncoder)
    } catch {
      encoder.stop()
      throw error
    }
  }

  private static func prepared(
    _ encoder: any VideoEncoder, explanation: String?, events: EncoderEvents?, turning: TurnOffer?
  ) throws(EncoderError) -> EncoderSelection {
    do throws(EncoderError) {
      try encoder.prepare()
    } catch {
      encoder.stop()
      throw error
    }
    return EncoderSelection(encoder: encoder, explanation: explanation, events: events, turning: turning)
  }

  private static func behind(
    _ choice: EncoderChoice, _ software: FailoverEncoder.MakeFallback?, _ policy: FailoverEncoder.Policy
  ) -> String {
    guard software != nil else { return "nothing stands behind it: \(withoutX264)" }
    guard choice == .auto else { return "nothing stands behind it: --encoder auto would go on with x264" }
    return policy.keepsStandby ? "x264 stands by" : "x264 would take over, cold"
  }

  /// How many threads `--threads auto` stands for: one up to 1080p30, which one core encodes in half its time,
  /// otherwise one for each such share, no more than `processors`; every thread costs a slice.
  public static func threads(for size: PictureSize, at frameRate: FrameRate, processors: Int) -> Int {
    let share = 1920 * 1088 * 30.0
    let wanted = (Double(size.pixels) * frameRate.framesPerSecond / share).rounded(.up)
    return max(1, min(Int(wanted), processors, 8))
  }

  #if X264
    /// What x264 is, for a person; nil in a build without it.
    public static var softwareName: String? { X264Encoder.libraryName }
    /// x264's preset names, fastest first.
    public static var x264Presets: [String] { X264Encoder.presets }

    private static let software: FailoverEncoder.MakeFallback? = { configuration throws(EncoderError) in
      try X264Encoder(configuration)
    }
  #else
    /// None: this build has no x264.
    public static var softwareName: String? { nil }
    /// None: this build has no x264.
    public static var x264Presets: [String] { [] }

    private static let software: FailoverEncoder.MakeFallback? = nil
  #endif
}
