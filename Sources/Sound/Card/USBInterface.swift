import Platform

/// The kinds of interfaces of a USB device: `bInterfaceClass` in sysfs, in hexadecimal.
enum USBInterface: String {
  case audio = "01"
  case video = "0e"

  /// Returns `true` if the USB device at `path` of sysfs has an interface of this kind, with or without a driver.
  func isPart(of path: String) -> Bool {
    // Interfaces are folders such as `1-2:1.0` below `1-2`.
    let prefix = "\(path.split(separator: "/").last ?? ""):"
    var isFound = false
    Directory.forEachName(in: path) { name in
      guard !isFound, name.hasPrefix(prefix) else { return }
      isFound = ((try? AttributeFile.text("\(path)/\(name)/bInterfaceClass")) ?? nil) == rawValue
    }
    return isFound
  }
}
