/// The H.264 profiles that the encoders produce.
public enum H264Profile: String, CaseIterable, Sendable {
  /// Constrained Baseline (`profile_idc` 66, `constraint_set1_flag`), which every decoder supports.
  case baseline
  /// Main (77), with CABAC.
  case main
  /// High (100), with CABAC and the 8x8 transform.
  case high

  /// The `profile_idc` of the SPS. Of two of these profiles, the decoders of the greater one decode the lesser one too.
  package var indication: UInt8 {
    switch self {
    case .baseline: 66
    case .main: 77
    case .high: 100
    }
  }
}

/// An encoder's rate control mode.
public enum RateControl: Hashable, Sendable {
  /// Constant bitrate (CBR): as even as the buffer requires. The peak equals the bitrate.
  case constantBitrate
  /// Variable bitrate (VBR): the bitrate on average, with peaks of up to ``EncoderConfiguration/peakFactor`` times as
  /// much.
  case variableBitrate
  /// A constant quantizer for every frame (CQP), 1…51: for measurements, and for networks without a bitrate limit.
  case constantQuantizer(Int)
}

/// The settings of an encoder. Every encoder obeys all of them, so that one encoder can replace another in mid-stream.
/// A property that only one encoder supports says so.
public struct EncoderConfiguration: Hashable, Sendable {
  /// The codec of the stream.
  public var codec: VideoCodec
  /// The picture's size; must be encodable.
  public var size: PictureSize
  /// The nominal frame rate, on which rate control and the VUI's timing are based.
  public var frameRate: FrameRate
  /// The bitrate, in bits a second.
  public var bitrate: Int
  /// The colour description of the samples, which the VUI carries.
  public var color: ColorDescription
  /// The H.264 profile that a decoder must support, as written in the SPS. HEVC has the Main profile instead.
  public var profile: H264Profile
  /// The rate control mode.
  public var rateControl: RateControl
  /// The VBV buffer's size, in seconds of the bitrate. No frame is larger than this part of the stream.
  public var bufferSeconds: Double
  /// The number of slices in a picture. More slices reach the network earlier and lose less with a packet.
  public var slices: Int
  /// The number of the encoder's threads; each one adds a slice. x264 only.
  public var threads: Int
  /// The number of frames that the encoder may hold back for rate control; 0 delivers each picture with its frame. x264
  /// only.
  public var lookahead: Int
  /// The preset of x264 or, for HEVC, of x265, which trades speed for quality. Both have the same names.
  public var x264Preset: String
  /// The effort for a picture, which overrides ``x264Preset``; nil keeps the preset. Encoders without presets ignore
  /// it.
  public var effort: EncodingEffort?
  /// VA-API's quality level, from 1 for the best to the driver's limit for the fastest; nil leaves the level to the
  /// driver.
  public var vaapiQuality: Int?
  /// `true` prefers VA-API's low-power entry point (EncSliceLP) where a driver offers both.
  public var prefersLowPower: Bool
  /// `true` delivers each slice as soon as it is coded (``AccessUnit/isLastPart``). It takes effect where a picture has
  /// several slices and no frame is held back. x264 only: hardware delivers a picture when all of it is coded.
  public var streamsSlices: Bool
  /// The size limit of a slice's NAL unit in bytes, header byte included; overrides ``slices``. Nil for no limit. A
  /// single macroblock that is larger stays whole. x264 only.
  public var sliceBytes: Int?
  /// The number of frames in which intra refresh renews the picture, a few columns of macroblocks at a time (ITU-T
  /// H.264 clause D.1.8: recovery points). Intra refresh replaces periodic key frames; nil disables it. The first
  /// picture of each refresh is preceded by the parameter sets. x264 only.
  public var refreshFrames: Int?
  /// `true` for pictures of a smaller size that alternate in one stream with those of another encoder. They have parameter sets
  /// with ids that no other configuration has (ITU-T H.264 clause 7.4.1.2.1): those of x264, and of hardware whose driver leaves
  /// the headers to nightjar. x265 has one id.
  public var isSmallRendition = false

