/// The kind of a failure, for an exit code (`sysexits.h`) or an HTTP status.
public enum FailureKind: Sendable {
  /// The options are wrong or contradict each other.
  case usage
  /// The input's data are invalid.
  case data
  /// The input does not exist or cannot be read.
  case noInput
  /// A host name is unknown.
  case noHost
  /// A device, encoder or service is not available.
  case unavailable
  /// An impossible state has occurred: a defect.
  case software
  /// The system refused a request for a reason that is not in the input.
  case system
  /// An output file cannot be created.
  case cannotCreate
  /// A read or write failed midway.
  case inputOutput
  /// A later attempt may succeed: a device is busy.
  case temporary
  /// Permission denied.
  case noPermission
}

extension FailureKind {
  /// The exit code of `sysexits.h`.
  package var exitCode: Int32 {
    switch self {
    case .usage: 64
    case .data: 65
    case .noInput: 66
    case .noHost: 68
    case .unavailable: 69
    case .software: 70
    case .system: 71
    case .cannotCreate: 73
    case .inputOutput: 74
    case .temporary: 75
    case .noPermission: 77
    }
  }
}

/// An error that a person can act on: one line with the value, the limit and the remedy.
public protocol Failure: Error, CustomStringConvertible, Sendable {
  /// The kind of failure.
  var kind: FailureKind { get }
}
