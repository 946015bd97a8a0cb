/// H.264 profiles that this program makes.
public enum H264Profile: String, CaseIterable, Sendable {
  /// Constrained baseline (`profile_idc` 66, `constraint_set1_flag`): what every decoder takes.
  case baseline
  /// Main (77): CABAC.
  case main
  /// High (100): CABAC and the 8x8 transform.
  case high
}

/// What an encoder is to make. Every encoder obeys all of it, so that one may replace another in mid-stream.
public struct EncoderConfiguration: Hashable, Sendable {
  /// The picture's size; must be encodable.
  public var size: PictureSize
  /// The nominal rate: the base of rate control and the VUI's timing.
  public var frameRate: FrameRate
  /// Bits a second.
  public var bitrate: Int
  /// What the samples mean; ends in the VUI.
  public var color: ColorDescription
  /// The profile.
  public var profile: H264Profile
  /// The VBV buffer in seconds of the bitrate: no frame is larger than this much of the stream.
  public var bufferSeconds: Double
  /// Threads within the encoder; each adds a slice.
  public var threads: Int
  /// x264's name for speed against quality.
  public var x264Preset: String

  /// A configuration; see the properties.
  public init(
    size: PictureSize, frameRate: FrameRate, bitrate: Int, color: ColorDescription, profile: H264Profile = .baseline,
    bufferSeconds: Double = 0.5, threads: Int = 1, x264Preset: String = "ultrafast"
  ) {
    self.size = size
    self.frameRate = frameRate
    self.bitrate = bitrate
    self.color = color
    self.profile = profile
    self.bufferSeconds = bufferSeconds
    self.threads = threads
    self.x264Preset = x264Preset
  }

  /// The bitrates that are taken, bits a second.
  public static let bitrateLimits = 50_000...400_000_000
}

/// One H.264 encoder, ready to encode: making one prepares it.
///
/// It is used by one thread at a time. One frame in gives one access unit out: nothing is held back.
public protocol VideoEncoder: AnyObject, Sendable {
  /// What it makes.
  var configuration: EncoderConfiguration { get }
  /// What it is, for a person: `x264 build 164, ultrafast, 1 thread`.
  var name: String { get }
  /// The parameter sets of everything that it delivers; the same for its whole life.
  var parameterSets: ParameterSets { get }
  /// Encodes `frame` and lends the access unit to `deliver` before it returns. With `keyFrame` the picture is an
  /// IDR, and every IDR comes with the parameter sets.
  ///
  /// - Throws: ``EncoderError``; then `deliver` was not called.
  func encode(
    _ frame: borrowing Frame, keyFrame: Bool, deliver: (borrowing AccessUnit) -> Void) throws(EncoderError)
  /// Ends the encoder and frees its memory. Idempotent; afterwards `encode` throws.
  func stop()
}

/// Why an encoder could not be made or could not encode.
public enum EncoderError: Failure {
  /// A value of the configuration is outside what is possible.
  case configuration(String)
  /// The frame is not of the size that the encoder was prepared for.
  case frameSize(PictureSize, expected: PictureSize)
  /// The library refused to open.
  case open(library: String, code: Int)
  /// The library failed on a frame.
  case encode(library: String, code: Int)
  /// The library delivered something that is not the stream that it promised.
  case output(library: String, String)
  /// The encoder was stopped before.
  case stopped

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .configuration(let reason): reason
    case .frameSize(let size, let expected): "a frame of \(size) for an encoder of \(expected)"
    case .open(let library, let code): "\(library) does not open with these settings (code \(code))"
    case .encode(let library, let code): "\(library) failed to encode a frame (code \(code))"
    case .output(let library, let reason): "\(library) delivered a broken stream: \(reason)"
    case .stopped: "the encoder was stopped"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind {
    switch self {
    case .configuration: .usage
    case .open: .unavailable
    case .frameSize, .encode, .output, .stopped: .software
    }
  }
}
