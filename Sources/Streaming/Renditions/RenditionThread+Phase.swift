extension RenditionThread {
  /// The state of the encoder.
  package enum Phase: Int {
    /// There is neither encoder nor thread.
    case resting
    /// The thread makes the encoder, or ends the former one.
    case opening
    /// The encoder takes frames.
    case ready
    /// The encoder has failed, and the thread waits for the next attempt.
    case failed
    /// The stream has ended.
    case closed
  }
}
