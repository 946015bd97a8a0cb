package import Detection
import Platform
package import Sound
package import Streaming

/// The settings of a stream's sound.
package struct CameraSound: Hashable, Sendable {
  /// The source of the sound.
  package enum Choice: Hashable, Sendable {
    /// The camera's own microphone. If the only camera has none, that of ALSA's default card. Otherwise no sound.
    case auto
    /// No sound.
    case none
    /// A beep at the beginning of each second.
    case test
    /// A sound device by its name.
    case device(SoundDeviceName)

    init(text: String) throws(ValueError) {
      switch text {
      case "auto": self = .auto
      case "none": self = .none
      case "test": self = .test
      // No card has such a name, and a stream that waits for the card is silent for ever.
      case "off", "no", "false", "0", "mute": throw ValueError("choose none for no sound")
      case "on", "yes", "true", "1": throw ValueError("choose auto for the camera's own microphone")
      default:
        do throws(SoundError) {
          self = .device(try SoundDeviceName(text))
        } catch {
          throw ValueError(
            "choose auto, none, test, or a sound device that nightjar devices lists, such as hw:CARD=C920")
        }
      }
    }
  }

  /// The source of the sound.
  package var choice = Choice.auto
  /// Bits a second of Opus.
  package var bitrate = 32_000
  /// The gain in dB.
  package var gain = 0.0
  /// The number of channels, 1 or 2.
  package var channels = 1
  /// `true` reduces sound below 100 Hz by a high-pass filter.
  package var usesHighPass = true

  /// The length of the synthetic camera's flash; nil for no flash. The flash accompanies the test tone, and a named
  /// device, into which a test may play its own beeps.
  var flash: Duration? {
    switch choice {
    case .auto, .none: nil
    case .test, .device: ToneSource.length
    }
  }

  /// The settings as the pipeline takes them.
  ///
  /// - Parameter detector: the settings of the detectors; nil for none.
  package func settings(detector: SoundDetector.Settings?) -> SoundSettings {
    var settings = settings
    settings.detector = detector
    return settings
  }

  /// The settings as the pipeline takes them, without detectors.
  package var settings: SoundSettings {
    var settings = SoundSettings()
    (settings.channels, settings.bitrate, settings.gain) = (channels, bitrate, gain)
    settings.usesHighPass = usesHighPass
    return settings
  }

  /// Parses `32k`: bits a second.
  static func bitrate(_ text: String) throws(ValueError) -> Int {
    let isKilo = text.hasSuffix("k")
    guard let number = SettingValues.number((isKilo ? text.dropLast() : text[...])),
      case let (bits, overflow) = number.multipliedReportingOverflow(by: isKilo ? 1000 : 1), !overflow,
      OpusEncoder.bitrates.contains(bits)
    else { throw ValueError("choose 6k to 128k, as in 32k") }
    return bits
  }

  /// Parses `6` or `-3.5`: decibels.
  static func gain(_ text: String) throws(ValueError) -> Double {
    let isNegative = text.hasPrefix("-")
    guard let value = SettingValues.decimal(isNegative ? text.dropFirst() : text[...]),
      case let gain = isNegative ? -value : value, SoundChain.gains.contains(gain)
    else { throw ValueError("choose -30 to 30 dB, as in 6 or -3") }
    return gain
  }
}
