package import Media
package import Platform

/// The settings of the H.264 beside a stream of another codec. Its encoder is made when a viewer comes that cannot decode that codec.
package struct H264Plan: Sendable {
  /// The configuration of the encoder, for pictures of the full size.
  package var configuration: EncoderConfiguration
  /// The parameter sets in this configuration; nil where there is no encoder.
  package var parameterSets: ParameterSets?
  /// The reason why there is no encoder; nil where there is one.
  package var obstacle: String?
  /// Makes the encoder, of frames in any orientation.
  package var makeEncoder: Pipeline.MakeRenditionEncoder
  /// The time for which the processors must suffice for the full size, before pictures of half the size change to that.
  package var sizePatience = Duration.seconds(30)
  /// The pause after a first failure of the encoder or its thread, and the longest one.
  package var pauses = EncoderFailures.pauses
  /// Starts the encoder's thread.
  package var startThread: RenditionThread.StartThread = RenditionThread.startDetached

  /// Creates a plan with an encoder.
  package init(
    _ configuration: EncoderConfiguration, parameterSets: ParameterSets,
    makeEncoder: @escaping Pipeline.MakeRenditionEncoder
  ) {
    (self.configuration, self.parameterSets, self.makeEncoder) = (configuration, parameterSets, makeEncoder)
  }

  /// Creates a plan that gives all such viewers `obstacle` as the reason why they get nothing.
  package init(_ configuration: EncoderConfiguration, obstacle: String) {
    (self.configuration, self.obstacle) = (configuration, obstacle)
    makeEncoder = { _ in throw EncoderError.unavailable(obstacle) }
  }

  /// The luma samples a second that take half a processor: 1920x1080 at 30 frames a second, as for the number of x264's threads
  /// (`EncoderSelector.threads`). That leaves room for slow processors.
  private static let halfLoad = 1920 * 1088 * 30.0

  /// Returns the processors that x264's fastest preset takes for pictures of `size`, as an estimate.
  package static func processors(for size: PictureSize, at frameRate: FrameRate) -> Double {
    Double(size.pixels) * frameRate.framesPerSecond / halfLoad / 2
  }

  /// Returns the least size of pictures that have `size` at their largest: half of both sides, unless that is too small to encode well.
  package static func leastSize(of size: PictureSize) -> PictureSize {
    let half = SmallRendition.size(of: size)
    return min(half.width, half.height) >= SmallRendition.leastLength ? half : size
  }

  /// Returns the size that `room` processors can encode: `size`, else half of both sides; nil where neither fits.
  package static func size(of size: PictureSize, at frameRate: FrameRate, room: Double) -> PictureSize? {
    [size, leastSize(of: size)].first { processors(for: $0, at: frameRate) <= room }
  }
}

/// The reason why a viewer gets no H.264 of a stream of another codec.
package enum H264Refusal: Failure, Hashable {
  /// The program has no encoder for it.
  case noEncoder(String)
  /// The program may not use as many processors as its smallest pictures need.
  case processors(size: PictureSize, needed: Double, room: Double)
  /// The encoder has failed, and is not tried again before `retry` has passed.
  case failed(String, retry: Duration)

  /// One line for the client, with what would help.
  package var description: String {
    switch self {
    case .noEncoder(let reason): "no H.264 beside HEVC: \(reason)"
    case .processors(let size, let needed, let room):
      "no H.264 beside HEVC: \(size) needs about \(Self.text(max(0.01, needed))) processors, and --cpu-budget leaves "
        + "\(Self.text(max(0, room))); raise --cpu-budget, lower --size or --fps, or choose --codec h264"
    case .failed(let reason, _):
      "no H.264 beside HEVC, because its encoder has failed: \(reason); nightjar tries again later"
    }
  }

  /// The kind of failure.
  package var kind: FailureKind {
    switch self {
    case .noEncoder: .unavailable
    case .processors, .failed: .temporary
    }
  }

  /// The seconds after which a client may ask again; nil where that does not help.
  package var retryAfter: Int? {
    switch self {
    case .noEncoder: nil
    case .processors: Self.shortestRetry
    case .failed(_, let retry): max(Self.shortestRetry, Int((retry.nanoseconds + 999_999_999) / 1_000_000_000))
    }
  }

  /// The least seconds after which a client may ask again.
  private static let shortestRetry = 10

  /// Returns a number with two decimals at most.
  private static func text(_ value: Double) -> String { "\((value * 100).rounded() / 100)" }
}
