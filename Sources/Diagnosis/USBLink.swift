import CLinux
import Glibc
import Media

/// How a USB camera hangs on its bus, as sysfs has it (`Documentation/ABI/testing/sysfs-bus-usb`).
public struct USBLink: Sendable {
  /// Where sysfs describes the device: `/sys/devices/…/usb1/1-2`.
  public let directory: String
  /// The port, such as `1-2`.
  public var port: String { String(directory.split(separator: "/").last ?? "") }
  /// Megabits a second of the link; 1.5, 12, 480, 5000, ….
  public let speed: Double
  /// The USB version that the camera is made for, as `2.00`.
  public let version: Double
  /// Whether the kernel may let it sleep (`power/control`); nil where it does not tell.
  public let mayAutosuspend: Bool?

  /// That of the camera at `node`, such as `/dev/video0`; nil where it is none of USB.
  public init?(node: String, sysfs: String = "/sys") {
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

  /// An attribute; nil where there is none, or none that this user may read: it is left out of what is told.
  private static func text(_ path: String) -> String? { (try? AttributeFile.text(path)) ?? nil }

  /// What a camera of its version reaches at a port of its kind.
  private var expected: Double { version >= 3 ? 5000 : version >= 2 ? 480 : 12 }

  /// What is to be said of it.
  public var findings: [Finding] {
    let figures = ["usb_mbit": speed]
    let link = "USB port \(port), \(Self.words(speed)) Mbit/s"
    var found: [Finding] = []
    if speed < expected {
      found.append(
        Finding(
          .usbSlow, "\(link): the camera is of USB \(Self.words(version)), for \(Self.words(expected))",
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
            .advice("for good: udev/70-nightjar.rules, which make install installs"),
          ]))
    }
    return found
  }

  /// A number without a point where it has no fraction.
  private static func words(_ value: Double) -> String {
    value == value.rounded() ? "\(Int(value))" : "\(value)"
  }

  /// What takes the camera's power from it for a second and plugs it in again, as far as software can.
  public var replug: Mend { .writing("0", "1", to: "\(directory)/authorized") }
}
