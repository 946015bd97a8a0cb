package import Media
package import Platform
import Synchronization

/// A failure to rotate pictures as requested. The stream goes on with the orientation that it had.
package struct RotationRefusal: Failure {
  /// The requested orientation.
  package let wanted: Orientation
  /// The orientation that pictures have instead.
  package let stays: Orientation
  /// The source's reason, or the encoder's.
  package let reason: any Failure

  /// One line for the person at the terminal.
  package var description: String {
    "the picture cannot rotate to \(wanted) degrees: \(reason); it stays at \(stays)"
  }

  /// The kind of the reason.
  package var kind: FailureKind { reason.kind }
}

/// The requested orientation of pictures, and its outcome. Any thread may use it, at any time.
package final class PictureRotation: Sendable {
  private struct State {
    /// The orientation of the last request.
    var requested: Orientation
    /// The last orientation that the encoder took. The encoder was made for the first one.
    var good: Orientation
    /// The orientation that the encoder refuses, and the reason, until the next request.
    var refused: (wanted: Orientation, reason: any Failure)?
  }

  private let source: any VideoSource
  private let changes = ChangeSignal()
  private let state: Mutex<State>
  /// The width of the last frame that was encoded, and its height in the lower half; 0 before the first.
  private let encoded = Atomic<UInt64>(0)
  private let hasEnded = Atomic(false)

  /// Creates a request for `orientation`, and tells `source`.
  package init(_ source: any VideoSource, _ orientation: Orientation) {
    self.source = source
    state = Mutex(State(requested: orientation, good: orientation))
    source.orient(orientation)
  }

  /// Requests `orientation` for the next picture and those after it.
  package func orient(_ orientation: Orientation) {
    state.withLock { state in
      if isDone(state.requested) { state.good = state.requested }
      state.requested = orientation
      state.refused = nil
      // Under the lock, so that the source's last call is the last request.
      source.orient(orientation)
    }
    changes.announce()
  }

  /// The orientation of pictures, or that of the next one.
  package var orientation: Orientation {
    state.withLock { $0.refused == nil && source.turningFailure == nil ? $0.requested : source.orientation }
  }

  /// The reason why pictures do not have the orientation of the last request; nil where they have it, or where no
  /// picture has come since.
  package var refusal: RotationRefusal? {
    state.withLock { state in
      if let (wanted, reason) = state.refused {
        return RotationRefusal(wanted: wanted, stays: state.requested, reason: reason)
      }
      guard let reason = source.turningFailure else { return nil }
      return RotationRefusal(wanted: state.requested, stays: source.orientation, reason: reason)
    }
  }

  /// Waits until a picture with `orientation` was encoded, another one was requested, ``end()``, or `deadline`.
  ///
  /// - Throws: ``RotationRefusal`` where source or encoder cannot rotate pictures so.
  func settle(_ orientation: Orientation, by deadline: Instant) async throws(RotationRefusal) {
    let settled = await changes.value(by: deadline) { () -> Result<Void, RotationRefusal>? in
      if let refusal, refusal.wanted == orientation { return .failure(refusal) }
      return hasEnded.load(ordering: .relaxed) || hasSettled(orientation) ? .success(()) : nil
    }
    try settled?.get()
  }

  /// Notes that no picture follows.
  func end() {
    hasEnded.store(true, ordering: .relaxed)
    changes.announce()
  }

  /// Returns `true` if a picture with the requested orientation was encoded, or if another orientation than
  /// `orientation` was requested.
  package func hasSettled(_ orientation: Orientation) -> Bool {
    state.withLock { $0.requested != orientation || isDone(orientation) }
  }

  /// Notes that a frame of `size` was encoded.
  func noteEncoded(_ size: PictureSize) {
    encoded.store(Self.word(size), ordering: .relaxed)
    changes.announce()
  }

  /// Notes that a frame was not encoded: the source may have failed to rotate it.
  func noteSkipped() { changes.announce() }

  /// Notes that the encoder does not take frames of `size`. The source goes back to the orientation that the encoder
  /// took before.
  package func refuse(_ size: PictureSize, reason: any Failure) {
    state.withLock { state in
      let wanted = state.requested
      // Frames from before a later request prove nothing about that request.
      // Nor does an error of another kind, once the orientation has been encoded.
      guard wanted.size(of: source.format.size) == size, state.good != wanted, !isDone(wanted) else { return }
      state.refused = (wanted, reason)
      state.requested = state.good
      source.orient(state.good)
    }
    changes.announce()
  }

  private func isDone(_ orientation: Orientation) -> Bool {
    source.turningFailure == nil && source.orientation == orientation
      && encoded.load(ordering: .relaxed) == Self.word(orientation.size(of: source.format.size))
  }

  private static func word(_ size: PictureSize) -> UInt64 { UInt64(size.width) << 32 | UInt64(size.height) }
}
