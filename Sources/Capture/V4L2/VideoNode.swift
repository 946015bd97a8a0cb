import Glibc
import Platform

/// A video device as sysfs shows it, without opening the device: opening wakes a camera.
package struct VideoNode: Hashable {
  /// The path of the node, such as `/dev/video0`.
  package let path: String
  /// The identity that distinguishes the device from others.
  package let identity: CameraIdentity

  /// Returns all video devices, by number; none if there is no sysfs.
  package static func all(sysfs: String = "/sys", devices: String = "/dev") -> [VideoNode] {
    var numbers: [Int] = []
    Directory.forEachName(in: "\(sysfs)/class/video4linux") { name in
      if let number = CameraList.number(of: name) { numbers.append(number) }
    }
    return numbers.sorted().compactMap { number in
      CameraIdentity(directory: "\(sysfs)/class/video4linux/video\(number)").map {
        VideoNode(path: "\(devices)/video\(number)", identity: $0)
      }
    }
  }
}

/// The identity by which a returning camera is recognized, perhaps at another node.
///
/// The order is: a USB camera by its maker, model and serial number; by its port and name; by its name, if no other
/// camera had that name at the loss. This does not apply to a camera that was named by a link: the link is followed
/// again.
package struct CameraIdentity: Hashable {
  /// The driver's name of the camera, such as `HD Pro Webcam C920`.
  var name: String
  /// The index among the nodes of one device: `0` for pictures, `1` for their metadata.
  var index: String
  /// The port that the camera is plugged into, such as `/sys/devices/pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0`.
  var place: String
  /// The serial number as `046d:082d:serial number`; nil if the camera is not a USB camera or has none.
  var serial: String?

  /// Creates the identity of the device in `directory` of sysfs; nil if that cannot be read.
  init?(directory: String) {
    guard let name = Self.attribute("\(directory)/name"), let resolved = realpath("\(directory)/device", nil) else {
      return nil
    }
    self.name = name
    index = Self.attribute("\(directory)/index") ?? "0"
    place = String(cString: resolved)
    free(resolved)
    // A USB camera's device is an interface; the interface's parent is the camera.
    let parent = place.split(separator: "/").dropLast().reduce(into: "") { $0 += "/\($1)" }
    if let vendor = Self.attribute("\(parent)/idVendor"), let product = Self.attribute("\(parent)/idProduct"),
      let number = Self.attribute("\(parent)/serial"), !number.isEmpty
    {
      serial = "\(vendor):\(product):\(number)"
    }
  }

  /// Creates an identity from its parts.
  init(name: String, index: String, place: String, serial: String?) {
    (self.name, self.index, self.place, self.serial) = (name, index, place, serial)
  }

  /// The identity as one text: that of a camera with a serial number is the same at each port.
  var text: String { "\(name) \(serial ?? place)" }

  /// Returns the traits that distinguish the camera from the other cameras: all of `nodes` at other ports.
  package func distinguishing(among nodes: [VideoNode]) -> CameraTraits {
    let others = nodes.filter { $0.identity.place != place }
    return CameraTraits(
      identity: self, hasOwnSerial: serial != nil && !others.contains { $0.identity.serial == serial },
      hasOwnName: serial == nil && !others.contains { $0.identity.name == name })
  }

  private static func attribute(_ path: String) -> String? {
    (try? AttributeFile.text(path)).flatMap { $0 }.map { DriverText.text($0.utf8) }
  }
}

/// A camera's identity, and the parts of it that no other camera had at the comparison.
package struct CameraTraits: Hashable {
  let identity: CameraIdentity
  let hasOwnSerial: Bool
  let hasOwnName: Bool

  /// Returns those of `nodes` that are this camera, the likeliest first: more than one only if one device has several
  /// nodes.
  package func matches(in nodes: [VideoNode]) -> [VideoNode] {
    let named = nodes.filter { $0.identity.name == identity.name && $0.identity.serial == identity.serial }
    var found = named.filter { $0.identity.place == identity.place }
    if found.isEmpty, hasOwnSerial || hasOwnName {
      // At another port, and only there: two cameras that look alike are not told apart by guessing.
      found = named.allSatisfy { $0.identity.place == named.first?.identity.place } ? named : []
    }
    let likeliest = found.filter { $0.identity.index == identity.index }
    return likeliest.isEmpty ? found : likeliest
  }
}
