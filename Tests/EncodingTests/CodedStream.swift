import Foundation
import Media
import TestSupport
import Testing

/// What an encoder delivered, and what ffmpeg makes of it.
struct CodedStream {
  /// The pictures' timestamps, in the order of delivery.
  private(set) var timestamps: [MediaTime] = []
  /// Which of them were key frames.
  private(set) var keyFrames: [Int] = []
  /// `profile_idc` of each key frame's SPS: it tells the encoders apart.
  private(set) var profiles: [UInt8] = []
  private var bytes = Data()

  mutating func append(_ unit: borrowing AccessUnit) {
    if unit.isKeyFrame { keyFrames.append(timestamps.count) }
    timestamps.append(unit.timestamp)
    for nalUnit in unit.nalUnits {
      if nalUnit.type == .sequenceParameterSet { profiles.append(nalUnit.bytes[1]) }
      bytes.append(contentsOf: AnnexB.startCode)
      bytes.append(contentsOf: nalUnit.bytes)
    }
  }

  /// The sizes of the pictures as ffmpeg decodes them.
  func decodedSizes() throws -> [PictureSize] {
    let directory = try TemporaryDirectory()
    let file = directory.url.appendingPathComponent("s.h264")
    try bytes.write(to: file)
    let result = try Subprocess.run(
      [
        "ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "frame=width,height", "-of", "csv=p=0",
        file.path,
      ], in: directory)
    return result.outputText.split(separator: "\n").compactMap { line in
      let numbers = line.split(separator: ",").compactMap { Int($0) }
      return numbers.count == 2 ? PictureSize(width: numbers[0], height: numbers[1]) : nil
    }
  }

  /// How many pictures ffmpeg decodes; whatever it complains about is an issue.
  func decodedCount() throws -> Int {
    let probe = try StreamProbe(bytes)
    #expect(probe.complaints.isEmpty, "\(probe.complaints)")
    return probe.frames
  }
}
