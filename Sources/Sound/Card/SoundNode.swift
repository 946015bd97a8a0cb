import Glibc
import Platform

/// The node of a sound card's device that records: `/dev/snd/pcmC1D0c`. Users who may not open the card see it too.
package struct SoundNode: Hashable, Sendable {
  /// The number of the card.
  package let card: Int
  /// The number of the device on its card.
  package let device: Int
  /// The card's short name; its number where the kernel does not tell.
  package let id: String
  /// The sysfs path of the USB device that the card is a part of; nil for a card that is not on USB.
  package let usbDevice: String?

  /// The node's path.
  package var path: String { Self.path(card: card, device: device) }

  /// The nodes that this device is opened by: the card's and its own.
  package var paths: [String] { ["/dev/snd/controlC\(card)", path] }

  /// `true` if this user may not open the device.
  var isClosed: Bool {
    paths.contains { access($0, R_OK | W_OK) != 0 && (errno == EACCES || errno == EPERM) }
  }

  /// The name by which `--audio` takes the device.
  package var stableName: String { "hw:CARD=\(id),DEV=\(device)" }

  /// Returns `true` if the USB device's card is complete: the kernel adds the control node of a card after all others.
  static func hasCard(of usbDevice: String, in folder: String, sysfs: String) -> Bool {
    var isFound = false
    Directory.forEachName(in: folder) { name in
      guard !isFound, name.hasPrefix("controlC"), let card = number(name.dropFirst(8)) else { return }
      isFound = SoundCard.usbDevice(below: cardFolder(card, sysfs: sysfs)) == usbDevice
    }
    return isFound
  }

  private static func cardFolder(_ card: Int, sysfs: String) -> String { "\(sysfs)/class/sound/card\(card)/device" }

  static func path(card: Int, device: Int) -> String { "/dev/snd/pcmC\(card)D\(device)c" }

  /// Returns the nodes, by number.
  package static func all(in folder: String = "/dev/snd", sysfs: String = "/sys") -> [SoundNode] {
    var found: [SoundNode] = []
    Directory.forEachName(in: folder) { name in
      guard let (card, device) = numbers(of: name) else { return }
      // A card without a readable name is found by its number.
      let id = (try? AttributeFile.text("\(sysfs)/class/sound/card\(card)/id")) ?? nil
      found.append(
        SoundNode(
          card: card, device: device, id: id.map(AttributeFile.printable) ?? "\(card)",
          usbDevice: SoundCard.usbDevice(below: cardFolder(card, sysfs: sysfs))))
    }
    return found.sorted { ($0.card, $0.device) < ($1.card, $1.device) }
  }

  /// Returns the card and the device of `pcmC1D0c`.
  static func numbers(of name: String) -> (card: Int, device: Int)? {
    guard name.hasPrefix("pcmC"), name.hasSuffix("c") else { return nil }
    let parts = name.dropFirst(4).dropLast().split(separator: "D", omittingEmptySubsequences: false)
    guard parts.count == 2, let card = number(parts[0]), let device = number(parts[1]) else { return nil }
    return (card, device)
  }

  private static func number(_ text: Substring) -> Int? {
    guard (1...3).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(text)
  }
}

extension [SoundNode] {
  /// Returns the node that `name` leads to; nil for a name that is no card's, or of a card that is not there.
  package func named(_ name: SoundDeviceName) -> SoundNode? {
    first { name.leads(toCard: $0.card, id: $0.id, device: $0.device) }
  }

  /// Returns the first node that belongs to the same USB device as `camera`, the sysfs path of a camera's USB interface
  /// or of something below it.
  package func beside(camera: String) -> SoundNode? {
    guard let usbDevice = SoundCard.usbDevice(below: camera) else { return nil }
    return first { $0.usbDevice == usbDevice }
  }
}
