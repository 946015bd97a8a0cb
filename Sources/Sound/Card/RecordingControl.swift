import CALSA
import Glibc
import Platform

/// A control of a sound card's mixer that changes what the card records: a switch, a volume, or both.
package struct RecordingControl: Hashable, Sendable {
  /// The control's name, such as `Capture` or `Mic`.
  package let name: String
  /// The number among controls of that name.
  package let index: Int
  /// The state of the switch; nil for a control without one.
  package let isOn: Bool?
  /// `true` if the volume is the lowest on all channels; nil for a control without a volume.
  package let isVolumeZero: Bool?

  /// Creates a control.
  package init(name: String, index: Int = 0, isOn: Bool?, isVolumeZero: Bool?) {
    (self.name, self.index, self.isOn, self.isVolumeZero) = (name, index, isOn, isVolumeZero)
  }

  /// The most controls of a card that are visited.
  private static let limit = 256

  /// Returns the controls of the card with that number; none where its mixer cannot be opened.
  package static func all(ofCard number: Int) -> [RecordingControl] {
    nightjar_alsa_silence()
    var opened: OpaquePointer?
    guard snd_mixer_open(&opened, 0) == 0, let mixer = opened else { return [] }
    defer { snd_mixer_close(mixer) }
    guard snd_mixer_attach(mixer, "hw:\(number)") == 0, snd_mixer_selem_register(mixer, nil, nil) == 0,
      snd_mixer_load(mixer) == 0
    else { return [] }
    var found: [RecordingControl] = []
    var element = snd_mixer_first_elem(mixer)
    for _ in 0..<limit {
      guard let current = element else { break }
      if let control = RecordingControl(current) { found.append(control) }
      element = snd_mixer_elem_next(current)
    }
    return found
  }

  /// Creates the control of an element; nil where the element changes no recording.
  private init?(_ element: OpaquePointer) {
    guard snd_mixer_selem_is_active(element) != 0 else { return nil }
    let channels = (0...SND_MIXER_SCHN_LAST.rawValue).map { snd_mixer_selem_channel_id_t($0) }
      .filter { snd_mixer_selem_has_capture_channel(element, $0) != 0 }
    var isOn: Bool?
    if snd_mixer_selem_has_capture_switch(element) != 0 {
      isOn = channels.contains { channel in
        var value = CInt(0)
        return snd_mixer_selem_get_capture_switch(element, channel, &value) == 0 && value != 0
      }
    }
    var isVolumeZero: Bool?
    var (least, most) = (0, 0)
    if snd_mixer_selem_has_capture_volume(element) != 0, !channels.isEmpty,
      snd_mixer_selem_get_capture_volume_range(element, &least, &most) == 0, least < most
    {
      isVolumeZero = channels.allSatisfy { channel in
        var value = most
        return snd_mixer_selem_get_capture_volume(element, channel, &value) == 0 && value <= least
      }
    }
    guard isOn != nil || isVolumeZero != nil, let name = snd_mixer_selem_get_name(element) else { return nil }
    self.init(
      name: AttributeFile.printable(String(cString: name)), index: Int(snd_mixer_selem_get_index(element)), isOn: isOn,
      isVolumeZero: isVolumeZero)
  }
}

extension [RecordingControl] {
  /// The control whose switch keeps the card silent; nil if none does. A card has a switch for all inputs, by the name
  /// `Capture`, or one for each input, of which one must be on.
  package var switchedOff: RecordingControl? {
    let switches = filter { $0.isOn != nil }
    if let main = switches.first(where: \.isMain) { return main.isOn == false ? main : nil }
    return switches.contains { $0.isOn == true } ? nil : switches.preferred
  }

  /// The control whose volume keeps the card silent; nil if none does. The volume of an input that is off does not
  /// count. That of a preamplifier does not either: without it the input is softer, and not silent.
  package var turnedDown: RecordingControl? {
    let isOff = switchedOff
    let volumes = filter { control in
      control.isVolumeZero != nil && !control.name.contains("Boost") && (control.isOn != false || control == isOff)
    }
    if let main = volumes.first(where: \.isMain) { return main.isVolumeZero == true ? main : nil }
    return volumes.contains { $0.isVolumeZero == false } ? nil : volumes.preferred
  }

  private var preferred: RecordingControl? { first { $0.name.contains("Mic") } ?? first }
}

extension RecordingControl {
  fileprivate var isMain: Bool { name == "Capture" && index == 0 }
}
