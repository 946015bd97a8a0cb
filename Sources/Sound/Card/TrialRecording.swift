package import Platform

/// A short recording of a microphone, of which the level remains.
package struct TrialRecording: Sendable {
  /// The card's format.
  package let format: SoundFormat
  /// The level of the whole recording.
  package let level: SoundLevel

  /// The length of the recording.
  package static let length = Duration(nanoseconds: 1_500_000_000)
  /// The time at the beginning that does not count: cards begin with a click, or with silence.
  private static let start = Duration(nanoseconds: 200_000_000)
  /// The longest time without samples.
  private static let patience = Duration(nanoseconds: 2_000_000_000)

  /// Opens the microphone as a stream would, records, and closes it.
  ///
  /// - Throws: ``SoundError``.
  package init(_ device: SoundDeviceName, channels: Int) throws(SoundError) {
    let capture = try PCMCapture(device, channels: channels)
    format = capture.format
    // Some drivers claim to have written samples and have not, so that the memory is silence before.
    let memory = UnsafeMutableBufferPointer<Int16>.allocate(capacity: format.rate / 4 * format.channels)
    memory.initialize(repeating: 0)
    defer { memory.deallocate() }
    var meter = LevelMeter(rate: format.rate * format.channels, window: Self.length.seconds)
    var level: SoundLevel?
    let begin = Instant.now()
    while level == nil {
      let result = try capture.read(into: memory, patience: .milliseconds(100))
      let now = Instant.now()
      if case .samples(let count, let first, _) = result, first - begin >= Self.start {
        level = meter.note(UnsafeBufferPointer(rebasing: memory[..<(count * format.channels)]))
      }
      guard level != nil || now - begin < Self.length + Self.start + Self.patience else {
        throw .stalled(device.text, milliseconds: Int((now - begin).milliseconds))
      }
    }
    self.level = level ?? .silence
  }
}
