import Foundation
import TestSupport
import Testing

/// Mains hum from the kernel's loopback card, as a player hears it.
@Suite(.enabled(if: Vivid.isHere)) struct MicrophoneFilterTests {
  /// Two tones, each of −14 dBFS at its peak: that of the mains, and one of speech.
  private static let (hum, speech, peak) = (50.0, 1000.0, -14.0)

  @Test func `listeners hear speech without the hum of the mains, unless the filter is switched off`() throws {
    let directory = try TemporaryDirectory()
    let file = directory.path("hum.wav")
    let made = try Subprocess.run(
      [
        "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i",
        "aevalsrc=0.2*sin(2*PI*\(Self.hum)*t)+0.2*sin(2*PI*\(Self.speech)*t):s=48000:d=300", file,
      ], in: directory)
    #expect(made.status == 0, "\(made.error)")
    let player = try Subprocess(
      ["aplay", "-q", "-D", "plughw:CARD=Loopback,DEV=0,SUBDEV=5"] + Array(repeating: file, count: 3), in: directory)
    defer {
      player.send(SIGKILL)
      _ = try? player.wait(limit: 60)
    }
    for options in [["--no-audio-high-pass"], []] {
      let port = try TCPPort.free()
      let stream = try LoggedStream(
        [
          "--source", "test", "--size", "320x240", "--fps", "5", "--audio", "hw:CARD=Loopback,DEV=1,SUBDEV=5", "--rtsp",
          "127.0.0.1:\(port)",
        ] + options, in: directory)
      #expect(stream.says("microphone: "), "\(stream.program.errorSoFar)")
      let listener = try RTSPListener(port: port, in: directory)
      func isRight() -> Bool {
        guard let hum = listener.tone(Self.hum), let speech = listener.tone(Self.speech) else { return false }
        let change = hum - Self.peak
        return abs(speech - Self.peak) < 1 && (options.isEmpty ? change < -20 : abs(change) < 1)
      }
      // A second in which the guest had a pause has other levels, and a player starts slowly there.
      let isHeard = eventually(within: 300) { isRight() }
      #expect(isHeard, "\(options): \(listener.tone(Self.hum) ?? 0) \(listener.tone(Self.speech) ?? 0) \(listener.log)")
      print(
        "hum \(options): 50 Hz \(listener.tone(Self.hum) ?? 0) dBFS, 1 kHz \(listener.tone(Self.speech) ?? 0) dBFS")
      _ = try stream.finish()
    }
  }
}
