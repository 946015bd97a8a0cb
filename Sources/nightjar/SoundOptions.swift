import ArgumentParser

/// The options for the stream's sound.
struct SoundOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The microphone: auto, none, test, or a sound device such as hw:CARD=C920 (see nightjar devices).",
      discussion: """
        auto takes the camera's own microphone. If the camera has none and is the only camera, auto takes ALSA's \
        default card, or else the first card that records. Otherwise the stream has no sound. test beeps at the beginning of each second, while the \
        synthetic camera shows a white field. While a microphone is unplugged, viewers hear silence.
        """, valueName: "device"),
    completion: NameCompletion.microphones)
  var audio: String?

  @Option(
    name: .customLong("audio-bitrate"),
    help: ArgumentHelp("Bits per second of the sound: 6k to 128k; the default is 32k.", valueName: "rate"))
  var bitrate: String?

  @Option(
    name: .customLong("audio-gain"), parsing: .unconditional,
    help: ArgumentHelp(
      "The gain in decibels, -30 to 30; the default is 0.",
      discussion: "nightjar ctl status counts samples that were clipped: then choose less.", valueName: "decibels"))
  var gain: String?

  @Option(
    name: .customLong("audio-channels"),
    help: ArgumentHelp("The channels of the sound: 1 (mono, the default) or 2 (stereo).", valueName: "number"))
  var channels: String?

  @Flag(
    name: .customLong("audio-high-pass"), inversion: .prefixedNo,
    help: ArgumentHelp("Reduce sound below 100 Hz: steps, wind, mains hum."))
  var usesHighPass = true
}
