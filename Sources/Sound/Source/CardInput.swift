package import Platform

/// An open sound card that records. One thread at a time uses it.
package protocol CardInput: AnyObject, Sendable {
  /// The card's name, for people.
  var name: String { get }
  /// The device's name.
  var device: SoundDeviceName { get }
  /// The card's rate and number of channels.
  var format: SoundFormat { get }
  /// The time between two interrupts of the card.
  var period: Duration { get }
  /// Waits for samples and reads them; see ``PCMCapture/read(into:patience:)``.
  func read(
    into memory: UnsafeMutableBufferPointer<Int16>, patience: Duration
  ) throws(SoundError) -> PCMCapture.Result
  /// Closes the card for good. A driver may hang in it.
  func close()
}

/// A card that alsa-lib has opened.
final class OpenedCard: CardInput, @unchecked Sendable {
  // Sendable: one thread has it at a time, which a lock hands over to the next one.

  let name: String
  let device: SoundDeviceName
  let format: SoundFormat
  let period: Duration
  private var recording: Recording?

  private final class Recording {
    let pcm: PCMCapture
    init(_ pcm: consuming PCMCapture) { self.pcm = pcm }
  }

  init(_ pcm: consuming PCMCapture, name: String) {
    (device, format, period) = (pcm.device, pcm.format, pcm.period)
    recording = Recording(pcm)
    self.name = name
  }

  func read(
    into memory: UnsafeMutableBufferPointer<Int16>, patience: Duration
  ) throws(SoundError) -> PCMCapture.Result {
    guard let recording else { throw .disconnected(device.text) }
    return try recording.pcm.read(into: memory, patience: patience)
  }

  func close() { recording = nil }
}
