import Foundation
import Platform
import Sound
import Testing

/// A simulated card, whose crystal is off, in front of the aligner, and what comes out of the timeline.
private struct Simulation {
  let timeline: SoundTimeline
  let aligner: SoundAligner
  let format: SoundFormat
  /// The card's true rate in samples a second of `CLOCK_MONOTONIC`.
  let rate: Double
  /// The error of the time stamps, in seconds.
  var jitter = 0.001
  let start = Instant(nanoseconds: 1_000_000_000_000)
  private var number = 0
  private var random = SystemRandomNumberGenerator()
  /// The samples of the timeline, first channel, with the time of the first one of each 20 ms.
  private(set) var worst = 0.0
  private let frame: UnsafeMutableBufferPointer<Int16>
  private let block: UnsafeMutableBufferPointer<Int16>

  init(_ format: SoundFormat = SoundFormat(rate: 48_000, channels: 1), deviation: Double = 0) throws {
    self.format = format
    rate = Double(format.rate) * (1 + deviation * 1e-6)
    timeline = SoundTimeline(channels: 1, start: start)
    aligner = try SoundAligner(from: format, onto: timeline)
    frame = .allocate(capacity: 960)
    block = .allocate(capacity: format.rate / 4 * format.channels)
  }

  /// The time at which the card records sample `number`.
  func time(of number: Int) -> Instant { start + Duration(seconds: Double(number) / rate) }

  /// Records 10 ms after 10 ms for `seconds`. Each sample holds the part of the second in which it was recorded, as a
  /// saw tooth of 1 s; the error of each frame's first sample against its place is noted in `worst` once `settled`
  /// seconds are over.
  mutating func run(seconds: Double, settled: Double = 0) {
    let count = format.rate / 100
    let end = number + Int(seconds * rate)
    let begin = number
    while number < end {
      for index in 0..<count {
        // Of millions of samples: without the steps of `time(of:)`.
        let recorded = Double(number + index) / rate
        let sample = Int16((recorded - recorded.rounded(.down)) * 20_000)
        for channel in 0..<format.channels { block[index * format.channels + channel] = sample }
      }
      let first = time(of: number) + Duration(seconds: Double.random(in: 0...jitter, using: &random))
      aligner.take(UnsafeBufferPointer(rebasing: block[..<(count * format.channels)]), first: first)
      number += count
      while let time = timeline.take(frame) {
        let phase = (time - start).seconds.truncatingRemainder(dividingBy: 1)
        // Near the jump of the saw tooth the resampler rings.
        // Silence in the place of what is missing is in its place; the resampler rings beside it.
        guard abs(Int(frame[0])) > 1000, 0.1...0.9 ~= phase, Double(number - begin) / rate > settled else { continue }
        let error = abs(Double(frame[0]) / 20_000 - phase)
        worst = max(worst, min(error, 1 - error))
      }
    }
  }

  /// Leaves out samples, as a card that nobody read in time.
  mutating func lose(seconds: Double) { number += Int(seconds * rate) }
  mutating func forgetWorst() { worst = 0 }
}

@Suite struct SoundAlignerTests {
  @Test(arguments: [-200.0, 0, 200, 450])
  func `sound stays in its place for half an hour, whatever the crystal`(deviation: Double) throws {
    var simulation = try Simulation(deviation: deviation)
    simulation.run(seconds: 60)
    #expect(simulation.worst < 0.02)
    simulation.forgetWorst()
    simulation.run(seconds: ProcessInfo.processInfo.environment["NIGHTJAR_LONG"] == nil ? 240 : 1740)
    #expect(simulation.worst < 0.003, "\(simulation.worst)")
    #expect(abs(simulation.aligner.drift - deviation) < 20, "\(simulation.aligner.drift)")
    #expect(simulation.aligner.jumps == 0)
  }

  @Test(
    arguments: [
      SoundFormat(rate: 44_100, channels: 2), SoundFormat(rate: 16_000, channels: 8),
      SoundFormat(rate: 96_000, channels: 1),
    ])
  func `cards of other rates and channels end on the same timeline`(format: SoundFormat) throws {
    var simulation = try Simulation(format, deviation: 80)
    simulation.run(seconds: 90, settled: 30)
    #expect(simulation.worst < 0.003, "\(simulation.worst)")
    #expect(simulation.aligner.jumps == 0)
  }

  @Test func `lost samples become silence, and what follows is in its place`() throws {
    var simulation = try Simulation(deviation: 100)
    simulation.run(seconds: 30)
    let silence = simulation.timeline.silentSamples
    simulation.lose(seconds: 0.3)
    simulation.aligner.noteLoss()
    simulation.forgetWorst()
    simulation.run(seconds: 0.1)
    #expect(abs(Double(simulation.timeline.silentSamples - silence) / 48_000 - 0.3) < 0.02)
    simulation.forgetWorst()
    simulation.run(seconds: 30, settled: 1)
    #expect(simulation.worst < 0.005, "\(simulation.worst)")
  }

  @Test func `a rate that no crystal has makes jumps, and never a growing delay`() throws {
    var simulation = try Simulation(deviation: 20_000)
    simulation.run(seconds: 120)
    #expect(simulation.aligner.jumps > 5)
    // The line through the points of some seconds is off by as much again as a jump.
    #expect(simulation.worst < 0.15, "\(simulation.worst)")
  }
}
