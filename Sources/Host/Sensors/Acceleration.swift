/// An acceleration in m/s² along the device's own axes: x to the right, y up, z towards the viewer of its front. Signs
/// follow `iio-sensor-proxy` and its quirk tables: the vector points in the direction of gravity, so that an upright
/// device has y near -9.8.
package struct Acceleration: Hashable, Sendable {
  /// The component to the right.
  package var x: Double
  /// The component to the top.
  package var y: Double
  /// The component towards the viewer.
  package var z: Double

  /// Creates a measurement in m/s².
  package init(x: Double, y: Double, z: Double) {
    self.x = x
    self.y = y
    self.z = z
  }

  /// The vector's length in m/s².
  package var magnitude: Double { (x * x + y * y + z * z).squareRoot() }

  /// `true` if all three components are finite.
  package var isFinite: Bool { x.isFinite && y.isFinite && z.isFinite }
}

/// A sensor's mount matrix: the matrix times the sensor's measurement gives the device's acceleration
/// (`Documentation/ABI/testing/sysfs-bus-iio`, `mount_matrix`).
package struct MountMatrix: Hashable, Sendable {
  private let rows: [[Double]]

  /// The matrix of a sensor whose axes are the device's.
  package static let identity = MountMatrix(rows: [[1, 0, 0], [0, 1, 0], [0, 0, 1]])

  private init(rows: [[Double]]) {
    self.rows = rows
  }

  /// Parses the kernel's text, `1, 0, 0; 0, 1, 0; 0, 0, 1`; nil for any other text, and for a singular matrix.
  package init?(_ text: some StringProtocol) {
    let rows = text.split(separator: ";", omittingEmptySubsequences: false).map { row in
      row.split(separator: ",", omittingEmptySubsequences: false).map { Number.parse($0) ?? .nan }
    }
    guard rows.count == 3, rows.allSatisfy({ $0.count == 3 && $0.allSatisfy(\.isFinite) }) else { return nil }
    self.init(rows: rows)
    // A rotation has determinant 1, or -1 with a mirroring; rounded entries come close to it.
    guard abs(determinant) > 0.1 else { return nil }
  }

  /// Returns the device's acceleration for the sensor's measurement `sensed`.
  package func applied(to sensed: Acceleration) -> Acceleration {
    func row(_ index: Int) -> Double {
      rows[index][0] * sensed.x + rows[index][1] * sensed.y + rows[index][2] * sensed.z
    }
    return Acceleration(x: row(0), y: row(1), z: row(2))
  }

  private var determinant: Double {
    let (a, b, c) = (rows[0], rows[1], rows[2])
    let first = a[0] * (b[1] * c[2] - b[2] * c[1])
    let second = a[1] * (b[0] * c[2] - b[2] * c[0])
    let third = a[2] * (b[0] * c[1] - b[1] * c[0])
    return first - second + third
  }
}

/// A number in sysfs's syntax.
enum Number {
  /// Returns the number in `text`, without surrounding spaces; infinity and NaN are possible.
  static func parse(_ text: some StringProtocol) -> Double? {
    let isSpace = { (character: Character) in character.isWhitespace }
    guard let first = text.firstIndex(where: { !isSpace($0) }), let last = text.lastIndex(where: { !isSpace($0) })
    else { return nil }
    return Double(text[first...last])
  }
}
