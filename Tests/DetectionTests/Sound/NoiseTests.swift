import Detection
import Foundation
import TestSupport
import Testing

/// The noise detector: levels, times, and backgrounds.
@Suite struct NoiseTests {
  /// White noise in the band for a while, and silence after it.
  private struct Bursts: SoundGenerator {
    var noise: RoomNoise
    let on: Int
    let period: Int
    var sample = 0

    init(on: Double, period: Double) {
      noise = RoomNoise(seed: 9, cutoff: nil)
      (self.on, self.period) = (Int(on * 48_000), Int(period * 48_000))
    }

    mutating func next() -> Float {
      sample += 1
      return sample % period < on ? noise.next() : 0
    }
  }

  private static func noise(
    _ source: any SoundGenerator, _ decibels: Float, _ sensitivity: NoiseSensitivity = .medium, seconds: Double = 20
  ) -> [Double] {
    let settings = SoundDetector.Settings(sensitivity: sensitivity, detectsCrying: false)
    return SoundScene(background: RoomNoise(seed: 1), source: source, decibels: decibels, detector: settings)
      .run(seconds: seconds).noise
  }

  /// The sum of two sounds that are equally loud is 3 dB louder; from 10 dB on the softer one hardly counts.
  @Test(arguments: [
    (NoiseSensitivity.low, Float(17), Float(23)), (.medium, 11, 17), (.high, 5.5, 11),
    (NoiseSensitivity(decibels: 30), 27, 33),
  ])
  func `noise begins at the decibels of the sensitivity`(sensitivity: NoiseSensitivity, below: Float, above: Float) {
    let source = Bursts(on: 2, period: 4)
    #expect(Self.noise(source, below, sensitivity).isEmpty)
    #expect(!Self.noise(source, above, sensitivity).isEmpty)
  }

  @Test func `a click is no noise, and half a second is`() {
    #expect(Self.noise(Bursts(on: 0.1, period: 1), 25).isEmpty)
    let found = Self.noise(Bursts(on: 0.5, period: 10), 25)
    #expect(found.count == 2)
    // Within a second of its beginning.
    #expect(found.first.map { $0 < 1 } == true, "\(found)")
  }

  @Test func `a fan that is switched on becomes the background`() {
    let fan = Fan(seed: 4)
    let settings = SoundDetector.Settings(detectsCrying: false)
    let result = SoundScene(background: RoomNoise(seed: 1), source: fan, decibels: 25, detector: settings)
      .run(seconds: 120)
    #expect(result.noise.count == 1, "\(result.noise)")
  }

  @Test(arguments: [0, 1, 2] as [UInt64])
  func `a fan, rain and white noise alone are no noise`(seed: UInt64) {
    let settings = SoundDetector.Settings(detectsCrying: false)
    for background in [Fan(seed: seed), RoomNoise(seed: seed, cutoff: nil)] as [any SoundGenerator] {
      let result = SoundScene(background: background, detector: settings).run(seconds: 60)
      #expect(result.noise.isEmpty, "\(background)")
    }
  }

  @Test func `speech through a door is no noise at the default, and speech in the room is`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("speech.raw")
    // A door takes 25 dB, and more of the high sounds.
    let command =
      "espeak-ng -v en+m3 --stdout \"$0\" | ffmpeg -v error -y -i - -af \"$1\" -ar 48000 -ac 1 -f s16le \"$2\""
    let text = "Good evening. Have you had your supper? We are going to the theatre tonight, and then home by train."
    func recording(_ filter: String) throws -> [Float] {
      let result = try Subprocess.run(["sh", "-c", command, text, filter, path], in: directory)
      try #require(result.status == 0, "\(result.error)")
      let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
      return bytes.withUnsafeBytes { bytes in
        (0..<bytes.count / 2).map { Float(bytes.loadUnaligned(fromByteOffset: 2 * $0, as: Int16.self)) / 32_768 }
      }
    }
    let near = Recording(try recording("anull"))
    let far = Recording(try recording("volume=-25dB,lowpass=f=500"))
    // Speech in the room is 30 dB above its background, and the same gain is that of the speech outside.
    let gain = SoundScene.gain(of: near, to: SoundScene.backgroundLevel + 30)
    func found(_ recording: Recording) -> [Double] {
      let level = 20 * log10(gain / SoundScene.gain(of: recording, to: SoundScene.backgroundLevel))
      return Self.noise(recording, level, seconds: 40)
    }
    #expect(!found(near).isEmpty)
    #expect(found(far).isEmpty)
  }

  @Test func `both channels count, and digital silence is no noise`() {
    var detector = SoundDetector(channels: 2, .init())
    let frame = UnsafeMutableBufferPointer<Int16>.allocate(capacity: 1920)
    defer { frame.deallocate() }
    frame.initialize(repeating: 0)
    for _ in 0..<500 { #expect(detector.note(UnsafeBufferPointer(frame)).noise == nil) }
    var found = false
    var noise = RoomNoise(seed: 2, cutoff: nil)
    for _ in 0..<50 {
      for index in stride(from: 1, to: 1920, by: 2) { frame[index] = Int16(noise.next() * 8000) }
      if detector.note(UnsafeBufferPointer(frame)).noise != nil { found = true }
    }
    #expect(found)
  }

  /// The cost of both detectors, printed; the limit is ten times as wide as the goal.
  @Test func `a second of sound costs little`() {
    var detector = SoundDetector(channels: 1, .init())
    let frame = UnsafeMutableBufferPointer<Int16>.allocate(capacity: 960)
    defer { frame.deallocate() }
    var cry = Cry(seed: 1)
    for index in 0..<960 { frame[index] = Int16(cry.next() * 8000) }
    let began = threadTime()
    for _ in 0..<500 { _ = detector.note(UnsafeBufferPointer(frame)) }
    let seconds = (threadTime() - began) / .seconds(10)
    print("noise and crying: \(String(format: "%.2f", seconds * 100)) % of a core")
    #expect(seconds < 0.2)
  }
}
