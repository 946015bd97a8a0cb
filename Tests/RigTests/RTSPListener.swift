import Foundation
import TestSupport

/// A player, ffmpeg, that hears the sound of an RTSP stream by TCP; ended with the value.
final class RTSPListener {
  /// What is heard in a piece of sound.
  struct Sound {
    /// By the changes of sign, in Hz.
    let frequency: Double
    /// The root mean square in dBFS; −200 for digital silence.
    let level: Double
  }

  private let program: Subprocess
  private let file: String
  private static let rate = 48_000
  /// A tenth of a second.
  private static let pieceLength = rate / 10

  /// Begins to listen to the camera at `port` of this machine.
  init(port: Int, in directory: TemporaryDirectory) throws {
    file = directory.path("heard-\(port).pcm")
    program = try Subprocess(
      [
        "ffmpeg", "-nostdin", "-v", "error", "-rtsp_transport", "tcp", "-allowed_media_types", "audio", "-i",
        "rtsp://127.0.0.1:\(port)/camera", "-ac", "1", "-ar", "\(Self.rate)", "-f", "s16le", "-flush_packets", "1",
        file,
      ], in: directory)
  }

  deinit {
    program.send(SIGKILL)
    _ = try? program.wait(limit: 10)
  }

  /// Whether it still plays what it began with.
  var isPlaying: Bool { program.isRunning }

  /// What ffmpeg had to say.
  var log: String { program.errorSoFar }

  /// How many seconds it has heard.
  var seconds: Double { Double(samples.count) / Double(Self.rate) }

  /// The medians of the last five tenths of a second, so that one with a gap in it does not count; nil before there are
  /// so many.
  var last: Sound? {
    let samples = samples
    let pieces = stride(from: samples.count - 5 * Self.pieceLength, to: samples.count, by: Self.pieceLength)
    guard samples.count >= 5 * Self.pieceLength else { return nil }
    let sounds = pieces.map { Self.sound(in: samples[$0..<($0 + Self.pieceLength)]) }
    return Sound(
      frequency: sounds.map(\.frequency).sorted()[2], level: sounds.map(\.level).sorted()[2])
  }

  /// Whether it hears a tone of `frequency` Hz and `level` dBFS now.
  func hears(_ frequency: Int, level: Double) -> Bool {
    last.map { abs($0.frequency - Double(frequency)) < Double(frequency) / 20 && abs($0.level - level) < 1 } ?? false
  }

  /// Whether it hears nothing now.
  var hearsNothing: Bool { last.map { $0.level < -70 } ?? false }

  private var samples: [Int16] {
    let bytes = (try? Data(contentsOf: URL(fileURLWithPath: file))) ?? Data()
    return bytes.withUnsafeBytes { bytes in
      (0..<(bytes.count / 2)).map { bytes.loadUnaligned(fromByteOffset: 2 * $0, as: Int16.self) }
    }
  }

  private static func sound(in piece: ArraySlice<Int16>) -> Sound {
    let changes = zip(piece, piece.dropFirst()).count { ($0 < 0) != ($1 < 0) }
    let square = piece.reduce(0.0) { $0 + Double($1) * Double($1) } / Double(piece.count)
    return Sound(
      frequency: Double(changes) / 2 * Double(rate) / Double(piece.count),
      level: 10 * log10(max(square / (32_768 * 32_768), 1e-20)))
  }
}
