package import Serving

extension StatusText {
  /// Returns the state of the sound, a line each.
  package static func text(_ sound: StreamStatus.Sound) -> String { lines(of: sound).joined(separator: "\n") + "\n" }

  /// Returns the lines of the sound in the status.
  static func lines(of sound: StreamStatus.Sound) -> [String] {
    func decibels(_ value: Double) -> String { Terminal.decimal(value, digits: 1) }
    let state = sound.present ? sound.name : "no microphone: viewers hear silence"
    var lines = [
      "sound        \(state)\(sound.muted ? ", muted" : "")",
      "             level \(decibels(sound.loudestRmsDbfs)) dBFS, peak \(decibels(sound.loudestPeakDbfs)) dBFS, gain "
        + "\(decibels(sound.gainDb)) dB, clock \(decibels(sound.driftPpm)) ppm",
    ]
    if sound.digitalSilenceSeconds >= 1 {
      lines.append(
        "             digital silence for \(Int(sound.digitalSilenceSeconds)) s: a working microphone has some noise")
    }
    if let period = sound.periodMs, let timestamps = sound.timestamps {
      lines.append("             a delivery every \(decibels(period)) ms, time stamps of the \(timestamps)")
    }
    if sound.clipped > 0 { lines.append("             \(sound.clipped) samples clipped: choose less gain") }
    if sound.losses > 0 || sound.overruns > 0 {
      lines.append(
        "             microphone lost \(times(sound.losses)), samples lost \(times(sound.overruns)), "
          + "\(decibels(sound.silenceSeconds)) s of silence in their place")
    }
    if sound.failed + sound.dropped > 0 {
      lines.append(
        "             packets of 20 ms lost: \(sound.failed) by the encoder, \(sound.dropped) because the sender was late"
      )
    }
    if sound.mp3Listeners + sound.mp3Frames > 0 {
      lines.append(
        "             \(sound.mp3Listeners) listening by MP3, \(sound.mp3Frames) MP3 frames made, \(sound.mp3Skipped) frames "
          + "skipped")
    }
    return lines
  }

  /// Returns the line for a listener of MP3.
  package static func listenerLine(of delivery: StreamStatus.Destination, label: String) -> String {
    "\(label)\(delivery.url): \(delivery.packets) MP3 frames, \(delivery.bytes) bytes, \(delivery.framesDropped) lost"
  }
}
