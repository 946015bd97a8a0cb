import Glibc
import Media
import Platform

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

  func frame(_ number: Int, at time: Instant) -> Frame {
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

/// A window that moves over a larger picture of soft waves with some noise, the same in every run. Drawn once, since
/// debug builds draw slowly.
final class MovingPicture {
  private static let room = PictureSize(width: 96, height: 64)
  private let stride: Int
  private let luma: UnsafeMutablePointer<UInt8>
  private let chroma: UnsafeMutablePointer<UInt8>

  init(size: PictureSize, noise: Int) {
    stride = size.width + Self.room.width
    let height = size.height + Self.room.height
    luma = .allocate(capacity: stride * height)
    chroma = .allocate(capacity: stride * height / 2)
    var state: UInt32 = 1
    for y in 0..<height {
      for x in 0..<stride {
        state ^= state << 13
        state ^= state >> 17
        state ^= state << 5
        let wave = abs(x % 256 - 128) + abs(y % 192 - 96) / 2
        luma[y * stride + x] = UInt8(40 + wave + Int(state >> 8) % (2 * noise + 1))
      }
    }
    for y in 0..<height / 2 {
      for x in 0..<stride {
        let place = x & 1 == 0 ? x / 2 : y
        chroma[y * stride + x] = UInt8(96 + abs(place % 128 - 64))
      }
    }
  }

  deinit {
    luma.deallocate()
    chroma.deallocate()
  }

  func draw(_ planes: NV12Planes, number: Int) {
    let (left, top) = (number * 4 % Self.room.width, number * 2 % Self.room.height)
    for row in 0..<planes.size.height {
      memcpy(planes.luma + row * planes.lumaStride, luma + (top + row) * stride + left, planes.size.width)
    }
    for row in 0..<planes.size.height / 2 {
      memcpy(planes.chroma + row * planes.chromaStride, chroma + (top / 2 + row) * stride + left, planes.size.width)
    }
  }
}
