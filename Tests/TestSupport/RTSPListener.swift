import Foundation

/// A player, ffmpeg, that hears the sound of an RTSP stream by TCP; ended with the value.
package final class RTSPListener {
  /// The tone in a piece of sound.
  package struct Sound {
    /// By the changes of sign, in Hz.
    package let frequency: Double
    /// The root mean square in dBFS; −200 for digital silence.
    package let level: Double
  }

  private let program: Subprocess
  private let file: String
  private static let rate = 48_000
  /// A tenth of a second.
  private static let pieceLength = rate / 10

  /// Begins to listen to the camera at `port` of this machine.
  package init(port: Int, in directory: TemporaryDirectory) throws {
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

  /// `true` while it still plays what it began with.
  package var isPlaying: Bool { program.isRunning }

  /// The messages of ffmpeg.
  package var log: String { program.errorSoFar }

  /// The seconds of sound that it has heard.
  package var seconds: Double { Double(samples.count) / Double(Self.rate) }

  /// The medians of the last five tenths of a second, so that one with a gap in it does not count; nil before there are
  /// so many.
  package var last: Sound? {
    let samples = samples
    let pieces = stride(from: samples.count - 5 * Self.pieceLength, to: samples.count, by: Self.pieceLength)
    guard samples.count >= 5 * Self.pieceLength else { return nil }
    let sounds = pieces.map { Self.sound(in: samples[$0..<($0 + Self.pieceLength)]) }
    return Sound(
      frequency: sounds.map(\.frequency).sorted()[2], level: sounds.map(\.level).sorted()[2])
  }

  /// Returns `true` if it hears a tone of `frequency` Hz and `level` dBFS now.
  package func hears(_ frequency: Int, level: Double) -> Bool {
    last.map { abs($0.frequency - Double(frequency)) < Double(frequency) / 20 && abs($0.level - level) < 1 } ?? false
  }

  /// `true` if it hears nothing now.
  package var hearsNothing: Bool { last.map { $0.level < -70 } ?? false }

  /// The peak of a tone of `frequency` Hz in the last second, in dBFS: by a discrete Fourier transform of that
  /// frequency under a Hann window. nil before there is a second of sound.
  package func tone(_ frequency: Double) -> Double? {
    let samples = samples.suffix(Self.rate)
    guard samples.count == Self.rate else { return nil }
    var (real, imaginary) = (0.0, 0.0)
    for (index, sample) in samples.enumerated() {
      let time = Double(index) / Double(Self.rate)
      // The mean of the window is a half.
      let value = Double(sample) / 32_768 * (1 - cos(2 * .pi * time))
      real += value * cos(2 * .pi * frequency * time)
      imaginary += value * sin(2 * .pi * frequency * time)
    }
    return 20 * log10(max(2 * (real * real + imaginary * imaginary).squareRoot() / Double(Self.rate), 1e-10))
  }

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
