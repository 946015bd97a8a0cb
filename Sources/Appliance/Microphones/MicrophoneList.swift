package import Capture
import Platform
import Sound

/// A microphone of this host, or another device of a sound card that records.
package struct MicrophoneListing: Hashable, Sendable {
  /// The name by which `--audio` takes the microphone, also after it was unplugged: `hw:CARD=C920,DEV=0`.
  package let device: String
  /// The card's name; its short name where the card cannot be asked.
  package let name: String
  /// The device's node.
  package let path: String
  /// The node of the camera that the microphone is a part of; nil for none.
  package let camera: String?
  /// The port of the USB device, such as `1-2`; nil for a card that is not on USB.
  package let usbPort: String?
  /// The rates and channels that the microphone offers; nil where they are unknown.
  package let offer: Offer?
  /// The reason why a stream could not open the microphone now; nil if it could.
  package let obstacle: String?

  /// The rates, formats and channel counts that a microphone offers, before any conversion.
  package struct Offer: Hashable, Sendable {
    /// The usual rates, in samples a second.
    package let rates: [Int]
    /// The lowest and the highest rate.
    package let rateLimits: ClosedRange<Int>
    /// The formats of samples, as in `S16_LE`.
    package let formats: [String]
    /// The fewest and the most channels.
    package let channels: ClosedRange<Int>
  }
}

/// The microphones of this host at the time of the list's creation.
package struct MicrophoneList: Sendable {
  /// All, by the number of their cards.
  package let entries: [MicrophoneListing]

  /// Lists the devices of all sound cards that record. Those that cannot be opened are listed with the reason.
  ///
  /// - Parameter cameras: the host's cameras.
  package init(beside cameras: CameraList) {
    let cards = SoundCard.all()
    let paths = cameras.entries.filter { entry in
      if case .notCapture = entry.obstacle { return false }
      return true
    }.map(\.path)
    entries = SoundNode.all().map { node in
      Self.listing(node, cards.first { ($0.number, $0.deviceNumber) == (node.card, node.device) }, cameras: paths)
    }
  }

  /// The names by which `--audio` takes the microphones.
  package static var names: [String] { SoundNode.all().map(\.stableName) }

  private static func listing(_ node: SoundNode, _ card: SoundCard?, cameras: [String]) -> MicrophoneListing {
    let camera = cameras.first { path in
      CameraMicrophone.sysfs(ofCamera: path).flatMap { [node].beside(camera: $0) } != nil
    }
    var offer: MicrophoneListing.Offer?
    var obstacle: String?
    do throws(SoundError) {
      let found = try SoundCapabilities(of: SoundDeviceName(card: node.card, device: node.device))
      offer = .init(
        rates: found.rates, rateLimits: found.rateLimits, formats: found.formats, channels: found.channels)
    } catch .busy {
      let holders = DeviceHolder.holders(ofDeviceAt: node.path).map(\.description)
      obstacle = "in use by " + (holders.isEmpty ? "a program of another user" : holders.joined(separator: ", "))
    } catch .noPermission {
      obstacle = MicrophoneFindings.access(to: node).first?.text ?? "permission denied"
    } catch {
      obstacle = error.description
    }
    return MicrophoneListing(
      device: node.stableName, name: card?.name ?? node.id, path: node.path, camera: camera,
      usbPort: node.usbDevice.flatMap { $0.split(separator: "/").last }.map { AttributeFile.printable(String($0)) },
      offer: offer, obstacle: obstacle)
  }
}
