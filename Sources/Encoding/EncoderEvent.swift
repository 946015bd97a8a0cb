public import Media
import Synchronization

/// What happened to the encoder of a running stream, one line for the person at the terminal.
public enum EncoderEvent: Sendable, CustomStringConvertible {
  /// The hardware encoder failed and another goes on; after `retry` it is tried again.
  case failedOver(to: String, reason: EncoderError, retry: MediaTime)
  /// The hardware encoder did not answer and another goes on. So many threads hang in the driver that it is not tried again
  /// before one of them comes back.
  case abandoned(to: String, reason: EncoderError)
  /// The hardware encoder failed, and what was to stand behind it cannot be had.
  case failedTwice(reason: EncoderError, fallback: EncoderError)
  /// It was tried again in vain; the next attempt is after `retry`.
  case retryFailed(reason: EncoderError, retry: MediaTime)
  /// The hardware encoder is back.
  case recovered(to: String)
  /// The picture cannot turn to `size` at once: the encoder for it cannot be had.
  case standbyFailed(size: PictureSize, reason: EncoderError)
  /// The hardware does not encode pictures of `size`; another encoder does. It is tried again after `retry`, or where
  /// that is nil not while the program runs.
  case standbyWithoutHardware(size: PictureSize, reason: EncoderError, retry: MediaTime?)
  /// The driver's video processing failed, and pictures are turned on the CPU from now on.
  case turningFailed(reason: String)
  /// The picture turned, and what the encoder of the former orientation still held back is lost.
  case flushFailed(reason: EncoderError)

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .failedOver(let name, let reason, let retry):
      "\(reason); \(name) goes on, and the hardware is tried again in \(retry.wholeSeconds) s"
    case .abandoned(let name, let reason):
      "\(reason); \(name) goes on, and the hardware is not tried again: \(DriverHealth.stuckLimit) threads hang in its driver"
    case .failedTwice(let reason, let fallback): "\(reason), and nothing goes on in its place: \(fallback)"
    case .retryFailed(let reason, let retry):
      "the hardware encoder still fails: \(reason); tried again in \(retry.wholeSeconds) s"
    case .recovered(let name): "\(name) encodes again"
    case .standbyFailed(let size, let reason):
      "no encoder stands by for \(size): \(reason); it is tried again when the picture turns"
    case .standbyWithoutHardware(let size, let reason, let retry):
      "\(size) is encoded in software: \(reason)"
        + (retry.map { "; the hardware is tried again in \($0.wholeSeconds) s" } ?? "")
    case .turningFailed(let reason): "pictures are turned on the CPU from now on: \(reason)"
    case .flushFailed(let reason): "the last pictures before the turn are lost: \(reason)"
    }
  }
}

/// The events of one encoder, from the threads on which they happen to whoever shows them.
public final class EncoderEvents: Sendable {
  private let waiting = Mutex<[EncoderEvent]>([])

  /// The most events that wait; what happens meanwhile is in the counters alone.
  public static let limit = 64

  /// A list without events.
  public init() {}

  /// Takes what happened since the last call, oldest first.
  public func take() -> [EncoderEvent] {
    waiting.withLock { waiting in
      defer { waiting.removeAll() }
      return waiting
    }
  }

  func add(_ event: EncoderEvent) {
    waiting.withLock { if $0.count < Self.limit { $0.append(event) } }
  }
}

extension MediaTime {
  fileprivate var wholeSeconds: Int64 { nanoseconds / 1_000_000_000 }
}
