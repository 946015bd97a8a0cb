import Glibc
import Media

/// A video device as sysfs shows it, without opening it: opening wakes a camera up.
struct VideoNode: Hashable {
  /// Its node, such as `/dev/video0`.
  let path: String
  /// What tells it from others.
  let identity: CameraIdentity

  /// All video devices, by number; none where there is no sysfs.
  static func all(sysfs: String = "/sys", devices: String = "/dev") -> [VideoNode] {
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

/// By what a camera is known again when it comes back, maybe at another node.
///
/// In this order: a USB camera by its maker, model and serial number; by the port that it is plugged into and its
/// name; by its name, where no other had the same when it was lost. A camera that was named by a link is not looked for
/// by this: the link is followed again.
struct CameraIdentity: Hashable {
  /// What its driver calls it, such as `HD Pro Webcam C920`.
  var name: String
  /// Its place among the nodes of one device: `0` for pictures, `1` for their metadata.
  var index: String
  /// Where it is plugged in, such as `/sys/devices/pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0`.
  var place: String
  /// `046d:082d:serial number`; nil where it is no USB camera or has none.
  var serial: String?

  /// The longest text that is read of an attribute.
  private static let lengthLimit = 256

  /// That of the device in `directory` of sysfs; nil where it cannot be read.
  init?(directory: String) {
    guard let name = Self.attribute("\(directory)/name"), let resolved = realpath("\(directory)/device", nil) else {
      return nil
    }
    self.name = name
    index = Self.attribute("\(directory)/index") ?? "0"
    place = String(cString: resolved)
    free(resolved)
    // A USB camera's device is an interface; its parent is the camera.
    let parent = place.split(separator: "/").dropLast().reduce(into: "") { $0 += "/\($1)" }
    if let vendor = Self.attribute("\(parent)/idVendor"), let product = Self.attribute("\(parent)/idProduct"),
      let number = Self.attribute("\(parent)/serial"), !number.isEmpty
    {
      serial = "\(vendor):\(product):\(number)"
    }
  }

  /// One of these parts.
  init(name: String, index: String, place: String, serial: String?) {
    (self.name, self.index, self.place, self.serial) = (name, index, place, serial)
  }

  /// What of it tells the camera from the others that there are: of `nodes`, all that are plugged in elsewhere.
  func distinguishing(among nodes: [VideoNode]) -> CameraTraits {
    let others = nodes.filter { $0.identity.place != place }
    return CameraTraits(
      identity: self, hasOwnSerial: serial != nil && !others.contains { $0.identity.serial == serial },
      hasOwnName: serial == nil && !others.contains { $0.identity.name == name })
  }

  private static func attribute(_ path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: lengthLimit)
    let count = read(descriptor, &bytes, bytes.count)
    guard count >= 0 else { return nil }
    return DriverText.text(bytes.prefix(count).prefix { $0 != UInt8(ascii: "\n") })
  }
}

/// A camera's identity, and which parts of it no other camera had when they were compared.
struct CameraTraits: Hashable {
  let identity: CameraIdentity
  let hasOwnSerial: Bool
  let hasOwnName: Bool

  /// Those of `nodes` that are this camera, the likeliest first: more than one only where one device has several.
  func matches(in nodes: [VideoNode]) -> [VideoNode] {
    let named = nodes.filter { $0.identity.name == identity.name && $0.identity.serial == identity.serial }
    var found = named.filter { $0.identity.place == identity.place }
    if found.isEmpty, hasOwnSerial || hasOwnName {
      // Elsewhere, and there alone: two that are alike are not told apart by guessing.
      found = named.allSatisfy { $0.identity.place == named.first?.identity.place } ? named : []
    }
    let likeliest = found.filter { $0.identity.index == identity.index }
    return likeliest.isEmpty ? found : likeliest
  }
}
