import Foundation
import Platform
import Sound
import TestSupport
import Testing

@Suite struct SignalTests {
  /// A second of a sine, one channel.
  private func sine(_ frequency: Double, amplitude: Double) -> [Int16] {
    (0..<48_000).map { Int16(amplitude * sin(2 * .pi * frequency * Double($0) / 48_000)) }
  }

  private func level(_ samples: [Int16]) -> SoundLevel? {
    var meter = LevelMeter(rate: 48_000)
    return samples.withUnsafeBufferPointer { meter.note($0) }
  }

  @Test func `a sine of full scale has -3 dBFS, one of a tenth 20 dB less, silence the least`() throws {
    let full = try #require(level(sine(1000, amplitude: 32_767)))
    #expect(abs(full.rms + 3.01) < 0.01 && abs(full.peak) < 0.01)
    let tenth = try #require(level(sine(1000, amplitude: 3276.7)))
    #expect(abs(tenth.rms + 23.01) < 0.01 && abs(tenth.peak + 20) < 0.01)
    #expect(level([Int16](repeating: 0, count: 4800)) == .silence)
  }

  @Test(arguments: [1, 2])
  func `the meter has a level for each tenth of a second, of its own samples alone`(channels: Int) {
    var meter = LevelMeter(rate: 48_000 * channels)
    var levels: [Int: SoundLevel] = [:]
    // Frames of 20 ms, as the encoder gets them: a loud tenth of a second, silence, and a single click.
    for number in 0..<15 {
      var frame = [Int16](repeating: number < 5 ? 16_384 : 0, count: 960 * channels)
      if number == 12 { frame[500] = .min }
      if let level = frame.withUnsafeBufferPointer({ meter.note($0) }) { levels[number] = level }
    }
    #expect(levels.keys.sorted() == [4, 9, 14])
    // Half of full scale, throughout.
    #expect(abs((levels[4]?.rms ?? 0) + 6.02) < 0.01 && abs((levels[4]?.peak ?? 0) + 6.02) < 0.01)
    #expect(levels[9] == .silence)
    // One of all samples of the tenth, of each channel.
    let click = -10 * log10(4800 * Double(channels))
    #expect(abs((levels[14]?.rms ?? 0) - click) < 0.01 && levels[14]?.peak == 0)
  }

  @Test func `the loudest of ten levels is held, and no longer`() {
    var hold = LevelHold()
    _ = hold.note(SoundLevel(rms: -20, peak: -10))
    _ = hold.note(SoundLevel(rms: -30, peak: -3))
    for _ in 0..<8 { #expect(hold.note(.silence) == SoundLevel(rms: -20, peak: -3)) }
    #expect(hold.note(.silence) == SoundLevel(rms: -30, peak: -3))
    #expect(hold.note(.silence) == .silence)
  }

  @Test func `the high-pass filter reduces the hum of the mains, and leaves speech`() throws {
    func change(_ frequency: Double) throws -> Double {
      var chain = SoundChain(channels: 1, usesHighPass: true)
      var samples = sine(frequency, amplitude: 8000)
      let before = try #require(level(samples)).rms
      _ = samples.withUnsafeMutableBufferPointer { chain.apply($0) }
      return try #require(level(Array(samples[9600...]))).rms - before
    }
    #expect(try change(25) < -40)
    // The mains of most countries, and those of the rest.
    #expect(try change(50) < -23.5)
    #expect(try change(60) < -17)
    #expect(abs(try change(100) + 3) < 0.2)
    #expect(abs(try change(200)) < 0.1)
    #expect(abs(try change(400)) < 0.1)
  }

  @Test func `gain is in decibels, and what is beyond full scale is counted`() throws {
    var chain = SoundChain(channels: 1, usesHighPass: false)
    var samples = sine(1000, amplitude: 8000)
    let before = try #require(level(samples)).rms
    chain.setGain(6)
    #expect(samples.withUnsafeMutableBufferPointer { chain.apply($0) } == 0)
    #expect(abs(try #require(level(samples)).rms - before - 6) < 0.01)
    chain.setGain(12)
    #expect(samples.withUnsafeMutableBufferPointer { chain.apply($0) } > 10_000)
    #expect(samples.max() == 32_767 && samples.min() == -32_768)
  }

  @Test func `two channels become one by their mean, eight by the mean of the first two`() {
    func mix(_ samples: [Int16], _ input: Int, _ output: Int) -> [Int16] {
      var memory = [Int16](repeating: 0, count: 16)
      let count = samples.withUnsafeBufferPointer { source in
        memory.withUnsafeMutableBufferPointer { ChannelMix(input: input, output: output).apply(source, into: $0) }
      }
      return Array(memory[..<count])
    }
    #expect(mix([100, 300, -32_768, -32_768], 2, 1) == [200, -32_768])
    #expect(mix([10, 20, 1, 1, 1, 1, 1, 1, 30, 40, 2, 2, 2, 2, 2, 2], 8, 1) == [15, 35])
    #expect(mix([5, 6], 1, 2) == [5, 5, 6, 6])
    #expect(mix([5, 6], 2, 2) == [5, 6])
  }
}
