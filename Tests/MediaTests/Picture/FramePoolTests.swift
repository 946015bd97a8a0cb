import Foundation
import Media
import Platform
import TestSupport
import Testing

@Suite struct FramePoolTests {
  @Test func `rows are 64-byte aligned and planes do not overlap`() throws {
    let pool = try FramePool(size: PictureSize(width: 642, height: 362))
    let frame = try pool.frame()
    let planes = frame.planes
    #expect(planes.lumaStride % 64 == 0 && planes.lumaStride >= 642)
    #expect(UInt(bitPattern: planes.luma) % 64 == 0)
    #expect(UInt(bitPattern: planes.chroma) % 64 == 0)
    #expect(planes.chroma - planes.luma >= planes.lumaStride * 362)
  }

  @Test(arguments: [(1280, 720), (720, 1280), (1080, 1920), (642, 362), (16, 16), (98, 50)], [true, false])
  func `a frame that stands on its side fits into the memory of its own slot`(size: (Int, Int), isKept: Bool) throws {
    let (width, height) = size
    let pool = try FramePool(
      size: PictureSize(width: width, height: height), capacity: 2, memory: FrameMemory(isKept: isKept))
    guard let turned = pool.checkout(isSideways: true, color: .bt709, timestamp: .zero, captured: .zero) else {
      Issue.record("no frame")
      return
    }
    let neighbour = try pool.frame()
    let planes = turned.planes
    #expect(planes.size == PictureSize(width: height, height: width))
    #expect(planes.lumaStride >= height && planes.chromaStride >= height)
    #expect(planes.chroma >= planes.luma + planes.lumaStride * width)
    // Memory that is kept has the neighbour behind it.
    if isKept { #expect(planes.chroma + planes.chromaStride * (width / 2) <= neighbour.planes.luma) }
    memset(planes.luma, 7, planes.lumaStride * width)
    memset(planes.chroma, 9, planes.chromaStride * (width / 2))
    #expect(planes.luma[0] == 7 && planes.chroma[0] == 9)
    #expect(neighbour.planes.luma[0] != 7 && neighbour.planes.luma[0] != 9)
    #expect(turned.slot != neighbour.slot && pool.available == 0)
  }

  @Test func `a frame that ends is free again, and the pool never grows`() throws {
    let pool = try FramePool(size: PictureSize(width: 64, height: 64), capacity: 2)
    do {
      let first = try pool.frame()
      let second = try pool.frame()
      #expect(first.slot != second.slot)
      #expect(throws: FramePool.Exhausted.self) { _ = try pool.frame() }
      #expect(pool.available == 0)
    }
    #expect(pool.available == 2)
  }

  @Test func `two holders never have the same memory`() async throws {
    let pool = try FramePool(size: PictureSize(width: 64, height: 64), capacity: 4)
    let clashes = await withTaskGroup(of: Int.self) { group in
      for mark in UInt8(1)...4 {
        group.addTask {
          var clashes = 0
          for _ in 0..<20_000 {
            guard let frame = try? pool.frame() else { continue }
            frame.planes.luma[0] = mark
            frame.planes.chroma[63] = mark
            if frame.planes.luma[0] != mark || frame.planes.chroma[63] != mark { clashes += 1 }
          }
          return clashes
        }
      }
      return await group.reduce(0, +)
    }
    #expect(clashes == 0)
    #expect(pool.available == 4)
  }

  @Test func `all sixty-four frames of the largest pool can be had`() throws {
    let pool = try FramePool(size: PictureSize(width: 16, height: 16), capacity: FramePool.capacityLimit)
    #expect(pool.available == 64)
    for _ in 0..<200 {
      let frame = try pool.frame()
      #expect(frame.slot < 64)
    }
  }

  @Test(arguments: [(1281, 720, 6), (0, 0, 6), (14, 16, 6), (16_386, 16, 6), (64, 64, 0), (64, 64, 65), (-2, 64, 1)])
  func `impossible pools are refused`(width: Int, height: Int, capacity: Int) {
    #expect(throws: FramePoolError.self) {
      try FramePool(size: PictureSize(width: width, height: height), capacity: capacity)
    }
  }
}

/// A pool that is to be compared with one that keeps its memory.
@Suite struct FrameByFrameTests {
  private static let size = PictureSize(width: 640, height: 480)

  private static func frame(of pool: FramePool) -> Frame? {
    pool.checkout(color: .unspecified, timestamp: .zero, captured: .zero)
  }

  /// Returns `true` if this process has one mapping at `address`, as the kernel tells.
  private static func isMapped(_ address: UnsafeMutablePointer<UInt8>) throws -> Bool {
    let wanted = UInt(bitPattern: address)
    let maps = try KernelFile.text("/proc/self/maps")
    return maps.split(separator: "\n").contains { line in
      let ends = line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt($0, radix: 16) }
      return ends.count == 2 && (ends[0]..<ends[1]).contains(wanted)
    }
  }

  @Test(arguments: [true, false])
  func `memory stays after a frame where it is kept, and goes with it where it is not`(isKept: Bool) throws {
    let pool = try FramePool(size: Self.size, capacity: 2, memory: FrameMemory(isKept: isKept))
    var address: UnsafeMutablePointer<UInt8>?
    do {
      let frame = Self.frame(of: pool)
      guard let frame else { return #expect(Bool(false), "no frame") }
      address = frame.planes.luma
      frame.planes.luma[Self.size.pixels - 1] = 7
      #expect(try Self.isMapped(frame.planes.luma))
      #expect(pool.available == 1)
    }
    #expect(pool.available == 2)
    #expect(try Self.isMapped(#require(address)) == isKept)
    // More often than there are slots.
    for _ in 0..<5 {
      guard let frame = Self.frame(of: pool) else { return #expect(Bool(false), "no frame") }
      frame.planes.chroma[Self.size.pixels / 2 - 1] = 9
    }
  }
}
