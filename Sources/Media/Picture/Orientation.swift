public import Platform

/// A rotation by a multiple of 90 degrees, clockwise as the viewer sees it.
public enum Rotation: Int, CaseIterable, Hashable, Sendable, CustomStringConvertible {
  /// No rotation.
  case none = 0
  /// A rotation by 90 degrees: the top moves to the right.
  case quarter = 90
  /// A rotation by 180 degrees: upside down.
  case half = 180
  /// A rotation by 270 degrees: the top moves to the left.
  case threeQuarters = 270

  /// Creates the rotation by `degrees`, which must be 0, 90, 180 or 270.
  ///
  /// - Throws: ``OrientationError/angle(_:)``.
  public init(degrees: Int) throws(OrientationError) {
    guard let rotation = Rotation(rawValue: degrees) else { throw .angle(degrees) }
    self = rotation
  }

  /// The clockwise angle in degrees: 0, 90, 180 or 270.
  public var degrees: Int { rawValue }

  /// `true` if the rotation exchanges width and height.
  public var swapsSides: Bool { self == .quarter || self == .threeQuarters }

  /// The rotation that undoes this one.
  public var inverse: Rotation { Self.turn(quarters: 4 - rawValue / 90) }

  /// Returns the combination of both rotations.
  public static func + (left: Rotation, right: Rotation) -> Rotation {
    turn(quarters: (left.rawValue + right.rawValue) / 90)
  }

  /// The degrees, such as `90`.
  public var description: String { "\(rawValue)" }

  private static func turn(quarters: Int) -> Rotation {
    switch quarters % 4 {
    case 1: .quarter
    case 2: .half
    case 3: .threeQuarters
    default: .none
    }
  }
}

/// A picture's orientation: a clockwise rotation, then, optionally, a mirroring left to right.
///
/// These are the eight symmetries of a rectangle, as EXIF's Orientation tag numbers them (EXIF 2.32, table 6).
public struct Orientation: Hashable, Sendable, CustomStringConvertible {
  /// The rotation, which is applied first.
  public let rotation: Rotation
  /// `true` if the rotated picture is mirrored left to right.
  public let isMirrored: Bool

  /// Creates an orientation from a rotation and a mirroring after it.
  public init(_ rotation: Rotation, mirrored: Bool = false) {
    self.rotation = rotation
    isMirrored = mirrored
  }

  /// Creates an orientation from a rotation by `degrees`, which must be 0, 90, 180 or 270, and a mirroring after it.
  ///
  /// - Throws: ``OrientationError/angle(_:)``.
  public init(degrees: Int, mirrored: Bool = false) throws(OrientationError) {
    self.init(try Rotation(degrees: degrees), mirrored: mirrored)
  }

  /// The camera's own orientation: neither rotated nor mirrored.
  public static let upright = Orientation(.none)

  /// All eight orientations.
  public static let all = [false, true].flatMap { mirrored in
    Rotation.allCases.map { Orientation($0, mirrored: mirrored) }
  }

  /// `true` if the orientation exchanges width and height, which needs another encoder.
  public var swapsSides: Bool { rotation.swapsSides }

  /// Returns the size of a picture of `size` in this orientation.
  public func size(of size: PictureSize) -> PictureSize {
    swapsSides ? PictureSize(width: size.height, height: size.width) : size
  }

  /// The orientation that undoes this one. A mirrored orientation undoes itself, because a mirror turns clockwise into
  /// anticlockwise.
  public var inverse: Orientation {
    isMirrored ? self : Orientation(rotation.inverse)
  }

  /// Returns this orientation followed by `next`.
  public func then(_ next: Orientation) -> Orientation {
    // A rotation after a mirroring equals the opposite rotation before it.
    let turned = isMirrored ? rotation + next.rotation.inverse : rotation + next.rotation
    return Orientation(turned, mirrored: isMirrored != next.isMirrored)
  }

  /// The orientation as text, such as `90` or `90 mirrored`.
  public var description: String { isMirrored ? "\(rotation) mirrored" : "\(rotation)" }
}

/// An error for an invalid orientation.
public enum OrientationError: Failure, Hashable {
  /// The angle is not 0, 90, 180 or 270 degrees.
  case angle(Int)

  /// A one-line message for the terminal.
  public var description: String {
    switch self {
    case .angle(let degrees): "an orientation of \(degrees) degrees: choose 0, 90, 180 or 270"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind { .usage }
}
