import Foundation
import Media
import Platform
import TestSupport
import Testing

/// The output of an encoder, and ffmpeg's view of it.
struct CodedStream {
  /// The pictures' timestamps, in the order of delivery.
  private(set) var timestamps: [Instant] = []
  /// The numbers of the key frames among them.
  private(set) var keyFrames: [Int] = []
  /// `profile_idc` of each key frame's SPS: it tells the encoders apart.
  private(set) var profiles: [UInt8] = []
  fileprivate var bytes = Data()
  private let codec: VideoCodec

  init(codec: VideoCodec = .h264) { self.codec = codec }

  /// The name of a file of the stream, by which ffmpeg knows its codec.
  private var fileName: String { codec == .hevc ? "s.h265" : "s.h264" }

  mutating func append(_ unit: borrowing AccessUnit) {
    if unit.isKeyFrame { keyFrames.append(timestamps.count) }
    timestamps.append(unit.timestamp)
    for nalUnit in unit.nalUnits {
      if codec == .h264, nalUnit.type == .sequenceParameterSet { profiles.append(nalUnit.bytes[1]) }
      bytes.append(contentsOf: AnnexB.startCode)
      bytes.append(contentsOf: nalUnit.bytes)
    }
  }

  /// The sizes of the pictures as ffmpeg decodes them.
  func decodedSizes() throws -> [PictureSize] {
    try frames("width,height").compactMap { line in
      let numbers = line.split(separator: ",").compactMap { Int($0) }
      return numbers.count == 2 ? PictureSize(width: numbers[0], height: numbers[1]) : nil
    }
  }

  /// The ranges of the pictures' samples as ffmpeg has them: limited (`tv`) or full (`pc`).
  func decodedRanges() throws -> [String] {
    // A line has an empty field for side data.
    try frames("color_range").map { String($0.prefix { $0 != "," }) }
  }

  private func frames(_ entries: String) throws -> [Substring] {
    let directory = try TemporaryDirectory()
    let file = directory.url.appendingPathComponent(fileName)
    try bytes.write(to: file)
    let result = try Subprocess.run(
      [
        "ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "frame=\(entries)", "-of", "csv=p=0",
        file.path,
      ], in: directory)
    return result.outputText.split(separator: "\n")
  }

  /// The lowest PSNR of a picture against what ffmpeg's `filter` makes of the raw NV12 pictures of `size` in `source`,
  /// dB.
  func quality(against source: Data, of size: PictureSize, filter: String) throws -> Double {
    let directory = try TemporaryDirectory()
    try bytes.write(to: directory.url.appendingPathComponent("s.h264"))
    try source.write(to: directory.url.appendingPathComponent("s.nv12"))
    let result = try Subprocess.run(
      [
        "ffmpeg", "-nostdin", "-hide_banner", "-nostats", "-r", "30", "-i", directory.path("s.h264"), "-f", "rawvideo",
        "-pix_fmt", "nv12", "-s", "\(size)", "-r", "30", "-i", directory.path("s.nv12"), "-lavfi",
        "[1:v]\(filter)[t];[0:v][t]psnr", "-f", "null", "-",
      ], in: directory)
    return try PictureQuality(log: result.error).lowest
  }

  /// Returns the number of pictures that ffmpeg decodes; whatever it complains about is an issue.
  func decodedCount() throws -> Int {
    let directory = try TemporaryDirectory()
    let file = directory.url.appendingPathComponent(fileName)
    try bytes.write(to: file)
    let probe = try StreamProbe(path: file.path, in: directory)
    #expect(probe.complaints.isEmpty, "\(probe.complaints)")
    return probe.frames
  }
}

extension CodedStream {
  /// Where two IDR pictures in a row have the same `idr_pic_id`, as ffmpeg reads it.
  func repeatedPictureIDs() throws -> [Int] {
    let directory = try TemporaryDirectory()
    let file = directory.url.appendingPathComponent("s.h264")
    try bytes.write(to: file)
    let headers = try TracedHeaders(path: file.path, in: directory)
    let types = headers.values(of: "nal_unit_type").filter { $0 == 1 || $0 == 5 }
    let slices = Array(zip(types, headers.values(of: "first_mb_in_slice")))
    try #require(types.count == headers.values(of: "first_mb_in_slice").count)
    // That of the first slice of each picture.
    let identifiers = zip(slices.filter { $0.0 == 5 }, headers.values(of: "idr_pic_id")).filter { $0.0.1 == 0 }.map(\.1)
    try #require(identifiers.count == keyFrames.count, "\(identifiers)")
    return keyFrames.indices.dropFirst().filter {
      keyFrames[$0] == keyFrames[$0 - 1] + 1 && identifiers[$0] == identifiers[$0 - 1]
    }.map { keyFrames[$0] }
  }
}
