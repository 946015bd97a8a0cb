import CSpeexDSP
import Platform

/// Changes the rate of samples by libspeexdsp, by a ratio that may change at any time.
///
/// The ratio's denominator is a prime number, so libspeexdsp never reduces the fraction. It then keeps its algorithm
/// and its phase when the ratio changes.
struct Resampler: ~Copyable {
  /// The number of channels.
  let channels: Int
  /// The rates in Hz.
  private let (input, output): (Int, Int)
  private let state: OpaquePointer
  private var numerator: UInt32

  /// The denominator of the ratio: the largest prime whose square libspeexdsp can compute in 32 bits, which it does at
  /// each change. A step of the ratio is 15 ppm: the control loop alternates between two steps.
  static let denominator: UInt32 = 65_521
  /// The quality by libspeexdsp's scale, 0…10: 4 is 3 dB down at 0.45 of the rate, and delays by half a millisecond.
  private static let quality: CInt = 4

  /// Creates a resampler from `input` to `output` samples a second.
  ///
  /// - Throws: ``SystemFailure`` where memory is short.
  init(from input: Int, to output: Int, channels: Int) throws(SystemFailure) {
    (self.input, self.output, self.channels) = (input, output, channels)
    numerator = Self.numerator(Double(input) / Double(output))
    var code: CInt = 0
    let made = speex_resampler_init_frac(
      UInt32(channels), numerator, Self.denominator, UInt32(input), UInt32(output), Self.quality, &code)
    guard let made, code == 0 else { throw SystemFailure("speex_resampler_init_frac", errorNumber: 12) }
    state = made
    // The filter's first outputs are of the silence before the first sample.
    speex_resampler_skip_zeros(state)
  }

  deinit { speex_resampler_destroy(state) }

  private static func numerator(_ ratio: Double) -> UInt32 {
    let rounded = UInt32((ratio * Double(denominator)).rounded())
    return rounded.isMultiple(of: denominator) ? rounded + 1 : rounded
  }

  /// Sets the number of samples that are read for one that is written.
  mutating func setRatio(_ ratio: Double) {
    let next = Self.numerator(ratio)
    guard next != numerator else { return }
    numerator = next
    let code = speex_resampler_set_rate_frac(state, next, Self.denominator, UInt32(input), UInt32(output))
    assert(code == 0, "a fraction that libspeexdsp computes")
  }

  /// The samples that were read and are not yet written, at the input's rate.
  var latency: Int { Int(speex_resampler_get_input_latency(state)) }

  /// Reads samples and writes what they become.
  ///
  /// - Returns: The samples of each channel that were read and written.
  mutating func process(
    _ samples: UnsafeBufferPointer<Int16>, into memory: UnsafeMutableBufferPointer<Int16>
  ) -> (read: Int, written: Int) {
    guard let source = samples.baseAddress, let target = memory.baseAddress else { return (0, 0) }
    var (read, written) = (UInt32(samples.count / channels), UInt32(memory.count / channels))
    speex_resampler_process_interleaved_int(state, source, &read, target, &written)
    return (Int(read), Int(written))
  }
}
