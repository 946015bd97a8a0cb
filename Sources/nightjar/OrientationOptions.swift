public import ArgumentParser
import Media
public import OrientationSensing

/// How pictures are laid before the viewer.
struct OrientationOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Turn the picture clockwise: 0, 90, 180, 270, or auto.",
      discussion: "auto follows the box's accelerometer, its own or that of iio-sensor-proxy.", valueName: "degrees"),
    transform: OrientationChoice.init(text:))
  var orientation = OrientationChoice.fixed(.none)

  @Flag(help: "Mirror the picture left to right, after the turn.")
  var mirror = false

  @Option(
    help: ArgumentHelp(
      "For auto: where the camera looks, away from whoever holds the box, or at its user.", valueName: "direction"))
  var facing: DevicePosture.Facing?

  /// Where sysfs is mounted: for tests with sensors that are files, thermal zones too.
  @Option(help: .hidden)
  var sysfs: String?

  /// Where udev's database is: the same.
  @Option(help: .hidden)
  var udev: String?

  mutating func validate() throws {
    guard case .fixed = orientation else { return }
    guard facing == nil else { throw ValidationError("--facing is for --orientation auto only") }
    guard udev == nil else { throw ValidationError("--udev is for --orientation auto only") }
  }

  /// How pictures are laid at the start.
  var initial: Orientation {
    switch orientation {
    case .auto: Orientation(.none, mirrored: mirror)
    case .fixed(let rotation): Orientation(rotation, mirrored: mirror)
    }
  }
}

/// What `--orientation` takes.
enum OrientationChoice: Equatable, Sendable {
  /// As a sensor tells.
  case auto
  /// One for ever, or until another is asked for.
  case fixed(Rotation)

  init(text: String) throws {
    if text == "auto" {
      self = .auto
      return
    }
    guard let degrees = OptionValues.number(text[...]), let rotation = Rotation(rawValue: degrees) else {
      throw ValidationError("choose auto, 0, 90, 180 or 270")
    }
    self = .fixed(rotation)
  }
}

extension DevicePosture.Facing: ExpressibleByArgument {
  /// `away` or `user`.
  public init?(argument: String) {
    switch argument {
    case "away": self = .away
    case "user": self = .user
    default: return nil
    }
  }
}
