import COpus
import Foundation
import Platform
import Sound
import Testing

/// The packets of Opus, as libopus decodes them.
@Suite struct OpusEncoderTests {
  /// A decoder of libopus for 48 kHz.
  private final class Decoder {
    private let handle: OpaquePointer
    private let channels: Int

    init(channels: Int) throws {
      var code: Int32 = 0
      handle = try #require(opus_decoder_create(48_000, Int32(channels), &code))
      self.channels = channels
    }

    deinit { opus_decoder_destroy(handle) }

    /// Decodes a packet. With `fec`, the packet is that after a lost one, and gives what it has of the lost one; nil for
    /// the packet is a loss without any.
    func decode(_ packet: [UInt8]?, fec: Bool = false) -> [Int16] {
      var samples = [Int16](repeating: 0, count: 960 * channels)
      let count = opus_decode(handle, packet, Int32(packet?.count ?? 0), &samples, 960, fec ? 1 : 0)
      #expect(count == 960)
      return samples
    }
  }

  /// Speech-like sound: a buzz of 140 Hz with three formants whose loudness changes, different in each channel.
  private static func speech(frames: Int, channels: Int) -> [[Int16]] {
    (0..<frames).map { frame in
      (0..<960).flatMap { index in
        (0..<channels).map { channel in
          let time = Double(frame * 960 + index) / 48_000
          let syllable = 0.55 + 0.45 * sin(2 * .pi * (4 + 3 * Double(channel)) * time)
          let buzz = [1, 2, 4, 5, 8, 14].map { sin(2 * .pi * 140 * $0 * time) / $0.squareRoot() }.reduce(0, +)
          return Int16(4000 * syllable * buzz)
        }
      }
    }
  }

  private func packets(_ frames: [[Int16]], channels: Int, bitrate: Int) throws -> [[UInt8]] {
    var encoder = try OpusEncoder(channels: channels, bitrate: bitrate)
    var memory = [UInt8](repeating: 0, count: OpusEncoder.packetLimit)
    return try frames.map { frame in
      let count = try memory.withUnsafeMutableBytes { memory in
        try frame.withUnsafeBufferPointer { try encoder.encode($0, into: memory) }
      }
      return Array(memory[..<count])
    }
  }

  private static func energy(_ samples: some Sequence<Int16>) -> Double {
    samples.reduce(0) { $0 + Double($1) * Double($1) }
  }

  @Test(arguments: [(1, 6_000), (1, 16_000), (1, 32_000), (2, 32_000), (2, 128_000), (1, 128_000)])
  func `the bitrate is that requested, and each packet is one frame of 20 ms`(channels: Int, bitrate: Int) throws {
    let packets = try packets(
      Self.speech(frames: 500, channels: channels), channels: channels, bitrate: bitrate)
    // The first second is that of an encoder which does not know the sound.
    let bits = 8 * packets.dropFirst(50).map(\.count).reduce(0, +)
    let rate = Double(bits) / Double(packets.count - 50) * 50
    #expect((0.75...1.2).contains(rate / Double(bitrate)), "\(rate)")
    for packet in packets {
      #expect(opus_packet_get_nb_frames(packet, Int32(packet.count)) == 1)
      #expect(opus_packet_get_samples_per_frame(packet, 48_000) == 960)
      #expect(opus_packet_get_nb_channels(packet) <= channels)
    }
  }

  @Test func `the two channels of stereo stay apart`() throws {
    let frames = (0..<100).map { frame in
      (0..<960).flatMap { index -> [Int16] in
        let time = Double(frame * 960 + index) / 48_000
        return [Int16(8000 * sin(2 * .pi * 440 * time)), 0]
      }
    }
    let decoder = try Decoder(channels: 2)
    let packets = try packets(frames, channels: 2, bitrate: 64_000)
    let decoded = packets.flatMap { decoder.decode($0) }.dropFirst(960 * 2 * 20)
    let sides = [0, 1].map { side in
      Self.energy(decoded.enumerated().filter { $0.offset % 2 == side }.map(\.element))
    }
    // 20 dB at least.
    #expect(sides[0] > 100 * sides[1], "\(sides)")
    let level = 10 * log10(sides[0] / Double(decoded.count / 2) / (32_768 * 32_768))
    #expect(abs(level - (20 * log10(8000 / 32_768.0) - 3)) < 1, "\(level)")
  }

