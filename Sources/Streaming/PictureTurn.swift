public import Media
import Synchronization

/// Why pictures are not laid as was asked. The stream goes on with them laid as before.
public struct TurnRefusal: Failure {
  /// What was asked for.
  public let wanted: Orientation
  /// How pictures are laid instead.
  public let stays: Orientation
  /// Why: the source's reason, or the encoder's.
  public let reason: any Failure

  /// One line for the person at the terminal.
  public var description: String {
    "the picture cannot turn to \(wanted) degrees: \(reason); it stays at \(stays)"
  }

  /// That of the reason.
  public var kind: FailureKind { reason.kind }
}

/// How pictures are to be laid, and what became of it. Any thread, at any time.
final class PictureTurn: Sendable {
  private struct State {
    /// What was asked for last.
    var wish: Orientation
    /// How pictures were laid last that the encoder took; it was made for those of the beginning.
    var good: Orientation
    /// What the encoder does not do, and why, until something else is asked for.
    var refused: (wanted: Orientation, reason: any Failure)?
  }

  private let source: any VideoSource
  private let state: Mutex<State>
  /// The width of the last frame that was encoded, and its height in the lower half; 0 before the first.
  private let encoded = Atomic<UInt64>(0)

  /// One whose `source` is told `orientation`.
  init(_ source: any VideoSource, _ orientation: Orientation) {
    self.source = source
    state = Mutex(State(wish: orientation, good: orientation))
    source.orient(orientation)
  }

  /// From the next picture on.
  func orient(_ orientation: Orientation) {
    state.withLock { state in
      if isDone(state.wish) { state.good = state.wish }
      state.wish = orientation
      state.refused = nil
      // Under the lock, so that the source's last call is the last wish.
      source.orient(orientation)
    }
  }

  /// How pictures are laid, or will be with the next one.
  var orientation: Orientation {
    state.withLock { $0.refused == nil && source.turningFailure == nil ? $0.wish : source.orientation }
  }

  /// Why they are not laid as was asked last; nil where they are, or where no picture has come since.
  var refusal: TurnRefusal? {
    state.withLock { state in
      if let (wanted, reason) = state.refused {
        return TurnRefusal(wanted: wanted, stays: state.wish, reason: reason)
      }
      guard let reason = source.turningFailure else { return nil }
      return TurnRefusal(wanted: state.wish, stays: source.orientation, reason: reason)
    }
  }

  /// Whether a picture was encoded that is laid as was asked last, or something else than `orientation` was asked.
  func hasSettled(_ orientation: Orientation) -> Bool {
    state.withLock { $0.wish != orientation || isDone(orientation) }
  }

  /// Notes that a frame of `size` was encoded.
  func noteEncoded(_ size: PictureSize) {
    encoded.store(Self.word(size), ordering: .relaxed)
  }

  /// Notes that the encoder does not take frames of `size`, and has the source go back to what it took before.
  func refuse(_ size: PictureSize, reason: any Failure) {
    state.withLock { state in
      let wanted = state.wish
      // Frames from before a wish that has changed meanwhile prove nothing about the present one.
      guard wanted.size(of: source.format.size) == size, state.good != wanted else { return }
      state.refused = (wanted, reason)
      state.wish = state.good
      source.orient(state.good)
    }
  }

  private func isDone(_ orientation: Orientation) -> Bool {
    source.turningFailure == nil && source.orientation == orientation
      && encoded.load(ordering: .relaxed) == Self.word(orientation.size(of: source.format.size))
  }

  private static func word(_ size: PictureSize) -> UInt64 { UInt64(size.width) << 32 | UInt64(size.height) }
}
