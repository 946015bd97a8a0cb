public import Media

/// Why the message bus, or a service on it, is of no use.
public enum BusError: Failure {
  /// There is no connection, or none any more: what was done (the bus, where it could not be reached), and the system's words.
  case connection(String, reason: String)
  /// A call was refused or not answered: its name, D-Bus's name for the error (empty where it has none), and the reason.
  case call(String, name: String, reason: String)
  /// A message is not what its interface says.
  case unreadable(String)

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .connection(let what, let reason): "the message bus (D-Bus), \(what): \(reason)"
    case .call(let call, _, let reason): "\(call): \(reason)"
    case .unreadable(let what): "the message bus (D-Bus): \(what) is not as it should be"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind { .unavailable }

  /// Whether nobody has the name that was called.
  public var isWithoutOwner: Bool {
    guard case .call(_, let name, _) = self else { return false }
    return ["org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner"].contains(name)
  }
}
