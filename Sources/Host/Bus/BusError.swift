package import Platform

/// An error of the message bus or of a service on it.
package enum BusError: Failure {
  /// The connection failed or ended: the failed operation (the bus, where it could not be reached), and the system's
  /// message.
  case connection(String, reason: String)
  /// A call was refused or not answered: its name, D-Bus's error name (empty where it has none), and the reason.
  case call(String, name: String, reason: String)
  /// A message does not match its interface.
  case unreadable(String)

  /// A one-line message for the terminal.
  package var description: String {
    switch self {
    case .connection(let what, let reason): "the message bus (D-Bus), \(what): \(reason)"
    case .call(let call, _, let reason): "\(call): \(reason)"
    case .unreadable(let what): "the message bus (D-Bus): \(what) is invalid"
    }
  }

  /// The kind of failure.
  package var kind: FailureKind { .unavailable }

  /// `true` if the called name has no owner.
  package var isWithoutOwner: Bool {
    guard case .call(_, let name, _) = self else { return false }
    return ["org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner"].contains(name)
  }
}
