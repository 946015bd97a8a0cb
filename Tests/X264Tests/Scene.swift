import Foundation
import Media
import Platform
import TestSupport

/// Pictures that ffmpeg makes: its moving test pattern with a camera's noise on it.
final class Scene: Sendable {
  let size: PictureSize
  let count: Int
  private let bytes: Data

  init(size: PictureSize, frames: Int, noise: Int = 6) throws {
    let directory = try TemporaryDirectory()
    let result = try Subprocess.run(
      [
        "ffmpeg", "-v", "error", "-f", "lavfi", "-i",
        "testsrc2=size=\(size):rate=30,noise=alls=\(noise):allf=t:all_seed=1", "-frames:v", "\(frames)",
        "-pix_fmt", "nv12", "-f", "rawvideo", "-",
      ], in: directory)
    guard result.status == 0, result.output.count == frames * size.pixels * 3 / 2 else {
      throw FFmpegFailed(log: result.error)
    }
    self.size = size
    count = frames
    bytes = result.output
  }

  /// Picture `index`, from the first again after the last.
  func frame(_ index: Int, from pool: FramePool, at time: Instant? = nil) throws -> Frame {
    let frame = try pool.frame(at: time ?? Instant.zero + FrameRate.thirty.time(ofFrame: Int64(index)))
    let planes = frame.planes
    bytes.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return }
      let start = base + index % count * size.pixels * 3 / 2
      for y in 0..<size.height {
        memcpy(planes.luma + y * planes.lumaStride, start + y * size.width, size.width)
      }
      for y in 0..<size.height / 2 {
        memcpy(planes.chroma + y * planes.chromaStride, start + size.pixels + y * size.width, size.width)
      }
    }
    return frame
  }
}

/// The output of an encoder.
struct Recording {
  struct Picture {
    let isKeyFrame: Bool
    let timestamp: Instant
    let captured: Instant
    var types: [NALUnitType]
    var bytes: Int
    let position: Int
    /// In how many parts it came.
    var parts = 1
    /// `true` if the last one has come.
    var isWhole: Bool
  }

  /// The whole stream in Annex B.
  private(set) var stream = Data()
  /// Its pictures in order.
  private(set) var pictures: [Picture] = []

  /// Nothing yet.
  init() {}

  /// A stream that somebody has cut, in Annex B; without its pictures' figures.
  init(_ stream: Data) { self.stream = stream }

  mutating func add(_ unit: borrowing AccessUnit) {
    if unit.isFirstPart {
      pictures.append(
        Picture(
          isKeyFrame: unit.isKeyFrame, timestamp: unit.timestamp, captured: unit.captured,
          types: unit.nalUnits.map(\.type), bytes: unit.payloadBytes, position: stream.count,
          isWhole: unit.isLastPart))
    } else if let last = pictures.indices.last {
      pictures[last].types += unit.nalUnits.map(\.type)
      pictures[last].bytes += unit.payloadBytes
      pictures[last].parts += 1
      pictures[last].isWhole = unit.isLastPart
    }
    for nalUnit in unit.nalUnits {
      stream.append(contentsOf: AnnexB.startCode)
      stream.append(contentsOf: nalUnit.bytes)
    }
  }

  /// The pictures' numbers that are key frames.
  var keys: [Int] { pictures.indices.filter { pictures[$0].isKeyFrame } }

  /// The number of slices of each picture.
  var slices: [Int] { pictures.map { $0.types.count { $0 == .idrSlice || $0 == .nonIDRSlice } } }

  /// Returns ffprobe's view of the stream.
  func probe() throws -> StreamProbe { try StreamProbe(stream) }

  /// The planes of an NV12 picture.
  enum Plane: CaseIterable {
    case luma
    case chroma
  }

  /// The PSNR of each decoded picture's luma against `scene`, by ffmpeg's decoder.
  func luma(against scene: Scene, from first: Int = 0) throws -> [Double] {
    try quality(of: .luma, against: scene, from: first)
  }

  /// The PSNR of a plane of each decoded picture against `scene`, by ffmpeg's decoder.
  ///
  /// - Parameter first: the picture of the scene with which the stream begins; nil where both have the same end.
  func quality(of plane: Plane, against scene: Scene, from first: Int? = 0) throws -> [Double] {
    let directory = try TemporaryDirectory()
    try stream.write(to: directory.url.appendingPathComponent("s.h264"))
    let result = try Subprocess.run(
      [
        "ffmpeg", "-v", "error", "-i", directory.path("s.h264"), "-fps_mode", "passthrough", "-pix_fmt", "nv12", "-f",
        "rawvideo", "-",
      ], in: directory)
    guard result.status == 0, result.error.isEmpty else { throw FFmpegFailed(log: result.error) }
    let pool = try FramePool(size: scene.size, capacity: 1)
    let pictureBytes = scene.size.pixels * 3 / 2
    var values: [Double] = []
    let rows = plane == .luma ? scene.size.height : scene.size.height / 2
    let start = plane == .luma ? 0 : scene.size.pixels
    let count = result.output.count / pictureBytes
    let first = first ?? scene.count - count
    for index in 0..<count {
      let frame = try scene.frame(first + index, from: pool)
      let planes = frame.planes
      let sum = result.output.withUnsafeBytes { decoded in
        var sum = 0
        let (samples, stride) =
          plane == .luma ? (planes.luma, planes.lumaStride) : (planes.chroma, planes.chromaStride)
        for y in 0..<rows {
          for x in Swift.stride(from: 0, to: scene.size.width, by: 3) {
            let sample = decoded[index * pictureBytes + start + y * scene.size.width + x]
            let difference = Int(sample) - Int(samples[y * stride + x])
            sum += difference * difference
          }
        }
        return sum
      }
      let mean = Double(sum) / Double(rows * ((scene.size.width + 2) / 3))
      values.append(mean == 0 ? 100 : 10 * log10(255 * 255 / mean))
    }
    return values
  }
}

/// ffmpeg did not do what it was asked; its own words.
struct FFmpegFailed: Error, CustomStringConvertible {
  let log: String
  var description: String { log }
}