  @Test(arguments: [6_000, 12_000, 16_000, 24_000, 64_000])
  func `a beep of each second is a beep in both channels, whatever the bitrate`(bitrate: Int) throws {
    // The test tone's, of 100 ms.
    let frames = (0..<500).map { frame in
      (0..<960).flatMap { index -> [Int16] in
        let phase = (0.3 + Double(frame * 960 + index) / 48_000).truncatingRemainder(dividingBy: 1)
        let sample = phase < 0.1 ? Int16(8192 * sin(2 * .pi * 1000 * phase)) : 0
        return [sample, sample]
      }
    }
    let decoder = try Decoder(channels: 2)
    let decoded = try packets(frames, channels: 2, bitrate: bitrate).flatMap { decoder.decode($0) }
    for side in [0, 1] {
      let samples = decoded.enumerated().filter { $0.offset % 2 == side }.map(\.element)
      for second in 0..<9 {
        // The beep begins 0.7 s after the second; the encoder's lookahead is less than 10 ms.
        let start = 48_000 * second + 33_600
        func level(_ range: Range<Int>) -> Double {
          10 * log10(max(1, Self.energy(samples[range])) / Double(range.count) / (32_768 * 32_768))
        }
        let (beep, pause) = (level(start + 960..<start + 4800), level(start - 24_000..<start - 4800))
        // -12 dBFS at its peak.
        #expect(abs(beep + 15) < 3 && pause < beep - 30, "\(side) \(second): \(beep) \(pause)")
      }
    }
  }

  @Test(arguments: [32_000, 24_000]) func `a lost packet comes back from the packet after it`(bitrate: Int) throws {
    let channels = 1
    let packets = try packets(
      Self.speech(frames: 200, channels: channels), channels: channels, bitrate: bitrate)
    let whole = try Decoder(channels: channels)
    let expected = packets.map { whole.decode($0) }
    /// Returns how much the frames after a loss differ from those of a decoder that has lost nothing.
    func error(usesCorrection: Bool) throws -> Double {
      let decoder = try Decoder(channels: channels)
      var difference = 0.0
      for index in packets.indices {
        // Every tenth packet is lost; its frame is decoded by what the next one has of it.
        let isLost = index % 10 == 5 && index + 1 < packets.count
        let samples =
          !isLost
          ? decoder.decode(packets[index])
          : usesCorrection ? decoder.decode(packets[index + 1], fec: true) : decoder.decode(nil)
        guard isLost else { continue }
        difference += Self.energy(zip(samples, expected[index]).map { Int16(clamping: Int($0) - Int($1)) })
      }
      return difference
    }
    let (corrected, concealed) = (try error(usesCorrection: true), try error(usesCorrection: false))
    // What the packet after it carries is much nearer than a guess.
    #expect(corrected < concealed / 2, "\(corrected) \(concealed)")
  }

  @Test(arguments: [1, 2]) func `silence is a packet each 20 ms too, because it proves that the line lives`(
    channels: Int
  ) throws {
    let silence = [[Int16]](repeating: [Int16](repeating: 0, count: 960 * channels), count: 200)
    let packets = try packets(silence, channels: channels, bitrate: 32_000)
    // Discontinuous transmission would give packets of two bytes at most, which are not to be sent (opus_defines.h).
    #expect(packets.count == 200 && packets.allSatisfy { $0.count > 2 }, "\(packets.map(\.count))")
    let decoder = try Decoder(channels: channels)
    // Below -60 dBFS: a decoder may add noise for comfort.
    #expect(packets.allSatisfy { decoder.decode($0).allSatisfy { abs($0) < 33 } })
  }

  @Test func `a bitrate that libopus does not know, and three channels, are refused`() {
    #expect(throws: OpusFailure.self) { _ = try OpusEncoder(channels: 3, bitrate: 32_000) }
    #expect(throws: OpusFailure.self) { _ = try OpusEncoder(channels: 1, bitrate: -5) }
  }

  @Test func `after forgetting, nothing of the former sound is left`() throws {
    var encoder = try OpusEncoder(channels: 1, bitrate: 32_000)
    var memory = [UInt8](repeating: 0, count: OpusEncoder.packetLimit)
    func encode(_ frame: [Int16]) throws -> [UInt8] {
      let count = try memory.withUnsafeMutableBytes { memory in
        try frame.withUnsafeBufferPointer { try encoder.encode($0, into: memory) }
      }
      return Array(memory[..<count])
    }
    for frame in Self.speech(frames: 20, channels: 1) { _ = try encode(frame) }
    encoder.forget()
    let silence = try encode([Int16](repeating: 0, count: 960))
    #expect(try Decoder(channels: 1).decode(silence).allSatisfy { abs($0) < 33 })
  }
}
