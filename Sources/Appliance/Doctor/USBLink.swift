import CLinux
import Glibc
import Platform

/// A USB camera's link to its bus, from sysfs (`Documentation/ABI/testing/sysfs-bus-usb`).
package struct USBLink: Sendable {
  /// The device's directory in sysfs: `/sys/devices/…/usb1/1-2`.
  package let directory: String
  /// The port, such as `1-2`.
  package var port: String { String(directory.split(separator: "/").last ?? "") }
  /// The link's speed in megabits a second: 1.5, 12, 480, 5000, ….
  package let speed: Double
  /// The camera's USB version, such as `2.00`.
  package let version: Double
  /// `true` if the kernel may suspend the camera (`power/control`); nil where it does not tell.
  package let mayAutosuspend: Bool?

  /// Creates the link of the camera at `node`, such as `/dev/video0`; nil for other cameras than USB ones.
  package init?(node: String, sysfs: String = "/sys") {
    guard let resolved = realpath(node, nil) else { return nil }
    defer { free(resolved) }
    let name = String(cString: resolved).split(separator: "/").last ?? ""
    guard let device = realpath("\(sysfs)/class/video4linux/\(name)/device", nil) else { return nil }
    defer { free(device) }
    // A USB camera's device is an interface; its parent is the camera.
    let interface = String(cString: device)
    let parent = interface.split(separator: "/").dropLast().reduce(into: "") { $0 += "/\($1)" }
    func number(_ name: String) -> Double? {
      Self.text("\(parent)/\(name)").flatMap { Double(String($0.drop { $0 == " " })) }
    }
    guard let speed = number("speed"), let version = number("version") else { return nil }
    directory = parent
    self.speed = speed
    self.version = version
    mayAutosuspend = Self.text("\(parent)/power/control").map { $0 == "auto" }
  }

  /// Returns an attribute; nil where it does not exist or this user may not read it, so that the findings omit it.
  private static func text(_ path: String) -> String? { (try? AttributeFile.text(path)) ?? nil }

  /// The speed that a camera of this version reaches at a matching port.
  private var expected: Double { version >= 3 ? 5000 : version >= 2 ? 480 : 12 }

  /// The findings on the link.
  package var findings: [Finding] {
    let figures = ["usb_mbit": speed]
    let link = "USB port \(port), \(Self.words(speed)) Mbit/s"
    var found: [Finding] = []
    if speed < expected {
      found.append(
        Finding(
          .usbSlow, "\(link): the camera has USB \(Self.words(version)), for \(Self.words(expected)) Mbit/s",
          mends: [
            .advice("plug it into another port, without a hub, and with another cable"), .command("lsusb -t"),
          ], figures: figures))
    } else {
      found.append(Finding(.usb, "\(link), USB \(Self.words(version))", figures: figures))
    }
    if mayAutosuspend == true {
      found.append(
        Finding(
          .usbSleep, "the kernel lets the camera at \(port) sleep while nobody uses it",
          mends: [
            .writing("on", to: "\(directory)/power/control"),
            .advice("permanently: udev/70-nightjar.rules, which make install installs"),
          ]))
    }
    return found
  }

  /// Returns a number, without a decimal point where it has no fraction.
  private static func words(_ value: Double) -> String {
    value == value.rounded() ? "\(Int(value))" : "\(value)"
  }

  /// The remedy that disables the camera for a second and enables it again, as far as software can.
  package var replug: Mend { .writing("0", "1", to: "\(directory)/authorized") }
}
