/// A turn by a multiple of a right angle, clockwise as the viewer sees it.
public enum Rotation: Int, CaseIterable, Hashable, Sendable, CustomStringConvertible {
  /// No turn.
  case none = 0
  /// A quarter: what was at the top is now at the right.
  case quarter = 90
  /// A half: upside down.
  case half = 180
  /// Three quarters: what was at the top is now at the left.
  case threeQuarters = 270

  /// The turn by `degrees`, which must be 0, 90, 180 or 270.
  ///
  /// - Throws: ``OrientationError/angle(_:)``.
  public init(degrees: Int) throws(OrientationError) {
    guard let rotation = Rotation(rawValue: degrees) else { throw .angle(degrees) }
    self = rotation
  }

  /// Clockwise degrees: 0, 90, 180 or 270.
  public var degrees: Int { rawValue }

  /// Whether a picture's width becomes its height.
  public var swapsSides: Bool { self == .quarter || self == .threeQuarters }

  /// The turn that undoes this one.
  public var inverse: Rotation { Self.turn(quarters: 4 - rawValue / 90) }

  /// Both turns, one after the other.
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

/// How a picture is laid before the viewer: first turned clockwise, then, if wanted, mirrored left to right.
///
/// These are the eight symmetries of a rectangle, as EXIF's Orientation tag numbers them (EXIF 2.32, table 6).
public struct Orientation: Hashable, Sendable, CustomStringConvertible {
  /// The turn, which comes first.
  public let rotation: Rotation
  /// Whether the turned picture is mirrored left to right.
  public let isMirrored: Bool

  /// A turn, and a mirror behind it.
  public init(_ rotation: Rotation, mirrored: Bool = false) {
    self.rotation = rotation
    isMirrored = mirrored
  }

  /// A turn by `degrees`, which must be 0, 90, 180 or 270, and a mirror behind it.
  ///
  /// - Throws: ``OrientationError/angle(_:)``.
  public init(degrees: Int, mirrored: Bool = false) throws(OrientationError) {
    self.init(try Rotation(degrees: degrees), mirrored: mirrored)
  }

  /// As the camera gives it.
  public static let upright = Orientation(.none)

  /// All eight.
  public static let all = [false, true].flatMap { mirrored in
    Rotation.allCases.map { Orientation($0, mirrored: mirrored) }
  }

  /// Whether width becomes height: then another encoder is needed.
  public var swapsSides: Bool { rotation.swapsSides }

  /// The size of a picture of `size` once it is laid so.
  public func size(of size: PictureSize) -> PictureSize {
    swapsSides ? PictureSize(width: size.height, height: size.width) : size
  }

  /// What undoes it. A mirrored one undoes itself: seen in a mirror, clockwise is anticlockwise.
  public var inverse: Orientation {
    isMirrored ? self : Orientation(rotation.inverse)
  }

  /// This one first, then `next`.
  public func then(_ next: Orientation) -> Orientation {
    // A turn behind a mirror is the opposite turn before it.
    let turned = isMirrored ? rotation + next.rotation.inverse : rotation + next.rotation
    return Orientation(turned, mirrored: isMirrored != next.isMirrored)
  }

  /// Such as `90` or `90 mirrored`.
  public var description: String { isMirrored ? "\(rotation) mirrored" : "\(rotation)" }
}

/// Why something is no orientation.
public enum OrientationError: Failure, Hashable {
  /// An angle that is none of the four.
  case angle(Int)

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .angle(let degrees): "an orientation of \(degrees) degrees: choose 0, 90, 180 or 270"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind { .usage }
}
