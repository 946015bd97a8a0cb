/// What an accelerometer measures, in m/s² along the device's own axes: x to the right, y up, z towards the viewer of
/// its front. Signs are those that `iio-sensor-proxy` and its quirk tables expect: the sum points where gravity pulls,
/// so that a device that stands as it was made to has y near -9.8.
public struct Acceleration: Hashable, Sendable {
  /// To the right.
  public var x: Double
  /// To the top.
  public var y: Double
  /// To the viewer.
  public var z: Double

  /// A measurement in m/s².
  public init(x: Double, y: Double, z: Double) {
    self.x = x
    self.y = y
    self.z = z
  }

  /// Its length in m/s².
  public var magnitude: Double { (x * x + y * y + z * z).squareRoot() }

  /// Whether all three are numbers.
  public var isFinite: Bool { x.isFinite && y.isFinite && z.isFinite }
}

/// How a sensor sits in its device: what it measures, times this, is what the device feels
/// (`Documentation/ABI/testing/sysfs-bus-iio`, `mount_matrix`).
public struct MountMatrix: Hashable, Sendable {
  private let rows: [[Double]]

  /// A sensor whose axes are the device's.
  public static let identity = MountMatrix(rows: [[1, 0, 0], [0, 1, 0], [0, 0, 1]])

  private init(rows: [[Double]]) {
    self.rows = rows
  }

  /// The matrix of the kernel's text, `1, 0, 0; 0, 1, 0; 0, 0, 1`; nil where it is no such text, or where the matrix
  /// would flatten space.
  public init?(_ text: some StringProtocol) {
    let rows = text.split(separator: ";", omittingEmptySubsequences: false).map { row in
      row.split(separator: ",", omittingEmptySubsequences: false).map { Number.parse($0) ?? .nan }
    }
    guard rows.count == 3, rows.allSatisfy({ $0.count == 3 && $0.allSatisfy(\.isFinite) }) else { return nil }
    self.init(rows: rows)
    // A rotation has 1, or -1 with a mirror; rounded entries come close to it.
    guard abs(determinant) > 0.1 else { return nil }
  }

  /// What the device feels when the sensor measures `sensed`.
  public func applied(to sensed: Acceleration) -> Acceleration {
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

/// A number as sysfs writes it.
enum Number {
  /// The number in `text`, spaces around it aside; may be infinite or none where the text says so.
  static func parse(_ text: some StringProtocol) -> Double? {
    let isSpace = { (character: Character) in character.isWhitespace }
    guard let first = text.firstIndex(where: { !isSpace($0) }), let last = text.lastIndex(where: { !isSpace($0) })
    else { return nil }
    return Double(text[first...last])
  }
}
