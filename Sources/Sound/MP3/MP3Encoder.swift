import CLAME
package import Platform

/// An MP3 encoder (ISO/IEC 11172-3, layer III) at 48 kHz, whose frames all have the same length and need no other
/// frame: a listener may begin with any of them. One thread at a time uses it.
package struct MP3Encoder: ~Copyable {
  /// The number of channels, 1 or 2.
  package let channels: Int
  private let handle: OpaquePointer

  /// The samples of each channel in a frame: 24 ms at 48 kHz.
  package static let frameSamples = 1152
  /// The bytes of room that ``encode(_:into:)`` needs: the worst case that lame.h names, for ``frameSamples``.
  package static let byteLimit = frameSamples * 5 / 4 + 7200
  /// Bits a second of each channel: a little more than LAME's own preset for voice has, because no frame may borrow bits
  /// from another here.
  static let channelBitrate = 64_000
  /// The effort, 0 (most)…9; docs/decisions.md has the measurement.
  static let quality: Int32 = 5

  /// Creates an encoder of constant bitrate, without tags.
  ///
  /// - Parameter channels: 1 or 2.
  /// - Throws: ``MP3Failure``.
  package init(channels: Int) throws(MP3Failure) {
    try self.init(channels: channels, quality: Self.quality)
  }

  /// Creates an encoder of another effort.
  package init(channels: Int, quality: Int32) throws(MP3Failure) {
    handle = try Self.make(channels: channels, quality: quality)
    self.channels = channels
  }

  private static func make(channels: Int, quality: Int32) throws(MP3Failure) -> OpaquePointer {
    guard let made = lame_init() else { throw MP3Failure(call: "lame_init", code: -2) }
    nightjar_lame_be_silent(made)
    for (call, code) in [
      ("in_samplerate", lame_set_in_samplerate(made, Int32(SoundFormat.trackRate))),
      ("out_samplerate", lame_set_out_samplerate(made, Int32(SoundFormat.trackRate))),
      ("num_channels", lame_set_num_channels(made, Int32(channels))),
      ("mode", lame_set_mode(made, channels == 2 ? JOINT_STEREO : MONO)),
      ("VBR", lame_set_VBR(made, vbr_off)),
      ("brate", lame_set_brate(made, Int32(channelBitrate * channels / 1000))),
      ("quality", lame_set_quality(made, quality)),
      // Otherwise a frame's data may begin in frames before it, which a listener who joins has not got.
      ("disable_reservoir", lame_set_disable_reservoir(made, 1)),
      // An endless stream has no length that a tag could tell.
      ("bWriteVbrTag", lame_set_bWriteVbrTag(made, 0)),
    ] where code < 0 {
      lame_close(made)
      throw MP3Failure(call: call, code: code)
    }
    lame_set_write_id3tag_automatic(made, 0)
    let code = lame_init_params(made)
    guard code >= 0 else {
      lame_close(made)
      throw MP3Failure(call: "lame_init_params", code: code)
    }
    return made
  }

  deinit { lame_close(handle) }

  /// Encodes up to ``frameSamples`` of each channel, side by side, into `memory`, which has room for ``byteLimit``
  /// bytes.
  ///
  /// - Returns: The bytes of the frame that is complete with these samples; 0 where none is.
  /// - Throws: ``MP3Failure``.
  package mutating func encode(
    _ samples: UnsafeBufferPointer<Int16>, into memory: UnsafeMutableRawBufferPointer
  ) throws(MP3Failure) -> Int {
    let count = samples.count / channels
    precondition(count <= Self.frameSamples && memory.count >= Self.byteLimit, "at most a frame, and room for it")
    guard let source = samples.baseAddress, let target = memory.baseAddress else { return 0 }
    let bytes = target.assumingMemoryBound(to: UInt8.self)
    // LAME only reads the samples; lame.h does not say so.
    let given = UnsafeMutablePointer(mutating: source)
    let code =
      channels == 2
      ? lame_encode_buffer_interleaved(handle, given, Int32(count), bytes, Int32(Self.byteLimit))
      : lame_encode_buffer(handle, source, source, Int32(count), bytes, Int32(Self.byteLimit))
    guard code >= 0 else { throw MP3Failure(call: "lame_encode_buffer", code: code) }
    return Int(code)
  }
}

/// A failure of LAME.
package struct MP3Failure: Failure {
  /// The call or setting that failed.
  package let call: String
  /// LAME's code.
  package let code: Int32

  /// Creates an error of LAME.
  package init(call: String, code: CInt) {
    (self.call, self.code) = (call, code)
  }

  /// A one-line message for the terminal.
  package var description: String { "MP3: \(call): error \(code) of LAME" }

  /// The kind of failure.
  package var kind: FailureKind { .software }
}
