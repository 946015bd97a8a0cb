package import Media
import Platform

/// A failure of a camera that is present but delivers no usable picture.
package struct UnusableCamera: Failure {
  /// The duration in seconds.
  let seconds: Int
  /// The reason why its pictures were dropped; nil if none came.
  let cause: DropCause?

  /// Creates an error.
  package init(seconds: Int, cause: DropCause?) {
    (self.seconds, self.cause) = (seconds, cause)
  }

  /// One line for the user at the terminal.
  package var description: String {
    let what =
      switch cause {
      case nil: "no picture since it was started"
      case .corrupt: "only corrupt pictures"
      case .short: "only incomplete pictures"
      case .driverError: "only pictures that the driver marks as broken"
      default: "no picture that can be used"
      }
    return "\(what) for \(seconds) seconds: unplug the camera and plug it in again, or choose another --format"
  }

  /// The kind of the failure.
  var kind: FailureKind { .unavailable }
}

extension CameraState {
  /// Creates the state of a camera after `error`.
  init(after error: any Error) {
    self =
      switch error as? CaptureError {
      case .disconnected: .disconnected
      case .stalled: .stalled
      default: error is UnusableCamera ? .stalled : .failed
      }
  }
}
