import CALSA
import Glibc
import Platform

/// A sound card's device that records: a microphone or a line input.
package struct SoundCard: Hashable, Sendable {
  /// The name by which the device is opened, with the number of the card.
  package let device: SoundDeviceName
  /// The number of the card: N of `/dev/snd/controlCN`. It may differ after the card was unplugged.
  package let number: Int
  /// The number of the device on its card: M of `/dev/snd/pcmCNDMc`.
  package let deviceNumber: Int
  /// The card's short name, such as `C920`; no other card has the same one.
  package let id: String
  /// The card's name, such as `HD Pro Webcam C920`.
  package let name: String
  /// The sysfs path of the USB device that the card is a part of; nil for a card that is not on USB.
  package let usbDevice: String?
  /// The maker, model and serial number of that USB device, such as `046d:082d:serial number`; nil for a card that is not
  /// on USB.
  package let usbIdentity: String?

  /// Creates a card.
  package init(
    device: SoundDeviceName, number: Int, deviceNumber: Int, id: String, name: String, usbDevice: String?,
    usbIdentity: String?
  ) {
    self.device = device
    self.number = number
    self.deviceNumber = deviceNumber
    self.id = id
    self.name = name
    self.usbDevice = usbDevice
    self.usbIdentity = usbIdentity
  }

  /// The device's node.
  package var path: String { SoundNode.path(card: number, device: deviceNumber) }

  /// The name by which the device is found again after the card was unplugged, whatever its number is then.
  package var stableName: String { "hw:CARD=\(id),DEV=\(deviceNumber)" }

  /// The most cards and the most devices of a card that are visited; the kernel has at most 32 of each.
  private static let limit = 32

  /// Returns the sound devices that record, by number. Cards that cannot be asked are left out.
  package static func all() -> [SoundCard] {
    nightjar_alsa_silence()
    var cards: [SoundCard] = []
    var number: CInt = -1
    for _ in 0..<limit {
      guard snd_card_next(&number) == 0, number >= 0 else { break }
      cards += devices(ofCard: Int(number))
    }
    return cards
  }

  /// Returns `true` if the card of `camera` is still to come: its USB device has an interface for sound, whose driver may
  /// take longer than the camera's. `false` where the card is there, with a microphone or with a loudspeaker only, and where
  /// the kernel has no sound at all.
  package static func isExpected(beside camera: String, devices: String = "/dev/snd", sysfs: String = "/sys") -> Bool {
    guard let usbDevice = usbDevice(below: camera), USBInterface.audio.isPart(of: usbDevice) else { return false }
    return access(devices, F_OK) == 0 && !SoundNode.hasCard(of: usbDevice, in: devices, sysfs: sysfs)
  }

  private static func devices(ofCard number: Int) -> [SoundCard] {
    var control: OpaquePointer?
    guard snd_ctl_open(&control, "hw:\(number)", CInt(SND_CTL_NONBLOCK)) == 0, let control else { return [] }
    defer { snd_ctl_close(control) }
    var info: OpaquePointer?
    var pcm: OpaquePointer?
    guard snd_ctl_card_info_malloc(&info) == 0, let info else { return [] }
    defer { snd_ctl_card_info_free(info) }
    guard snd_pcm_info_malloc(&pcm) == 0, let pcm else { return [] }
    defer { snd_pcm_info_free(pcm) }
    guard snd_ctl_card_info(control, info) == 0 else { return [] }
    let id = text(snd_ctl_card_info_get_id(info))
    let name = text(snd_ctl_card_info_get_name(info))
    let usbDevice = usbDevice(below: "/sys/class/sound/card\(number)/device")
    let usbIdentity = usbDevice.map(usbIdentity)
    var found: [SoundCard] = []
    var device: CInt = -1
    for _ in 0..<limit {
      guard snd_ctl_pcm_next_device(control, &device) == 0, device >= 0 else { break }
      snd_pcm_info_set_device(pcm, UInt32(device))
      snd_pcm_info_set_subdevice(pcm, 0)
      snd_pcm_info_set_stream(pcm, SND_PCM_STREAM_CAPTURE)
      // A device that only plays has no such stream.
      guard snd_ctl_pcm_info(control, pcm) == 0 else { continue }
      found.append(
        SoundCard(
          device: SoundDeviceName(card: number, device: Int(device)), number: number, deviceNumber: Int(device),
          id: id, name: name, usbDevice: usbDevice, usbIdentity: usbIdentity))
    }
    return found
  }

  private static func text(_ pointer: UnsafePointer<CChar>?) -> String {
    pointer.map { AttributeFile.printable(String(cString: $0)) } ?? ""
  }

  /// Returns the sysfs path of the USB device that the file at `path` lies below; nil where there is none. A USB device
  /// is the nearest folder above with `idVendor`.
  static func usbDevice(below path: String) -> String? {
    guard let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    var folder = String(cString: resolved)
    while let slash = folder.lastIndex(of: "/"), slash != folder.startIndex {
      if access(folder + "/idVendor", F_OK) == 0 { return folder }
      folder = String(folder[..<slash])
    }
    return nil
  }

  /// Returns the maker, model and serial number of the USB device at `path` of sysfs. A missing one is empty.
  static func usbIdentity(of path: String) -> String {
    ["idVendor", "idProduct", "serial"].map { name in
      ((try? AttributeFile.text("\(path)/\(name)")) ?? nil).map(AttributeFile.printable) ?? ""
    }.joined(separator: ":")
  }
}

extension [SoundCard] {
  /// Returns the device that `name` leads to; nil for a name that is no card's, or of a card that is not there.
  package func named(_ name: SoundDeviceName) -> SoundCard? {
    first { name.leads(toCard: $0.number, id: $0.id, device: $0.deviceNumber) }
  }

  /// Returns the first device of the card that belongs to the same USB device as `camera`, the sysfs path of a camera's
  /// USB interface or of something below it; nil where the camera has no microphone of its own.
  package func beside(camera: String) -> SoundCard? {
    guard let usbDevice = SoundCard.usbDevice(below: camera) else { return nil }
    return first { $0.usbDevice == usbDevice }
  }

  /// Returns the device that `former` is now; nil where it is away.
  ///
  /// The kernel gives short names by the order in which cards come, so that two webcams of one model may swap them. The
  /// card at the port of a USB card is therefore that card, whatever its name is now, unless the maker, the model or the
  /// serial number differ. Otherwise a short name counts, but not that of a webcam: the microphone of another camera is
  /// none of this one's.
  package func same(as former: SoundCard, isWebcam: (_ usbDevice: String) -> Bool = USBInterface.video.isPart)
    -> SoundCard?
  {
    let present = filter { $0.deviceNumber == former.deviceNumber }
    let atPort = present.filter {
      $0.usbDevice != nil && ($0.usbDevice, $0.usbIdentity) == (former.usbDevice, former.usbIdentity)
    }
    return atPort.first { $0.id == former.id } ?? atPort.first
      ?? present.first { $0.id == former.id && !($0.usbDevice.map(isWebcam) ?? false) }
  }
}
