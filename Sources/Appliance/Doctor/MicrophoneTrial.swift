package import Platform
package import Sound

/// The result of a microphone's trial.
package struct MicrophoneTrial: Sendable {
  /// The recording.
  package let recording: TrialRecording
  /// The controls of the card's mixer; none for a device that is no card's.
  package let controls: [RecordingControl]

  /// The longest time of the whole trial, for a driver that hangs.
  package static let limit = Duration(seconds: 9)

  /// Opens the microphone as a stream would, records for a moment, and closes it.
  ///
  /// - Parameter card: the card that `device` leads to.
  /// - Throws: ``SoundError``.
  package init(_ device: SoundDeviceName, channels: Int, card: SoundCard?) throws(SoundError) {
    recording = try TrialRecording(device, channels: channels)
    controls = card.map { RecordingControl.all(ofCard: $0.number) } ?? []
  }

  /// A running trial, on a thread of its own.
  package struct Running: Sendable {
    private let call: BlockingCall<MicrophoneTrial, SoundError>
    private let deadline = Instant.now() + MicrophoneTrial.limit

    /// Starts a trial.
    ///
    /// - Throws: ``SystemFailure`` where the system has no thread left.
    package init(_ device: SoundDeviceName, channels: Int, card: SoundCard?) throws(SystemFailure) {
      call = try BlockingCall("nj-mic-trial") { () throws(SoundError) in
        try MicrophoneTrial(device, channels: channels, card: card)
      }
    }

    /// Waits for the trial's end; returns nil where the driver hangs.
    ///
    /// - Throws: ``SoundError``.
    package func result() throws(SoundError) -> MicrophoneTrial? { try call.result(by: deadline)?.get() }
  }
}
