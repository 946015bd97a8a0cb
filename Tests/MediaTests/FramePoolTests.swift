import Media
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
