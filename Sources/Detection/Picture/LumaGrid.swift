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

  /// The first sample of each column of cells, within a row of samples.
  private let lefts: UnsafeMutablePointer<Int>
  /// The brightness of each cell, 0…255, row by row.
  package let cells: UnsafeMutablePointer<Float>
  /// The mean of all cells, and their standard deviation.
  package private(set) var (mean, deviation): (Float, Float) = (0, 0)

  /// Creates a grid of black.
  package init() {
    cells = .allocate(capacity: Self.count)
    cells.initialize(repeating: 0, count: Self.count)
    lefts = .allocate(capacity: Self.columns)
    lefts.initialize(repeating: 0, count: Self.columns)
  }

  deinit {
    cells.deallocate()
    lefts.deallocate()
  }

  /// Measures a picture, of at least 16×16 samples.
  package mutating func measure(_ planes: NV12Planes) {
    let (width, height) = (planes.size.width, planes.size.height)
    // Where the samples are is computed once for a column and once for a row, and not for each of the 3600 cells.
    for column in 0..<Self.columns {
      let middle = (2 * column + 1) * width / (2 * Self.columns)
      lefts[column] = max(0, min(width - 16, middle - 8))
    }
    var (sum, squares): (Float, Float) = (0, 0)
    for row in 0..<Self.rows {
      let top = row * height / Self.rows
      let bottom = max(top + 1, (row + 1) * height / Self.rows)
      func line(_ number: Int) -> UnsafeRawPointer {
        UnsafeRawPointer(planes.luma + (top + number * (bottom - top) / Self.lines) * planes.lumaStride)
      }
      let (first, second, third, fourth) = (line(0), line(1), line(2), line(3))
      let cellsOfRow = cells + row * Self.columns
      for column in 0..<Self.columns {
        let left = lefts[column]
        var total = Self.samples(first, left)
        total &+= Self.samples(second, left)
        total &+= Self.samples(third, left)
        total &+= Self.samples(fourth, left)
        let value = Float(total.wrappedSum()) / Float(16 * Self.lines)
        cellsOfRow[column] = value
        sum += value
        squares += value * value
      }
    }
    mean = sum / Float(Self.count)
    deviation = max(0, squares / Float(Self.count) - mean * mean).squareRoot()
  }

  /// Returns sixteen samples of a row.
  @inline(__always)
  private static func samples(_ line: UnsafeRawPointer, _ left: Int) -> SIMD16<UInt16> {
    SIMD16<UInt16>(truncatingIfNeeded: line.loadUnaligned(fromByteOffset: left, as: SIMD16<UInt8>.self))
  }

  /// `true` if the picture is black and even: there is no light, or something covers the lens. A room at night has
  /// contrast as long as the camera sees anything.
  package var isDark: Bool { mean < 32 && deviation < 2.5 }
}
