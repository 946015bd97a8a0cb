import Foundation
import Media
import Platform
import TestSupport
import Testing

/// A stream of HEVC, as ffmpeg reads it.
struct CodedStream {
  private var stream = Data()
  /// The numbers of the key frames.
  private(set) var keys: [Int] = []
  /// The types of each picture's NAL units.
  private(set) var types: [[HEVCNALUnitType]] = []
  /// The size of each picture in bytes.
  private(set) var sizes: [Int] = []
  /// The time of each picture.
  private(set) var timestamps: [Instant] = []
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  mutating func add(_ unit: borrowing AccessUnit, _ index: Int) {
    if unit.isKeyFrame { keys.append(index) }
    types.append(unit.nalUnits.compactMap { HEVCNALUnitHeader($0)?.type })
    sizes.append(unit.payloadBytes)
    timestamps.append(unit.timestamp)
    for nalUnit in unit.nalUnits {
      stream.append(contentsOf: AnnexB.startCode)
      stream.append(contentsOf: nalUnit.bytes)
    }
  }

  /// Writes the stream to a file with HEVC's suffix, by which ffmpeg knows it.
  private func file() throws -> String {
    let file = directory.url.appendingPathComponent("s.h265")
    try stream.write(to: file)
    return file.path
  }

  func probe() throws -> StreamProbe { try StreamProbe(path: file(), in: directory) }

  /// The samples of all pictures that ffmpeg decodes, in I420.
  func decoded() throws -> Data {
    let output = directory.path("s.yuv")
    let result = try Subprocess.run(
      [
        "ffmpeg", "-nostdin", "-y", "-v", "error", "-i", try file(), "-fps_mode", "passthrough", "-f", "rawvideo",
        output,
      ],
      in: directory)
    #expect(result.error.isEmpty, "\(result.error)")
    return try Data(contentsOf: URL(fileURLWithPath: output))
  }
}
