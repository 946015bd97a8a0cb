import Media
import Testing

/// The eight orientations, against what they do to the corners of a picture.
@Suite struct OrientationTests {
  /// A picture of 2 rows and 3 columns, rotated by the definition: sample by sample.
  struct Grid: Equatable {
    var rows = [[1, 2, 3], [4, 5, 6]]

    var turned: Grid {
      Grid(rows: rows[0].indices.map { column in rows.reversed().map { $0[column] } })
    }

    var mirrored: Grid { Grid(rows: rows.map { $0.reversed() }) }

    func rotated(_ orientation: Orientation) -> Grid {
      var grid = self
      for _ in 0..<orientation.rotation.degrees / 90 { grid = grid.turned }
      return orientation.isMirrored ? grid.mirrored : grid
    }
  }

  @Test func `a quarter is clockwise`() {
    #expect(Grid().rotated(Orientation(.quarter)).rows == [[4, 1], [5, 2], [6, 3]])
    #expect(Grid().rotated(Orientation(.quarter, mirrored: true)).rows == [[1, 4], [2, 5], [3, 6]])
  }

  @Test(arguments: Orientation.all, Orientation.all)
  func `two orientations combine into the effect of both`(first: Orientation, second: Orientation) {
    #expect(Grid().rotated(first).rotated(second) == Grid().rotated(first.then(second)))
  }

  @Test(arguments: Orientation.all)
  func `the inverse undoes it`(orientation: Orientation) {
    #expect(orientation.then(orientation.inverse) == .upright)
    #expect(orientation.inverse.then(orientation) == .upright)
    #expect(Grid().rotated(orientation).rotated(orientation.inverse) == Grid())
  }

  @Test(arguments: Orientation.all)
  func `width and height change places with a quarter and three`(orientation: Orientation) {
    let size = PictureSize(width: 3, height: 2)
    let rows = Grid().rotated(orientation).rows
    #expect(orientation.size(of: size) == PictureSize(width: rows[0].count, height: rows.count))
    #expect(orientation.swapsSides == (rows.count == 3))
  }

  @Test func `all eight are different`() {
    #expect(Set(Orientation.all).count == 8)
    #expect(Set(Orientation.all.map { Grid().rotated($0).rows }).count == 8)
  }

  @Test func `degrees are 0, 90, 180 or 270, and nothing else`() throws {
    for degrees in [0, 90, 180, 270] { #expect(try Orientation(degrees: degrees).rotation.degrees == degrees) }
    for degrees in [45, -90, 360, 1, Int.min, Int.max] {
      #expect(throws: OrientationError.angle(degrees)) { try Orientation(degrees: degrees) }
    }
    #expect("\(OrientationError.angle(45))" == "an orientation of 45 degrees: choose 0, 90, 180 or 270")
    #expect("\(Orientation(.quarter, mirrored: true))" == "90 mirrored")
  }
}
