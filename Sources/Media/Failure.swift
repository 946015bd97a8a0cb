/// What kind of failure it is, for an exit code (`sysexits.h`) or an HTTP status.
public enum FailureKind: Sendable {
  /// The options are wrong or contradict each other.
  case usage
  /// The input's data are broken.
  case data
  /// The input does not exist or cannot be read.
  case noInput
  /// A host name is unknown.
  case noHost
  /// A device, encoder or service is not there.
  case unavailable
  /// Something that cannot happen has happened: a defect.
  case software
  /// The system refused something that has nothing to do with the input.
  case system
  /// An output file cannot be made.
  case cannotCreate
  /// Reading or writing failed on the way.
  case inputOutput
  /// It may work later: a device is busy.
  case temporary
  /// Permission denied.
  case noPermission
}

/// An error that a person can act on: one line with the value, the limit and the mend.
public protocol Failure: Error, CustomStringConvertible, Sendable {
  /// What kind of failure it is.
  var kind: FailureKind { get }
}
