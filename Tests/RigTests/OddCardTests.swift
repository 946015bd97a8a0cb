import Foundation
import TestSupport
import Testing

/// Cards that take one format only. snd-aloop's end that records takes what is played into the other one: its rate,
/// format and channels.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct OddCardTests {
  struct Card: CustomTestStringConvertible, Sendable {
    let rate: Int
    let format: String
    let channels: Int
    var testDescription: String { "\(rate) Hz, \(format), \(channels) channels" }

    /// ffmpeg's name of the samples.
    var samples: String { format == "S16_LE" ? "s16le" : format == "S24_3LE" ? "s24le" : "s32le" }
  }

  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// Plays a sine of 440 Hz and −14 dBFS at its peak in the first two channels, and a louder one of 3 kHz in the others,
  /// into the card, which is then such a card.
  private func play(_ card: Card) throws -> Subprocess {
    let file = directory.path("\(card.rate)-\(card.format)-\(card.channels).raw")
    let tone = "0.2*sin(2*PI*440*t)"
    let channels = (0..<card.channels).map { $0 < 2 ? tone : "0.8*sin(2*PI*3000*t)" }.joined(separator: "|")
    let made = try Subprocess.run(
      [
        "ffmpeg", "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", "aevalsrc=\(channels):s=\(card.rate):d=60",
        "-f", card.samples, file,
      ], in: directory)
    #expect(made.status == 0, "\(made.error)")
    // A player starts slowly in a guest that shares its host: ten minutes, which is longer than is listened.
    return try Subprocess(
      [
        "aplay", "-q", "-D", "hw:CARD=Loopback,DEV=0,SUBDEV=3", "-t", "raw", "-f", card.format, "-r", "\(card.rate)",
        "-c", "\(card.channels)",
      ] + Array(repeating: file, count: 10), in: directory)
  }

  @Test(arguments: [
    Card(rate: 44_100, format: "S16_LE", channels: 2), Card(rate: 48_000, format: "S24_3LE", channels: 2),
    Card(rate: 48_000, format: "S16_LE", channels: 8), Card(rate: 96_000, format: "S32_LE", channels: 1),
    Card(rate: 44_100, format: "S24_3LE", channels: 8), Card(rate: 16_000, format: "S16_LE", channels: 1),
  ])
  func `a card that takes one format only is heard in its pitch and its level`(card: Card) throws {
    let player = try play(card)
    defer {
      player.send(SIGKILL)
      _ = try? player.wait(limit: 60)
    }
    let port = try TCPPort.free()
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--source", "test", "--size", "320x240", "--fps", "5", "--control", "none", "--rtsp",
        "127.0.0.1:\(port)", "--audio", "hw:CARD=Loopback,DEV=1,SUBDEV=3",
      ], in: directory)
    defer {
      program.send(SIGKILL)
      _ = try? program.wait(limit: 60)
    }
    let channels = card.channels == 1 ? "mono" : card.channels == 2 ? "stereo" : "\(card.channels) channels"
    let words = "microphone: hw:CARD=Loopback,DEV=1,SUBDEV=3, \(card.rate) Hz \(channels), every 10 ms"
    // The whole line: a driver without time stamps would be told at its end.
    let isTold = eventually(within: 60) { program.log.count(of: words) > 0 }
    #expect(isTold, "\(program.errorSoFar) \(player.errorSoFar)")
    let listener = try RTSPListener(port: port, in: directory)
    // A sine's root mean square is 3 dB below its peak.
    #expect(
      eventually(within: 300) { listener.hears(440, level: -17) },
      "\(String(describing: listener.last)) \(listener.log) \(player.errorSoFar)")
  }
}