  /// Creates a configuration; see the properties.
  public init(
    size: PictureSize, frameRate: FrameRate, bitrate: Int, color: ColorDescription, profile: H264Profile = .baseline,
    rateControl: RateControl = .constantBitrate, bufferSeconds: Double = 0.5, slices: Int = 1, threads: Int = 1,
    lookahead: Int = 0, x264Preset: String = "ultrafast", vaapiQuality: Int? = nil, prefersLowPower: Bool = false,
    streamsSlices: Bool = false, sliceBytes: Int? = nil, refreshFrames: Int? = nil, codec: VideoCodec = .h264
  ) {
    self.codec = codec
    self.size = size
    self.frameRate = frameRate
    self.bitrate = bitrate
    self.color = color
    self.profile = profile
    self.rateControl = rateControl
    self.bufferSeconds = bufferSeconds
    self.slices = slices
    self.threads = threads
    self.lookahead = lookahead
    self.x264Preset = x264Preset
    self.vaapiQuality = vaapiQuality
    self.prefersLowPower = prefersLowPower
    self.streamsSlices = streamsSlices
    self.sliceBytes = sliceBytes
    self.refreshFrames = refreshFrames
  }

  /// The allowed bitrates, in bits a second.
  public static let bitrateLimits = 50_000...400_000_000
  /// The allowed frame rates, in frames a second.
  public static let frameRateLimits = 0.1...240.0
  /// The allowed quantizers of ``RateControl/constantQuantizer(_:)``.
  public static let quantizerLimits = 1...51
  /// The allowed rate control buffers, in seconds.
  public static let bufferLimits = 0.05...10.0
  /// The allowed numbers of slices in a picture.
  public static let sliceLimits = 1...32
  /// The allowed slice sizes, in bytes. Below the lower limit, the headers outweigh the picture.
  public static let sliceBytesLimits = 100...65_535
  /// The allowed refresh periods, in frames.
  public static let refreshLimits = 2...10_000
  /// The allowed numbers of an encoder's threads.
  public static let threadLimits = 1...16
  /// The allowed numbers of frames that an encoder holds back.
  public static let lookaheadLimits = 0...60
  /// The peak of ``RateControl/variableBitrate``, as a multiple of the bitrate.
  public static let peakFactor = 1.5

  /// Checks that an encoder supports every value, so that no encoder accepts a value and handles it wrongly.
  ///
  /// - Throws: ``EncoderError/configuration(_:)`` with the value and the limit.
  public func check() throws(EncoderError) {
    guard size.isEncodable else {
      throw .configuration("cannot encode \(size): width and height must be even, from 16 to \(PictureSize.limit)")
    }
    try Self.check(bitrate: bitrate)
    guard Self.frameRateLimits.contains(frameRate.framesPerSecond) else {
      throw .configuration(
        "cannot encode \(frameRate) frames a second: choose \(Self.frameRateLimits.lowerBound) to "
          + "\(Self.frameRateLimits.upperBound)")
    }
    if case .constantQuantizer(let quantizer) = rateControl {
      try Self.check(quantizer, in: Self.quantizerLimits, "a quantizer")
    }
    guard Self.bufferLimits.contains(bufferSeconds) else {
      throw .configuration(
        "a rate-control buffer of \(bufferSeconds) s: choose \(Self.bufferLimits.lowerBound) to "
          + "\(Self.bufferLimits.upperBound)")
    }
    try Self.check(slices, in: Self.sliceLimits, "a number of slices")
    guard slices <= (size.height + 15) / 16 else {
      throw .configuration("\(slices) slices in \((size.height + 15) / 16) rows of macroblocks: choose fewer")
    }
    if let sliceBytes { try Self.check(sliceBytes, in: Self.sliceBytesLimits, "a slice size") }
    if let refreshFrames { try Self.check(refreshFrames, in: Self.refreshLimits, "a refresh in frames") }
    try Self.check(threads, in: Self.threadLimits, "a number of encoder threads")
    try Self.check(lookahead, in: Self.lookaheadLimits, "a lookahead")
  }

  /// Checks that `bitrate` is within ``bitrateLimits``.
  ///
  /// - Throws: ``EncoderError/configuration(_:)`` with the value and the limit.
  public static func check(bitrate: Int) throws(EncoderError) {
    guard !bitrateLimits.contains(bitrate) else { return }
    throw .configuration(
      "cannot encode at \(bitrate) bit/s: choose \(bitrateLimits.lowerBound / 1000)k to "
        + "\(bitrateLimits.upperBound / 1_000_000)M")
  }

  private static func check(_ value: Int, in limits: ClosedRange<Int>, _ name: String) throws(EncoderError) {
    guard !limits.contains(value) else { return }
    throw .configuration("\(name) of \(value): choose \(limits.lowerBound) to \(limits.upperBound)")
  }
}
