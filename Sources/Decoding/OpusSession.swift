import Adaptors
import COpus
import Platform

/// A decoder of libopus: the only user of the library here.
final class OpusSession: @unchecked Sendable {
  // Sendable: the decoder uses it under its lock only.

  /// The number of channels that come out.
  let channels: Int
  private let handle: OpaquePointer

  /// The most samples of one call: 120 ms (RFC 6716 section 3.4, R5).
  private static let callLimit = 5760
  /// The samples that libopus makes at least in place of a gap, and whole multiples of them: 2.5 ms.
  private static let step = 120

  /// Opens a decoder.
  init(channels: Int) throws(SoundDecoderError) {
    var code: Int32 = 0
    let made = opus_decoder_create(Int32(EncodedSound.sampleRate), Int32(channels), &code)
    guard let made, code == OPUS_OK else { throw Self.error(code) }
    (handle, self.channels) = (made, channels)
  }

  deinit { opus_decoder_destroy(handle) }

  /// Forgets the sound so far.
  func reset() { _ = nightjar_opus_decoder_reset(handle) }

  /// Returns the samples of each channel in a packet.
  ///
  /// - Throws: ``SoundDecoderError/packet(_:)``.
  func length(of packet: [UInt8]) throws(SoundDecoderError) -> Int {
    let count = opus_packet_get_nb_samples(packet, Int32(packet.count), Int32(EncodedSound.sampleRate))
    guard !packet.isEmpty, count > 0 else { throw .packet(Self.words(count < 0 ? count : OPUS_INVALID_PACKET)) }
    return Int(count)
  }

  /// Returns the samples of a packet.
  func decode(_ packet: [UInt8]) throws(SoundDecoderError) -> [Int16] {
    try call(packet, samples: Self.callLimit, corrects: false)
  }

  /// Returns sound for `gap` samples before `packet`; less by the part of 2.5 ms that is left.
  func fill(_ gap: Int, before packet: EncodedSound) throws(SoundDecoderError) -> [DecodedSound] {
    var parts: [DecodedSound] = []
    var position = packet.position - Int64(gap)
    var rest = gap / Self.step * Self.step
    while rest > 0 {
      // The last call takes the correction that the packet has for what is directly before it.
      let count = min(rest, Self.callLimit)
      let samples = try call(rest == count ? packet.bytes : [], samples: count, corrects: rest == count)
      guard !samples.isEmpty else { break }
      let ticks = packet.position - position
      let before = Duration(nanoseconds: ticks * 1_000_000_000 / EncodedSound.sampleRate)
      parts.append(
        DecodedSound(
          samples: samples, channels: channels, position: position, timestamp: packet.timestamp - before,
          captured: packet.captured, isConcealed: true))
      position += Int64(samples.count / channels)
      rest -= samples.count / channels
    }
    return parts
  }

  /// Calls the decoder; without a packet it conceals.
  private func call(_ packet: [UInt8], samples: Int, corrects: Bool) throws(SoundDecoderError) -> [Int16] {
    var code: Int32 = 0
    let decoded = [Int16](unsafeUninitializedCapacity: samples * channels) { memory, count in
      guard let samplesAddress = memory.baseAddress else { return }
      code = packet.withUnsafeBufferPointer { packet in
        opus_decode(
          handle, packet.isEmpty ? nil : packet.baseAddress, Int32(packet.count), samplesAddress, Int32(samples),
          corrects ? 1 : 0)
      }
      count = max(0, Int(code)) * channels
    }
    guard code >= 0 else { throw Self.error(code) }
    return decoded
  }

  private static func error(_ code: Int32) -> SoundDecoderError {
    switch code {
    case OPUS_INVALID_PACKET, OPUS_BUFFER_TOO_SMALL: .packet(words(code))
    case OPUS_ALLOC_FAIL: .memory
    default: .library(words(code))
    }
  }

  private static func words(_ code: Int32) -> String {
    opus_strerror(code).map { String(cString: $0) } ?? "error \(code)"
  }
}
