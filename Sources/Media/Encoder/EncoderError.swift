public import Platform

/// An error from creating or using an encoder.
public enum EncoderError: Failure {
  /// A value of the configuration is out of range.
  case configuration(String)
  /// The frame does not have the size that the encoder was prepared for.
  case frameSize(PictureSize, expected: PictureSize)
  /// The frame's stride is smaller than its picture is wide: the stride found and the least stride, in bytes.
  case frameRows(Int, least: Int)
  /// A call came before another call that it needs.
  case order(call: String, needs: String)
  /// This machine or this build does not have the encoder: the reason and the remedy.
  case unavailable(String)
  /// The device exists but may not be opened: the reason and the remedy.
  case permission(String)
  /// The library failed to open the encoder.
  case open(library: String, code: Int)
  /// A library call failed, with the library's own code and message.
  case call(library: String, function: String, code: Int, reason: String)
  /// The hardware does not read the frame's DMA-BUF. If the caller loads the frame again, the encoder copies it.
  case importRefused(library: String)
  /// The encoder does not, or no longer, rotate frames, with the reason. It accepts the frame once the caller has
  /// rotated it.
  case notTurned(Orientation, reason: String)
  /// The library failed to encode a frame.
  case encode(library: String, code: Int)
  /// A driver call did not return in time.
  case hung(library: String, after: Duration)
  /// The library's output is not the promised stream.
  case output(library: String, String)
  /// The encoder failed for good and has no fallback.
  case lost(reason: String)
  /// The encoder has already been stopped.
  case stopped

  /// A one-line message for the terminal.
  public var description: String {
    switch self {
    case .configuration(let reason), .unavailable(let reason), .permission(let reason): reason
    case .frameSize(let size, let expected): "a frame of \(size) for an encoder of \(expected)"
    case .frameRows(let stride, let least): "a frame with rows of \(stride) bytes: its picture needs at least \(least)"
    case .order(let call, let needed): "\(call) was called out of order: call \(needed) before it"
    case .open(let library, let code): "\(library) does not open with these settings (code \(code))"
    case .call(let library, let function, let code, let reason):
      "\(library): \(function) failed: \(reason) (code \(code))"
    case .importRefused(let library): "\(library) does not read the camera's own memory: load the frame once more"
    case .notTurned(let orientation, let reason): "a frame to rotate by \(orientation) is refused: \(reason)"
    case .encode(let library, let code): "\(library) failed to encode a frame (code \(code))"
    case .hung(let library, let time): "\(library) did not answer for \((time.nanoseconds + 500_000) / 1_000_000) ms"
    case .output(let library, let reason): "\(library) delivered a broken stream: \(reason)"
    case .lost(let reason): "the encoder has failed and there is no fallback: \(reason)"
    case .stopped: "the encoder was stopped"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind {
    switch self {
    case .configuration: .usage
    case .open, .unavailable, .hung, .lost: .unavailable
    case .permission: .noPermission
    case .call: .unavailable
    case .frameSize, .frameRows, .order, .importRefused, .notTurned, .encode, .output, .stopped: .software
    }
  }
}
