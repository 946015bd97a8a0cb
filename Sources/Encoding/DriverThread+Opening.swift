import Media
import Platform

extension DriverThread {
  /// Returns the next encoder, prepared and ready for a frame; nil if none is to be opened.
  func open() -> (any StagedVideoEncoder)? {
    while waitForTurn() {
      var opened: (any StagedVideoEncoder)?
      var wanted = configuration
      wanted.vaapiQuality = monitor.locked { quality }
      do throws(EncoderError) {
        guard let encoder = try makers.hardware?(wanted) else { throw EncoderError.stopped }
        opened = encoder
        try encoder.prepare()
        try encoder.mapInput()
        if publish(encoder, Description(of: encoder)) { return encoder }
        end(encoder)
        return nil
      } catch {
        guard let retry = retryAfterFailedOpening() else {
          monitor.locked { wasOpened = outlivesFirstFailure && error.mayPass }
          noteFailure(error)
          if let opened { end(opened) }
          if outlivesFirstFailure && error.mayPass { continue } else { return nil }
        }
        if let opened { end(opened) }
        makers.events.add(.retryFailed(reason: error, retry: retry))
      }
    }
    return nil
  }

  /// Sets the time of the next attempt. Returns nil if the first attempt failed and no other follows.
  private func retryAfterFailedOpening() -> Duration? {
    monitor.locked {
      guard wasOpened else { return nil }
      let retry = backOff.failed(after: .zero)
      nextAttempt = .now() + retry
      return retry
    }
  }

  /// Waits for the end of the back-off. Returns `false` if no encoder is needed any more.
  private func waitForTurn() -> Bool {
    monitor.locked {
      reopeningSince = nil
      while !isStopping, !isAbandoned, Instant.now() < nextAttempt { _ = monitor.wait(until: nextAttempt) }
      guard !isStopping, !isAbandoned, health.reason == nil else { return false }
      if wasOpened { reopeningSince = .now() }
      opening = health.hangs
      return true
    }
  }

  /// Publishes a new encoder to the caller. Returns `false` if no encoder is needed any more.
  private func publish(_ encoder: any StagedVideoEncoder, _ description: Description) -> Bool {
    monitor.locked {
      guard !isStopping, !isAbandoned else { return false }
      self.encoder = encoder
      self.description = description
      reopeningSince = nil
      wasOpened = true
      lastAnswer = .now()
      state = .ready
      monitor.signal()
      return true
    }
  }
}
