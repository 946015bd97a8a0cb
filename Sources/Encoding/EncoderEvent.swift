public import Media
public import Platform

/// A change in the encoder of a running stream, described in one line for the terminal.
public enum EncoderEvent: Sendable, CustomStringConvertible {
  /// The hardware encoder failed and another took over; the hardware is tried again after `retry`.
  case failedOver(to: String, reason: EncoderError, retry: Duration)
  /// The hardware encoder did not answer and another took over. Too many threads hang in the driver, so it is not tried
  /// again before one of them returns.
  case abandoned(to: String, reason: EncoderError)
  /// The hardware encoder failed, and its fallback could not be opened.
  case failedTwice(reason: EncoderError, fallback: EncoderError)
  /// Another attempt to open the hardware failed; the next one is after `retry`.
  case retryFailed(reason: EncoderError, retry: Duration)
  /// The hardware encoder works again.
  case recovered(to: String)
  /// The encoder for pictures of `size` could not be opened, so the picture cannot rotate to that size at once.
  case standbyFailed(size: PictureSize, reason: EncoderError)
  /// The hardware does not encode pictures of `size`; another encoder does. The hardware is tried again after `retry`.
  /// If `retry` is nil, it is not tried again while the program runs.
  case standbyWithoutHardware(size: PictureSize, reason: EncoderError, retry: Duration?)
  /// The driver's video processing failed; the CPU rotates the pictures instead.
  case turningFailed(reason: String)
  /// The picture was rotated, and the pictures that the former encoder held back are lost.
  case flushFailed(reason: EncoderError)

  /// A description of one line for the terminal.
  public var description: String {
    switch self {
    case .failedOver(let name, let reason, let retry):
      "\(reason); \(name) takes over, and nightjar tries the hardware again in \(retry.wholeSeconds) s"
    case .abandoned(let name, let reason):
      "\(reason); \(name) takes over for good: \(DriverHealth.stuckLimit) threads hang in the hardware's driver"
    case .failedTwice(let reason, let fallback): "\(reason), and no fallback works: \(fallback)"
    case .retryFailed(let reason, let retry):
      "the hardware encoder still fails: \(reason); nightjar tries again in \(retry.wholeSeconds) s"
    case .recovered(let name): "\(name) encodes again"
    case .standbyFailed(let size, let reason):
      "no standby encoder for \(size): \(reason); nightjar tries again at the next rotation"
    case .standbyWithoutHardware(let size, let reason, let retry):
      "\(size) is encoded in software: \(reason)"
        + (retry.map { "; nightjar tries the hardware again in \($0.wholeSeconds) s" } ?? "")
    case .turningFailed(let reason): "the CPU rotates pictures from now on: \(reason)"
    case .flushFailed(let reason): "the last pictures before the rotation are lost: \(reason)"
    }
  }
}

/// The events of one encoder. Events beyond the limit appear in the counters only.
public typealias EncoderEvents = EventQueue<EncoderEvent>

extension Duration {
  fileprivate var wholeSeconds: Int64 { nanoseconds / 1_000_000_000 }
}
