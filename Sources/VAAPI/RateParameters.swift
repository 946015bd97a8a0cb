import CVA
import Media

/// The driver's rate control settings, as libva's structures.
struct RateParameters {
  /// The driver's rate control mode; nil if the driver lists none.
  let mode: VAAPICapabilities.RateControlMode?
  /// The quality level that the driver is told, 0 for its default; nil if it is told none.
  var quality: Int?

  /// The maximum number of times that a picture is encoded again because it does not fit the coded buffer.
  static let retryLimit = 4
  /// The increase of the quantizer with every retry.
  static let retryStep = 6

  /// The key frame interval in seconds that a driver's rate control assumes. The encoder's caller decides when a key
  /// frame comes.
  private static let nominalKeyFrameSeconds = 2.0

  /// Returns the key frame interval that a driver's rate control assumes, in pictures.
  static func nominalKeyFramePeriod(at frameRate: FrameRate) -> UInt32 {
    UInt32(max(1, (frameRate.framesPerSecond * nominalKeyFrameSeconds).rounded()))
  }

  /// `true` if the driver controls the rate.
  var isControlled: Bool { mode == .constantBitrate || mode == .variableBitrate }

  /// Returns the peak bitrate for libva's structures; 0 if the driver does not control the rate.
  func peak(_ configuration: EncoderConfiguration, retry: Int) -> Int {
    guard isControlled else { return 0 }
    let isVariable = mode == .variableBitrate
    return Int(Double(configuration.bitrate) * (isVariable ? EncoderConfiguration.peakFactor : 1)) >> retry
  }

  /// Adds rate control, buffer, frame rate and quality level. Every `retry` halves the bitrate and raises the minimum
  /// quantizer.
  func add(to buffers: PictureBuffers, _ configuration: EncoderConfiguration, retry: Int) throws(EncoderError) {
    if isControlled {
      try addRateControl(to: buffers, configuration, retry: retry)
      var hrd = nightjar_va_hrd()
      hrd.type = VAEncMiscParameterTypeHRD
      let bits = Double(configuration.bitrate) * configuration.bufferSeconds
      hrd.value.buffer_size = UInt32(min(bits, Double(UInt32.max)))
      hrd.value.initial_buffer_fullness = hrd.value.buffer_size / 4 * 3
      try buffers.add(VAEncMiscParameterBufferType, &hrd)
    }
    var rate = nightjar_va_frame_rate()
    rate.type = VAEncMiscParameterTypeFrameRate
    rate.value.framerate = Self.packed(configuration.frameRate)
    try buffers.add(VAEncMiscParameterBufferType, &rate)
    if let quality {
      var level = nightjar_va_quality()
      level.type = VAEncMiscParameterTypeQualityLevel
      level.value.quality_level = UInt32(quality)
      try buffers.add(VAEncMiscParameterBufferType, &level)
    }
  }

  private func addRateControl(
    to buffers: PictureBuffers, _ configuration: EncoderConfiguration, retry: Int
  ) throws(EncoderError) {
    var control = nightjar_va_rate_control()
    control.type = VAEncMiscParameterTypeRateControl
    let isVariable = mode == .variableBitrate
    control.value.bits_per_second = UInt32(peak(configuration, retry: retry))
    control.value.target_percentage = isVariable ? UInt32((100 / EncoderConfiguration.peakFactor).rounded()) : 100
    control.value.window_size = UInt32(configuration.bufferSeconds * 1000)
    control.value.rc_flags.bits.disable_frame_skip = 1
    control.value.rc_flags.bits.disable_bit_stuffing = 1
    if case .constantQuantizer(let quantizer) = configuration.rateControl {
      // The driver offers no constant quantizer. A rate control whose minimum and maximum quantizer are equal comes
      // nearest.
      let fixed = UInt32(min(51, quantizer + retry * Self.retryStep))
      control.value.initial_qp = fixed
      control.value.min_qp = fixed
      control.value.max_qp = fixed
    } else if retry > 0 {
      control.value.min_qp = UInt32(min(51, 26 + retry * Self.retryStep))
      control.value.initial_qp = control.value.min_qp
    }
    try buffers.add(VAEncMiscParameterBufferType, &control)
  }

  /// Returns the rate with its numerator in the lower half and its denominator in the upper half; the nearest rate if
  /// they do not fit.
  static func packed(_ rate: FrameRate) -> UInt32 {
    let largest = max(rate.numerator, rate.denominator)
    let scale = largest > 0xffff ? Double(0xffff) / Double(largest) : 1
    let numerator = UInt32(max(1, (Double(rate.numerator) * scale).rounded()))
    let denominator = UInt32(max(1, (Double(rate.denominator) * scale).rounded()))
    return denominator << 16 | numerator
  }
}
