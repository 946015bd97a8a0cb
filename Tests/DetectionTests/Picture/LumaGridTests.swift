import Detection
import Media
import TestSupport
import Testing

/// The brightness of a picture's cells, against their definition.
@Suite struct LumaGridTests {
  /// Returns the mean of sixteen samples in four rows of each cell.
  private static func expected(_ planes: NV12Planes) -> [Float] {
    let (width, height) = (planes.size.width, planes.size.height)
    var cells: [Float] = []
    for row in 0..<LumaGrid.rows {
      let top = row * height / LumaGrid.rows
      let bottom = max(top + 1, (row + 1) * height / LumaGrid.rows)
      for column in 0..<LumaGrid.columns {
        let middle = (2 * column + 1) * width / (2 * LumaGrid.columns)
        let left = max(0, min(width - 16, middle - 8))
        var sum = 0
        for line in 0..<4 {
          let y = top + line * (bottom - top) / 4
          for x in left..<left + 16 { sum += Int(planes.luma[y * planes.lumaStride + x]) }
        }
        cells.append(Float(sum) / 64)
      }
    }
    return cells
  }

  @Test func `each cell is the mean of sixteen samples in four of its rows, whatever the picture's size`() {
    var random = SeededGenerator(seed: 11)
    // One grid for all: a picture leaves nothing to the next one.
    var grid = LumaGrid()
    for (width, height) in [(1280, 720), (16, 16), (320, 240), (642, 362), (90, 1920)] {
      let stride = width + 6
      let luma = UnsafeMutablePointer<UInt8>.allocate(capacity: stride * height)
      defer { luma.deallocate() }
      let planes = NV12Planes(
        size: PictureSize(width: width, height: height), luma: luma, lumaStride: stride, chroma: luma,
        chromaStride: stride)
      // Noise, and the largest sums.
      for bytes in [random.bytes(stride * height), [UInt8](repeating: 255, count: stride * height)] {
        luma.initialize(from: bytes, count: bytes.count)
        grid.measure(planes)
        let found = Array(UnsafeBufferPointer(start: grid.cells, count: LumaGrid.count))
        let (mean, deviation) = (grid.mean, grid.deviation)
        let expected = Self.expected(planes)
        let isSame = found == expected
        #expect(isSame, "\(width)x\(height)")
        var (sum, squares): (Float, Float) = (0, 0)
        for value in expected {
          sum += value
          squares += value * value
        }
        let exact = sum / Float(LumaGrid.count)
        #expect(mean == exact)
        #expect(deviation == max(0, squares / Float(LumaGrid.count) - exact * exact).squareRoot())
      }
    }
  }
}
