import Glibc
import Media

/// Frames in a file without a name, so that a driver can map them as it maps a camera's DMA-BUFs.
final class ExportedFrames: FrameOwner, @unchecked Sendable {
  // Sendable: one thread takes frames; nothing is taken back that could be handed out twice.
  static let count = 4
  let size: PictureSize
  private let stride: Int
  private let descriptors: [CInt]
  private let memory: [UnsafeMutablePointer<UInt8>]
  private let byteCount: Int

  init?(size: PictureSize) {
    self.size = size
    stride = (size.width + 63) / 64 * 64
    byteCount = stride * size.height * 3 / 2
    var files: [CInt] = []
    var maps: [UnsafeMutablePointer<UInt8>] = []
    for _ in 0..<Self.count {
      var name = Array("/tmp/nightjar-frame-XXXXXX".utf8CString)
      let file = mkstemp(&name)
      guard file >= 0, unlink(name) == 0, ftruncate(file, byteCount) == 0,
        let map = mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), map != MAP_FAILED
      else { return nil }
      files.append(file)
      maps.append(map.assumingMemoryBound(to: UInt8.self))
    }
    descriptors = files
    memory = maps
    super.init()
  }

  deinit {
    for (file, map) in zip(descriptors, memory) {
      munmap(map, byteCount)
      close(file)
    }
  }

  func frame(_ number: Int, at time: MediaTime) -> Frame {
    let slot = number % Self.count
    let luma = memory[slot]
    let planes = NV12Planes(
      size: size, luma: luma, lumaStride: stride, chroma: luma + stride * size.height, chromaStride: stride)
    let buffer = DMABuffer(
      fileDescriptor: descriptors[slot], identifier: UInt64(slot + 1), byteCount: byteCount, lumaOffset: 0,
      lumaStride: stride, chromaOffset: stride * size.height, chromaStride: stride)
    return Frame(
      planes: planes, dmaBuffer: buffer, color: .bt709, timestamp: time, captured: time, slot: slot, owner: self)
  }

  override func recycle(slot: Int) {}
}

/// A picture that moves: soft waves with some noise, the same in every run.
struct MovingPicture {
  let noise: Int
  private var state: UInt32 = 1

  init(noise: Int) {
    self.noise = noise
  }

  mutating func draw(_ planes: NV12Planes, number: Int) {
    let (width, height) = (planes.size.width, planes.size.height)
    for y in 0..<height {
      let row = planes.luma + y * planes.lumaStride
      for x in 0..<width {
        let wave = abs((x + 3 * number) % 256 - 128) + abs((y + number) % 192 - 96) / 2
        row[x] = UInt8(clamping: 40 + wave + random())
      }
    }
    for y in 0..<height / 2 {
      let row = planes.chroma + y * planes.chromaStride
      for x in 0..<width / 2 {
        row[2 * x] = UInt8(clamping: 96 + abs((x + number) % 128 - 64))
        row[2 * x + 1] = UInt8(clamping: 96 + abs((y + 2 * number) % 128 - 64))
      }
    }
  }

  private mutating func random() -> Int {
    guard noise > 0 else { return 0 }
    state ^= state << 13
    state ^= state >> 17
    state ^= state << 5
    return Int(state >> 8) % (2 * noise + 1) - noise
  }
}
