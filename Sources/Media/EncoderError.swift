/// Why an encoder could not be made or could not encode.
public enum EncoderError: Failure {
  /// A value of the configuration is outside what is possible.
  case configuration(String)
  /// The frame is not of the size that the encoder was prepared for.
  case frameSize(PictureSize, expected: PictureSize)
  /// The frame's rows are closer together than its picture is wide: the shorter stride, and the least one, in bytes.
  case frameRows(Int, least: Int)
  /// A call came before the one that it needs.
  case order(call: String, needs: String)
  /// This machine, or this build, does not have the encoder; the reason with its mend.
  case unavailable(String)
  /// The device is there and may not be opened; the reason with its mend.
  case permission(String)
  /// The library refused to open.
  case open(library: String, code: Int)
  /// A call of the library failed, with the library's own code and its words for it.
  case call(library: String, function: String, code: Int, reason: String)
  /// The hardware does not read the frame's DMA-BUF: loaded once more, the frame is copied.
  case importRefused(library: String)
  /// The encoder does not, or no longer, turn frames by itself, and why: turned by the caller, the frame is taken.
  case notTurned(Orientation, reason: String)
  /// The library failed on a frame.
  case encode(library: String, code: Int)
  /// A call of the driver did not return in time.
  case hung(library: String, after: MediaTime)
  /// The library delivered something that is not the stream that it promised.
  case output(library: String, String)
  /// The encoder failed for good and nothing stands behind it.
  case lost(reason: String)
  /// The encoder was stopped before.
  case stopped

  /// One line for the person at the terminal.
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
    case .notTurned(let orientation, let reason): "a frame to be laid by \(orientation) is not taken: \(reason)"
    case .encode(let library, let code): "\(library) failed to encode a frame (code \(code))"
    case .hung(let library, let time): "\(library) did not answer for \((time.nanoseconds + 500_000) / 1_000_000) ms"
    case .output(let library, let reason): "\(library) delivered a broken stream: \(reason)"
    case .lost(let reason): "the encoder is lost and nothing stands behind it: \(reason)"
    case .stopped: "the encoder was stopped"
    }
  }

  /// What kind of failure it is.
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
