import Foundation
import TestSupport
import Testing

/// The kernel's loopback card, snd-aloop: what is played into one end comes out at the other.
enum LoopbackCard {
  /// The end that is recorded.
  static let microphone = "hw:CARD=Loopback,DEV=1"
  /// The end that is played into.
  private static let speaker = "plughw:CARD=Loopback,DEV=0"
  /// The peak of ``play(in:)`` in dBFS.
  static let peak = -14.0

  /// Plays a sine of 440 Hz in both channels until it is released or ended.
  static func play(in directory: TemporaryDirectory) throws -> Subprocess {
    let file = directory.path("sine.wav")
    if !FileManager.default.fileExists(atPath: file) {
      let made = try Subprocess.run(
        [
          "ffmpeg", "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i",
          "aevalsrc=0.2*sin(2*PI*440*t)|0.2*sin(2*PI*440*t):s=48000:d=600", file,
        ], in: directory)
      #expect(made.status == 0, "\(made.error)")
    }
    return try Subprocess(["aplay", "-q", "-D", Self.speaker, file], in: directory)
  }

  /// Takes the card away (`unbind`), or brings it back (`bind`).
  static func plug(_ action: String) throws {
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: "/sys/bus/platform/drivers/snd_aloop/\(action)"))
    try file.write(contentsOf: Data("snd_aloop.0".utf8))
    try file.close()
  }
}
