import Detection
import Foundation
import TestSupport
import Testing

/// Crying found and not found, in sounds that are made here, and in speech that espeak-ng speaks. Prints the tables of
/// docs/detection.md.
@Suite struct CryTests {
  private static let isLong = ProcessInfo.processInfo.environment["NIGHTJAR_LONG"] != nil

  private static let backgrounds: [(name: String, make: @Sendable (UInt64) -> any SoundGenerator)] = [
    ("room", { RoomNoise(seed: $0) }), ("white noise", { RoomNoise(seed: $0, cutoff: nil) }),
    ("fan", { Fan(seed: $0) }), ("rain", { Rain(seed: $0) }),
  ]

  private static let text = """
    The quick brown fox jumps over the lazy dog. Oh no, where have you been? I told you a hundred times that we should \
    leave earlier. Please put the kettle on, and call your sister. Yes! Really? That is wonderful. Once upon a time there \
    was a little girl who lived in a village near the forest. Good night, sleep tight, see you in the morning.
    """

  /// A voice of espeak-ng: a man, women, and the highest pitch, which is that of a child.
  private static let voices = [
    (voice: "en+m3", pitch: 50), (voice: "en+f2", pitch: 50), (voice: "en+f5", pitch: 70), (voice: "en+f2", pitch: 99),
    (voice: "en+f4", pitch: 99), (voice: "en+f5", pitch: 99),
  ]

  /// Speaks the text by espeak-ng, as 48,000 samples a second.
  private static func speech(_ voice: (voice: String, pitch: Int), in directory: TemporaryDirectory) throws -> Recording
  {
    let path = directory.path("\(voice.voice)-\(voice.pitch).raw")
    let command =
      "espeak-ng -v \"$0\" -p \"$1\" --stdout \"$2\" | ffmpeg -v error -y -i - -ar 48000 -ac 1 -f s16le \"$3\""
    let result = try Subprocess.run(
      ["sh", "-c", command, voice.voice, "\(voice.pitch)", text, path], in: directory)
    try #require(result.status == 0, "\(result.error)")
    let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    let samples = bytes.withUnsafeBytes { bytes in
      (0..<bytes.count / 2).map { Float(bytes.loadUnaligned(fromByteOffset: 2 * $0, as: Int16.self)) / 32_768 }
    }
    try #require(samples.count > 480_000)
    return Recording(samples)
  }

  @Test func `cries ten decibels above the background are found`() {
    let seeds: UInt64 = Self.isLong ? 50 : 3
    var table = "| background | dB above it | found | of | after |\n|---|---|---|---|---|\n"
    var (found, all) = (0, 0)
    for (name, make) in Self.backgrounds {
      for decibels in (Self.isLong ? [5, 10, 15, 25] : [10]) as [Float] {
        var hits = 0
        var delays: [Double] = []
        for seed in 0..<seeds {
          let scene = SoundScene(background: make(seed), source: Cry(seed: 100 + seed), decibels: decibels)
          let result = scene.run(seconds: 15)
          guard let first = result.crying.first else { continue }
          #expect((0.4...0.99).contains(result.confidence))
          hits += 1
          delays.append(first)
        }
        let median = delays.sorted()[safe: delays.count / 2].map { String(format: "%.1f s", $0) } ?? "-"
        table += "| \(name) | \(Int(decibels)) | \(hits) | \(seeds) | \(median) |\n"
        if decibels >= 10 { (found, all) = (found + hits, all + Int(seeds)) }
      }
    }
    print(table)
    #expect(Double(found) >= 0.95 * Double(all), "\(found) of \(all)")
  }

  @Test func `cries are found beside speech and music that are softer`() throws {
    let directory = try TemporaryDirectory()
    let others: [(String, any SoundGenerator)] = [
      ("speech", try Self.speech(Self.voices[1], in: directory)), ("piano", Music(.piano, seed: 3)),
    ]
    var table = "| beside | found | of |\n|---|---|---|\n"
    for (name, other) in others {
      var hits = 0
      let seeds: UInt64 = Self.isLong ? 20 : 2
      for seed in 0..<seeds {
        let mixture = Mixture(Cry(seed: 200 + seed), other, decibels: -12)
        let scene = SoundScene(background: RoomNoise(seed: seed), source: mixture, decibels: 20)
        if !scene.run(seconds: 20).crying.isEmpty { hits += 1 }
      }
      table += "| \(name), 12 dB softer | \(hits) | \(seeds) |\n"
      #expect(2 * hits >= Int(seeds), "\(name)")
    }
    print(table)
  }

  /// A quarter of an hour each time, and eight hours in the long check.
  @Test func `fans, rain, speech and music are no crying`() throws {
    let directory = try TemporaryDirectory()
    let hours = Self.isLong ? 8.0 : 0.25
    var sounds: [(name: String, sound: any SoundGenerator)] = Self.backgrounds.map { ($0.name, $0.make(77)) }
    for instrument in Music.Instrument.allCases { sounds.append(("\(instrument)", Music(instrument, seed: 7))) }
    for voice in Self.voices {
      sounds.append(("speech, \(voice.voice), pitch \(voice.pitch)", try Self.speech(voice, in: directory)))
    }
    let levels: [Float] = [10, 25]
    let seconds = hours * 3600 / Double(sounds.count * levels.count)
    var table = "| sound | dB above the background | minutes | false cries | noise |\n|---|---|---|---|---|\n"
    var all = 0
    for (name, sound) in sounds {
      for decibels in levels {
        let scene = SoundScene(background: RoomNoise(seed: 3), source: sound, decibels: decibels)
        let result = scene.run(seconds: seconds)
        all += result.crying.count
        table +=
          "| \(name) | \(Int(decibels)) | \(String(format: "%.1f", seconds / 60)) | \(result.crying.count) "
          + "| \(result.noise.count) |\n"
      }
    }
    print(table)
    #expect(all <= (Self.isLong ? 1 : 0), "\(all) false cries in \(hours) h")
  }
}

/// Two sounds at a time.
struct Mixture: SoundGenerator {
  private var first: any SoundGenerator
  private var second: any SoundGenerator
  private let gains: (Float, Float)

  /// - Parameter decibels: the level of the second sound above the first one.
  init(_ first: any SoundGenerator, _ second: any SoundGenerator, decibels: Float) {
    (self.first, self.second) = (first, second)
    gains = (SoundScene.gain(of: first, to: -20), SoundScene.gain(of: second, to: -20 + decibels))
  }

  mutating func next() -> Float { gains.0 * first.next() + gains.1 * second.next() }
}

extension Array {
  fileprivate subscript(safe index: Int) -> Element? { indices.contains(index) ? self[index] : nil }
}
