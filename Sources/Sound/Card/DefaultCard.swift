import CALSA
import Platform

/// The sound card that ALSA's configuration names as the default: by `defaults.pcm.card` or `pcm.!default` of
/// `asound.conf`, or by `ALSA_CARD`. Without any, it is the card with number 0.
package enum DefaultCard {
  /// The number of a card, and that of its device; nil for a device that is not known.
  package struct Place: Hashable, Sendable {
    let card: Int
    let device: Int?

    /// Creates a place.
    package init(card: Int, device: Int?) {
      (self.card, self.device) = (card, device)
    }
  }

  /// The longest wait for ALSA's answer: its default may be a sound server, which may hang.
  private static let patience = Duration(nanoseconds: 2_000_000_000)

  /// Returns the place of the default card; nil where ALSA's default is a sound server, or cannot be opened. It is opened
  /// and closed again, and records nothing.
  static func place() -> Place? {
    let call = try? BlockingCall("nj-default") { () throws(Never) in ask() }
    switch call?.result(by: .now() + patience) {
    case .success(let place): return place
    case nil: return nil
    }
  }

  private static func ask() -> Place? {
    nightjar_alsa_silence()
    var opened: OpaquePointer?
    guard snd_pcm_open(&opened, "default", SND_PCM_STREAM_CAPTURE, CInt(SND_PCM_NONBLOCK)) == 0, let pcm = opened else {
      // Another program records from it, or it only plays.
      return cardOfMixer()
    }
    defer { snd_pcm_close(pcm) }
    var allocated: OpaquePointer?
    guard snd_pcm_info_malloc(&allocated) == 0, let info = allocated else { return nil }
    defer { snd_pcm_info_free(info) }
    guard snd_pcm_info(pcm, info) == 0 else { return nil }
    let card = Int(snd_pcm_info_get_card(info))
    return card < 0 ? nil : Place(card: card, device: Int(snd_pcm_info_get_device(info)))
  }

  /// Returns the card of ALSA's default mixer, which a configuration usually sets along with the device.
  private static func cardOfMixer() -> Place? {
    var opened: OpaquePointer?
    guard snd_ctl_open(&opened, "default", CInt(SND_CTL_NONBLOCK)) == 0, let control = opened else { return nil }
    defer { snd_ctl_close(control) }
    var allocated: OpaquePointer?
    guard snd_ctl_card_info_malloc(&allocated) == 0, let info = allocated else { return nil }
    defer { snd_ctl_card_info_free(info) }
    guard snd_ctl_card_info(control, info) == 0 else { return nil }
    let card = Int(snd_ctl_card_info_get_card(info))
    return card < 0 ? nil : Place(card: card, device: nil)
  }
}

extension [SoundCard] {
  /// The device of ALSA's default card; the first device where that card is none of these. nil for no devices.
  package var preferred: SoundCard? {
    guard count > 1 else { return first }
    return first(on: DefaultCard.place()) { ($0.number, $0.deviceNumber) }
  }
}

extension [SoundNode] {
  /// The node of the same device as ``Swift/Array/preferred`` of the cards that this user may open.
  package var preferred: SoundNode? {
    guard count > 1 else { return first }
    return first(on: DefaultCard.place()) { ($0.card, $0.device) }
  }
}

extension Array {
  /// Returns the device at `place`, or another one of its card, or the first one of all.
  package func first(on place: DefaultCard.Place?, _ numbers: (Element) -> (card: Int, device: Int)) -> Element? {
    let ofCard = filter { numbers($0).card == place?.card }
    return ofCard.first { numbers($0).device == place?.device } ?? ofCard.first ?? first
  }
}
