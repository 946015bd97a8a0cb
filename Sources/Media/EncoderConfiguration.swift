/// H.264 profiles that this program makes.
public enum H264Profile: String, CaseIterable, Sendable {
  /// Constrained baseline (`profile_idc` 66, `constraint_set1_flag`): what every decoder takes.
  case baseline
  /// Main (77): CABAC.
  case main
  /// High (100): CABAC and the 8x8 transform.
  case high
}

/// How an encoder spends its bits.
public enum RateControl: Hashable, Sendable {
  /// As even as the buffer demands (CBR): the peak is the bitrate.
  case constantBitrate
  /// The bitrate on average (VBR), with peaks of up to ``EncoderConfiguration/peakFactor`` times as much.
  case variableBitrate
  /// The same quantizer for every frame (CQP), 1…51: for measuring, and for networks that do not care.
  case constantQuantizer(Int)
}

/// What an encoder is to make. Every encoder obeys all of it, so that one may replace another in mid-stream; what
/// only one of them understands says so.
public struct EncoderConfiguration: Hashable, Sendable {
  /// The picture's size; must be encodable.
  public var size: PictureSize
  /// The nominal rate: the base of rate control and the VUI's timing.
  public var frameRate: FrameRate
  /// Bits a second.
  public var bitrate: Int
  /// What the samples mean; ends in the VUI.
  public var color: ColorDescription
  /// What a decoder must be able to do; the SPS says so.
  public var profile: H264Profile
  /// How the bits are spent.
  public var rateControl: RateControl
  /// The VBV buffer in seconds of the bitrate: no frame is larger than this much of the stream.
  public var bufferSeconds: Double
  /// Slices in a picture; more of them reach the network earlier and lose less with a packet.
  public var slices: Int
  /// Threads within the encoder; each adds a slice. x264 alone.
  public var threads: Int
  /// How many frames the encoder may hold back to plan its bits; 0 delivers each picture with its frame. x264 alone.
  public var lookahead: Int
  /// x264's name for speed against quality.
  public var x264Preset: String
  /// VA-API's quality level, 1 for the best up to what the driver offers for the fastest; nil leaves it to the driver.
  public var vaapiQuality: Int?
  /// Whether VA-API's low-power entry point (EncSliceLP) is preferred where a driver has both.
  public var prefersLowPower: Bool
  /// Whether slices are delivered one by one, each as soon as it is coded (``AccessUnit/isLastPart``), where a picture
  /// has several and nothing is held back. x264 alone: hardware delivers a picture when all of it is coded.
  public var streamsSlices: Bool
  /// The most bytes of a slice's NAL unit, from its header byte on, in place of ``slices``; nil for no such limit. A
  /// single macroblock that is larger stays whole. x264 alone.
  public var sliceBytes: Int?
  /// Within how many frames the picture is refreshed, a few columns of macroblocks at a time (ITU-T H.264 clause D.1.8:
  /// recovery points), in place of key frames that come by the clock; nil for not at all. The picture with which a
  /// refresh begins has the parameter sets in front of it. x264 alone.
  public var refreshFrames: Int?

  /// A configuration; see the properties.
  public init(
    size: PictureSize, frameRate: FrameRate, bitrate: Int, color: ColorDescription, profile: H264Profile = .baseline,
    rateControl: RateControl = .constantBitrate, bufferSeconds: Double = 0.5, slices: Int = 1, threads: Int = 1,
    lookahead: Int = 0, x264Preset: String = "ultrafast", vaapiQuality: Int? = nil, prefersLowPower: Bool = false,
    streamsSlices: Bool = false, sliceBytes: Int? = nil, refreshFrames: Int? = nil
  ) {
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

  /// The bitrates that are taken, bits a second.
  public static let bitrateLimits = 50_000...400_000_000
  /// The frame rates that are taken, frames a second.
  public static let frameRateLimits = 0.1...240.0
  /// The quantizers that are taken by ``RateControl/constantQuantizer(_:)``.
  public static let quantizerLimits = 1...51
  /// The rate-control buffers that are taken, seconds.
  public static let bufferLimits = 0.05...10.0
  /// How many slices a picture may have.
  public static let sliceLimits = 1...32
  /// The sizes of slices that are taken, bytes: below, the headers outweigh the picture.
  public static let sliceBytesLimits = 100...65_535
  /// Within how many frames a picture may be refreshed.
  public static let refreshLimits = 2...10_000
  /// How many threads an encoder may have.
  public static let threadLimits = 1...16
  /// How many frames an encoder may hold back.
  public static let lookaheadLimits = 0...60
  /// The peak of ``RateControl/variableBitrate``, as a multiple of the bitrate.
  public static let peakFactor = 1.5

  /// Refuses what no encoder can make, or would accept and do wrong.
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

  /// Refuses a bitrate outside ``bitrateLimits``.
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
