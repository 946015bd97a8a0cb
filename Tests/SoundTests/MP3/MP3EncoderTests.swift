import Foundation
import Platform
import Sound
import TestSupport
import Testing

/// MP3, as ffmpeg reads it.
@Suite struct MP3EncoderTests {
  /// A sine of `frequency` Hz on the left, and of half of it on the right, in pieces of 20 ms as the stage gets them.
  private static func frames(seconds: Int, channels: Int, frequency: Double = 1000) throws -> [[UInt8]] {
    var encoder = try MP3Encoder(channels: channels)
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: MP3Encoder.byteLimit, alignment: 8)
    defer { memory.deallocate() }
    var frames: [[UInt8]] = []
    for piece in 0..<seconds * 50 {
      var samples: [Int16] = []
      for number in 0..<960 {
        let time = Double(piece * 960 + number) / 48_000
        for channel in 0..<channels {
          let phase: Double = 2 * .pi * frequency / Double(channel + 1) * time
          samples.append(Int16(8192 * sin(phase)))
        }
      }
      let count = try samples.withUnsafeBufferPointer { try encoder.encode($0, into: memory) }
      if count > 0 { frames.append(Array(memory[..<count])) }
    }
    return frames
  }

  /// The samples of each channel that ffmpeg decodes, and what it complains of.
  private func decode(_ frames: ArraySlice<[UInt8]>, channels: Int) throws -> (samples: [[Double]], error: String) {
    let directory = try TemporaryDirectory()
    try Data(frames.joined()).write(to: URL(fileURLWithPath: directory.path("sound.mp3")))
    let result = try Subprocess.run(
      [
        "ffmpeg", "-nostdin", "-v", "error", "-err_detect", "explode", "-xerror", "-f", "mp3", "-i",
        directory.path("sound.mp3"), "-f", "s16le", "-c:a", "pcm_s16le", directory.path("sound.raw"),
      ], in: directory)
    #expect(result.status == 0, "\(result.error)")
    let raw = try Data(contentsOf: URL(fileURLWithPath: directory.path("sound.raw")))
    let samples = raw.withUnsafeBytes { bytes in bytes.bindMemory(to: Int16.self).map { Double($0) } }
    return (
      (0..<channels).map { channel in stride(from: channel, to: samples.count, by: channels).map { samples[$0] } },
      result.error
    )
  }

  /// The part of the power of `samples` that is at `frequency`, and the amplitude there.
  private func tone(_ samples: ArraySlice<Double>, at frequency: Double) -> (share: Double, amplitude: Double) {
    var (real, imaginary, power) = (0.0, 0.0, 0.0)
    for (number, value) in samples.enumerated() {
      let phase: Double = 2 * .pi * frequency * Double(number) / 48_000
      real += value * cos(phase)
      imaginary += value * sin(phase)
      power += value * value
    }
    let count = Double(samples.count)
    let amplitude = 2 * (real * real + imaginary * imaginary).squareRoot() / count
    return (amplitude * amplitude / 2 / (power / count), amplitude)
  }

  @Test(arguments: [1, 2])
  func `ffmpeg finds the rate, the channels, the duration and the tones`(channels: Int) throws {
    let frames = try Self.frames(seconds: 4, channels: channels)
    let directory = try TemporaryDirectory()
    try Data(frames.joined()).write(to: URL(fileURLWithPath: directory.path("sound.mp3")))
    let probe = try Subprocess.run(
      [
        "ffprobe", "-v", "error", "-show_entries", "stream=codec_name,sample_rate,channels,bit_rate", "-of", "csv=p=0",
        directory.path("sound.mp3"),
      ], in: directory)
    #expect(probe.outputText == "mp3,48000,\(channels),\(channels * 64_000)\n", "\(probe.outputText)\(probe.error)")
    let decoded = try decode(frames[...], channels: channels)
    // All samples but those that LAME and the decoder still hold: fewer than three frames.
    for (channel, samples) in decoded.samples.enumerated() {
      let missing = 4 * 48_000 - samples.count
      #expect((0..<3 * 1152).contains(missing), "\(missing)")
      let (share, amplitude) = tone(samples[24_000..<120_000], at: 1000 / Double(channel + 1))
      let deviation: Double = 20 * log10(amplitude / 8192)
      #expect(share > 0.99 && abs(deviation) < 0.5, "channel \(channel): \(share), \(deviation) dB")
    }
  }

  @Test(arguments: [1, 2])
  func `each frame is whole, has the same length, and borrows nothing from the frames before it`(channels: Int) throws {
    let frames = try Self.frames(seconds: 2, channels: channels)
    #expect(frames.count > 80)
    for frame in frames {
      // MPEG-1, layer III, no CRC (ISO/IEC 11172-3 section 2.4.1.3).
      #expect(frame.count == 192 * channels && frame[0] == 0xff && frame[1] == 0xfb)
      // main_data_begin, the nine bits behind the header.
      #expect(frame[4] == 0 && frame[5] & 0x80 == 0)
    }
  }

  @Test(arguments: [1, 2, 17, 40])
  func `a listener may begin with any frame`(first: Int) throws {
    let frames = try Self.frames(seconds: 2, channels: 1)
    let all = try decode(frames[...], channels: 1)
    let late = try decode(frames[first...], channels: 1)
    #expect(late.error == "")
    let (samples, expected) = (late.samples[0], all.samples[0])
    #expect(expected.count - samples.count == first * 1152)
    // The first frame lacks the half that it shares with the one before; from the third on nothing differs but by rounding.
    let end = expected.count - samples.count
    let difference = (2304..<samples.count).map { abs(samples[$0] - expected[end + $0]) }.max()
    #expect(try #require(difference) <= 2)
  }
}
