package import Media

/// The mean brightness of 80×45 cells of a picture. Reads 64 samples of each cell, whatever the picture's size.
/// Allocates at its creation only.
package struct LumaGrid: ~Copyable {
  /// The cells in a row.
  package static let columns = 80
  /// The rows of cells.
  package static let rows = 45
  /// All cells.
  package static let count = columns * rows
  /// The rows of samples in a cell, each of sixteen samples.
  private static let lines = 4

  /// The brightness of each cell, 0…255, row by row.
  let cells: UnsafeMutablePointer<Float>
  /// The mean of all cells, and their standard deviation.
  package private(set) var (mean, deviation): (Float, Float) = (0, 0)

  /// Creates a grid of black.
  package init() {
    cells = .allocate(capacity: Self.count)
    cells.initialize(repeating: 0, count: Self.count)
  }

  deinit { cells.deallocate() }

  /// Measures a picture, of at least 16×16 samples.
  package mutating func measure(_ planes: NV12Planes) {
    let (width, height) = (planes.size.width, planes.size.height)
    var (sum, squares): (Float, Float) = (0, 0)
    for row in 0..<Self.rows {
      let top = row * height / Self.rows
      let bottom = max(top + 1, (row + 1) * height / Self.rows)
      for column in 0..<Self.columns {
        let middle = (2 * column + 1) * width / (2 * Self.columns)
        let left = max(0, min(width - 16, middle - 8))
        var total = SIMD16<UInt16>.zero
        for line in 0..<Self.lines {
          let y = top + line * (bottom - top) / Self.lines
          let samples = UnsafeRawPointer(planes.luma + y * planes.lumaStride + left).loadUnaligned(
            as: SIMD16<UInt8>.self)
          total &+= SIMD16<UInt16>(truncatingIfNeeded: samples)
        }
        let value = Float(total.wrappedSum()) / Float(16 * Self.lines)
        cells[row * Self.columns + column] = value
        sum += value
        squares += value * value
      }
    }
    mean = sum / Float(Self.count)
    deviation = max(0, squares / Float(Self.count) - mean * mean).squareRoot()
  }

  /// `true` if the picture is black and even: there is no light, or something covers the lens. A room at night has
  /// contrast as long as the camera sees anything.
  package var isDark: Bool { mean < 32 && deviation < 2.5 }
}
