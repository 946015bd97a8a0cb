/// An event of the announcements, for people.
package enum AnnouncementEvent: Hashable, Sendable {
  /// The service is now announced on the network.
  case announced(name: String, ServiceType, port: UInt16)
  /// The service is announced by another name, because another service has the requested one.
  case renamed(from: String, to: String, ServiceType, port: UInt16)
  /// Avahi refuses the announcement.
  case refused(name: String, reason: String)
  /// Nothing is announced until the condition changes.
  case waiting(String)

  /// A one-line message for the terminal.
  package var description: String {
    switch self {
    case .announced(let name, let type, let port): "announced as '\(name)' (\(type.rawValue), port \(port))"
    case .renamed(let old, let new, let type, let port):
      "announced as '\(new)' (\(type.rawValue), port \(port)): another service on the network has the name "
        + "'\(old)'; choose another: --announce-name"
    case .refused(let name, let reason): "'\(name)' is not announced, Avahi refuses it: \(reason)"
    case .waiting(let reason): "nothing is announced now: \(reason)"
    }
  }

  /// `true` if the event deserves a warning.
  package var isWarning: Bool {
    if case .announced = self { return false }
    return true
  }
}
