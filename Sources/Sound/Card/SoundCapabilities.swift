import CALSA
import Glibc

/// The rates, formats and channel counts that a sound card's device offers for recording, before any conversion.
package struct SoundCapabilities: Hashable, Sendable {
  /// The usual rates that the device offers, in samples a second.
  package let rates: [Int]
  /// The lowest and the highest rate.
  package let rateLimits: ClosedRange<Int>
  /// The formats of samples by alsa-lib's names, as in `S16_LE`.
  package let formats: [String]
  /// The fewest and the most channels.
  package let channels: ClosedRange<Int>

  /// The rates that are tried.
  private static let usualRates = [
    8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 64_000, 88_200, 96_000, 176_400, 192_000,
  ]

  /// Queries `device`. The query sets nothing; a recording that goes on continues.
  ///
  /// - Throws: ``SoundError``; ``SoundError/busy(_:)`` where another program has the device open.
  package init(of device: SoundDeviceName) throws(SoundError) {
    nightjar_alsa_silence()
    var opened: OpaquePointer?
    let code = snd_pcm_open(&opened, device.text, SND_PCM_STREAM_CAPTURE, CInt(SND_PCM_NONBLOCK))
    guard code == 0, let pcm = opened else { throw SoundError(opening: device, code: code) }
    defer { snd_pcm_close(pcm) }
    var allocated: OpaquePointer?
    guard snd_pcm_hw_params_malloc(&allocated) == 0, let hardware = allocated else {
      throw .refused(device.text, call: "snd_pcm_hw_params_malloc", errorNumber: ENOMEM)
    }
    defer { snd_pcm_hw_params_free(hardware) }
    let filled = snd_pcm_hw_params_any(pcm, hardware)
    guard filled >= 0 else { throw SoundError(device.text, call: "snd_pcm_hw_params_any", code: filled) }
    formats = (0...SND_PCM_FORMAT_LAST.rawValue).compactMap { value in
      let format = snd_pcm_format_t(value)
      guard snd_pcm_hw_params_test_format(pcm, hardware, format) == 0, let name = snd_pcm_format_name(format) else {
        return nil
      }
      return String(cString: name)
    }
    rates = Self.usualRates.filter { snd_pcm_hw_params_test_rate(pcm, hardware, UInt32($0), 0) == 0 }
    var (least, most) = (UInt32(0), UInt32(0))
    snd_pcm_hw_params_get_rate_min(hardware, &least, nil)
    snd_pcm_hw_params_get_rate_max(hardware, &most, nil)
    rateLimits = Int(least)...Int(max(least, most))
    (least, most) = (0, 0)
    snd_pcm_hw_params_get_channels_min(hardware, &least)
    snd_pcm_hw_params_get_channels_max(hardware, &most)
    channels = Int(least)...Int(max(least, most))
  }
}
