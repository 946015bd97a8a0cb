import COpus
package import Platform

/// An Opus encoder (RFC 6716) of frames of 20 ms. One thread at a time uses it.
package struct OpusEncoder: ~Copyable {
  /// The number of channels, 1 or 2.
  package let channels: Int
  private let handle: OpaquePointer

  /// The samples of each channel in a frame: 20 ms at 48 kHz.
  package static let frameSamples = 960
  /// The most bytes of a packet: 1,275 of one frame (RFC 6716 section 3.2.1).
  package static let packetLimit = 1275
  /// The bitrates of `--audio-bitrate`, in bits a second: those that RFC 6716 section 2.1.1 names, as far as sound of a
  /// room needs them.
  package static let bitrates = 6_000...128_000
  /// The loss in percent that forward error correction is made for.
  private static let expectedLoss: Int32 = 10
  /// The effort, 0…10; docs/performance.md has the measurement.
  static let complexity: Int32 = 5

  /// Creates an encoder.
  ///
  /// In-band forward error correction is on for one channel. It is off for two: FFmpeg's own decoder (`opus`, version
  /// 5.1), which ffplay and mpv use, loses the sound where such packets change between the modes of Opus. Discontinuous
  /// transmission is off: the packets of silence prove that the line works.
  ///
  /// - Parameter bitrate: bits a second, one of ``bitrates``.
  /// - Throws: ``OpusFailure``.
  package init(channels: Int, bitrate: Int) throws(OpusFailure) {
    try self.init(channels: channels, bitrate: bitrate, complexity: Self.complexity)
  }

  /// Creates an encoder of another effort.
  package init(channels: Int, bitrate: Int, complexity: Int32) throws(OpusFailure) {
    handle = try Self.make(channels: channels, bitrate: bitrate, complexity: complexity)
    self.channels = channels
  }

  private static func make(
    channels: Int, bitrate: Int, complexity: Int32
  ) throws(OpusFailure) -> OpaquePointer {
    var code: Int32 = 0
    let made = opus_encoder_create(48_000, Int32(channels), OPUS_APPLICATION_AUDIO, &code)
    guard let made, code == OPUS_OK else { throw OpusFailure(call: "opus_encoder_create", code: code) }
    for (call, code) in [
      ("bitrate", nightjar_opus_set_bitrate(made, Int32(bitrate))),
      ("complexity", nightjar_opus_set_complexity(made, complexity)),
      ("inband_fec", nightjar_opus_set_inband_fec(made, channels == 1 ? 1 : 0)),
      ("packet_loss_perc", nightjar_opus_set_packet_loss(made, expectedLoss)),
      ("dtx", nightjar_opus_set_dtx(made, 0)),
    ] where code != OPUS_OK {
      opus_encoder_destroy(made)
      throw OpusFailure(call: call, code: code)
    }
    return made
  }

  deinit { opus_encoder_destroy(handle) }

  /// The samples by which decoded sound is late, as the decoder is to skip them at the start (RFC 7845 section 4.2).
  package var lookahead: Int {
    var samples: Int32 = 0
    return nightjar_opus_lookahead(handle, &samples) == OPUS_OK ? Int(samples) : 0
  }

  /// Forgets the samples so far. Otherwise the next packet begins with the end of the last one's sound.
  package mutating func forget() { _ = nightjar_opus_reset(handle) }

  /// Encodes ``frameSamples`` of each channel, side by side, into `memory`, which has room for ``packetLimit`` bytes.
  ///
  /// - Returns: The packet's bytes.
  /// - Throws: ``OpusFailure``.
  package mutating func encode(
    _ samples: UnsafeBufferPointer<Int16>, into memory: UnsafeMutableRawBufferPointer
  ) throws(OpusFailure) -> Int {
    precondition(samples.count == Self.frameSamples * channels && memory.count >= Self.packetLimit, "a whole frame")
    guard let source = samples.baseAddress, let target = memory.baseAddress else { return 0 }
    let count = opus_encode(
      handle, source, Int32(Self.frameSamples), target.assumingMemoryBound(to: UInt8.self), Int32(Self.packetLimit))
    guard count > 0 else { throw OpusFailure(call: "opus_encode", code: count) }
    return Int(count)
  }
}

/// A failure of libopus.
package struct OpusFailure: Failure {
  /// The call or setting that failed.
  package let call: String
  /// libopus's code.
  package let code: Int32

  /// A one-line message for the terminal.
  package var description: String {
    "Opus: \(call): \(opus_strerror(code).map { String(cString: $0) } ?? "error \(code)")"
  }

  /// The kind of failure.
  package var kind: FailureKind { .software }
}
