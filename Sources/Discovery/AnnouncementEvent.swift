/// Something of announcements that a person is told.
public enum AnnouncementEvent: Hashable, Sendable {
  /// The network knows of it now.
  case announced(name: String, ServiceType, port: UInt16)
  /// So it does, by another name, because another service has that one.
  case renamed(from: String, to: String, ServiceType, port: UInt16)
  /// Avahi refuses it.
  case refused(name: String, reason: String)
  /// Nothing is announced until something changes.
  case waiting(String)

  /// One line.
  public var description: String {
    switch self {
    case .announced(let name, let type, let port): "announced as '\(name)' (\(type.rawValue), port \(port))"
    case .renamed(let old, let new, let type, let port):
      "announced as '\(new)' (\(type.rawValue), port \(port)): another service on the network is called '\(old)'; "
        + "--announce-name chooses a name"
    case .refused(let name, let reason): "'\(name)' is not announced, Avahi refuses it: \(reason)"
    case .waiting(let reason): "nothing is announced now: \(reason)"
    }
  }

  /// Whether it is worth a warning.
  public var isWarning: Bool {
    if case .announced = self { return false }
    return true
  }
}
