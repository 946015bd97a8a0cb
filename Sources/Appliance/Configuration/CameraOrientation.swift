package import Host
package import Media

/// The settings for rotating and mirroring the pictures.
package struct CameraOrientation: Hashable, Sendable {
  /// The rotation of the pictures.
  package enum Choice: Hashable, Sendable {
    /// The orientation that a sensor reports.
    case auto
    /// A fixed rotation, until a client requests another.
    case fixed(Rotation)

    init(text: String) throws(ValueError) {
      if text == "auto" {
        self = .auto
        return
      }
      guard let degrees = SettingValues.number(text[...]), let rotation = Rotation(rawValue: degrees) else {
        throw ValueError("choose auto, 0, 90, 180 or 270")
      }
      self = .fixed(rotation)
    }
  }

  package var choice = Choice.fixed(.none)
  package var mirrors = false
  package var facing: DevicePosture.Facing?
  /// The path where sysfs is mounted: for tests with sensors that are files, thermal zones too.
  package var sysfs: String?
  /// The path of udev's database, also for tests.
  package var udev: String?

  /// The orientation of the pictures at the start.
  package var initial: Orientation {
    switch choice {
    case .auto: Orientation(.none, mirrored: mirrors)
    case .fixed(let rotation): Orientation(rotation, mirrored: mirrors)
    }
  }

  /// Reports settings that contradict each other.
  func check(_ faults: inout SettingFaults) {
    guard case .fixed = choice else { return }
    if facing != nil { faults.add("\(.facing) is for \(.orientation) auto only") }
    if udev != nil { faults.add("\(.udev) is for \(.orientation) auto only") }
  }

  /// Parses `away` or `user`.
  static func facing(_ text: String) throws(ValueError) -> DevicePosture.Facing {
    switch text {
    case "away": .away
    case "user": .user
    default: throw ValueError("choose away or user")
    }
  }
}
