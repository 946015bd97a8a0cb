extension StreamStatus {
  /// The sound of the stream.
  package struct Sound: Codable, Hashable, Sendable {
    /// `true` if the microphone delivers; else viewers hear silence.
    package var present: Bool
    /// The microphone's name.
    package var name: String
    /// The root mean square of the last tenth of a second, in dBFS: 0 is full scale, -100 is silence.
    package var rmsDbfs: Double
    /// The largest sample of the last tenth of a second, in dBFS.
    package var peakDbfs: Double
    /// The greatest root mean square of a tenth of a second within the last second, in dBFS.
    package var loudestRmsDbfs: Double
    /// The largest sample of the last second, in dBFS.
    package var loudestPeakDbfs: Double
    /// Seconds for which the microphone has recorded nothing but digital silence; zero while it records.
    package var digitalSilenceSeconds: Double
    /// `true` if viewers get silence on request.
    package var muted: Bool
    /// The gain in dB.
    package var gainDb: Double
    /// Samples that were clipped, by the microphone or by the gain.
    package var clipped: Int64
    /// Seconds of silence in the place of samples that did not come.
    package var silenceSeconds: Double
    /// The deviation of the microphone's clock, in ppm.
    package var driftPpm: Double
    /// The milliseconds between two deliveries of the microphone; nil for a source without a card.
    package var periodMs: Double?
    /// The source of the samples' times: `driver`, `wake-up` or `clock`; nil for a source without a card.
    package var timestamps: String?
    /// The number of deliveries whose time is not the driver's, because the driver had none.
    package var unstamped: Int
    /// The number of times that samples were lost, because nobody read them in time.
    package var overruns: Int
    /// The number of times that the microphone was lost.
    package var losses: Int
    /// Packets of 20 ms that were encoded.
    package var encoded: Int
    /// Frames of 20 ms that the encoder refused.
    package var failed: Int
    /// Packets that MPEG-TS misses because the send stage was late.
    package var dropped: Int
    /// Current listeners of `/listen.mp3`.
    package var mp3Listeners: Int
    /// MP3 frames of 24 ms that were encoded, once for all listeners.
    package var mp3Frames: Int
    /// Frames of 20 ms that listeners miss because the MP3 encoder was late.
    package var mp3Skipped: Int

    /// Creates a status; see the properties.
    package init(
      present: Bool, name: String, rmsDbfs: Double, peakDbfs: Double, loudestRmsDbfs: Double? = nil,
      loudestPeakDbfs: Double? = nil, digitalSilenceSeconds: Double = 0, muted: Bool, gainDb: Double, clipped: Int64,
      silenceSeconds: Double, driftPpm: Double, periodMs: Double? = nil, timestamps: String? = nil, unstamped: Int = 0,
      overruns: Int, losses: Int, encoded: Int, failed: Int = 0,
      dropped: Int = 0, mp3Listeners: Int = 0, mp3Frames: Int = 0, mp3Skipped: Int = 0
    ) {
      (self.failed, self.dropped) = (failed, dropped)
      (self.periodMs, self.timestamps, self.unstamped) = (periodMs, timestamps, unstamped)
      self.digitalSilenceSeconds = digitalSilenceSeconds
      (self.loudestRmsDbfs, self.loudestPeakDbfs) = (loudestRmsDbfs ?? rmsDbfs, loudestPeakDbfs ?? peakDbfs)
      (self.mp3Listeners, self.mp3Frames, self.mp3Skipped) = (mp3Listeners, mp3Frames, mp3Skipped)
      (self.present, self.name, self.rmsDbfs, self.peakDbfs) = (present, name, rmsDbfs, peakDbfs)
      (self.muted, self.gainDb, self.clipped, self.silenceSeconds) = (muted, gainDb, clipped, silenceSeconds)
      (self.driftPpm, self.overruns, self.losses, self.encoded) = (driftPpm, overruns, losses, encoded)
    }
  }
}
