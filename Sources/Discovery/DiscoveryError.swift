public import Media
import SystemBus

/// Why the network cannot be asked, or told.
public enum DiscoveryError: Failure {
  /// There is no message bus to reach Avahi by; the reason.
  case noBus(String)
  /// Avahi does not run.
  case notRunning
  /// Avahi says that it cannot work, or answers nothing of use.
  case avahi(String)

  init(_ error: BusError) {
    switch error {
    case .connection(_, let reason): self = .noBus(reason)
    case .call where error.isWithoutOwner: self = .notRunning
    case .call(_, _, let reason): self = .avahi(reason)
    case .unreadable: self = .avahi("\(error)")
    }
  }

  /// What starts Avahi.
  public static let start = "systemctl start avahi-daemon"
  /// What installs it, with the bus, and starts both.
  public static let install = "apt install avahi-daemon"

  /// What is wrong, without its mend.
  public var reason: String {
    switch self {
    case .noBus(let reason): "the message bus (D-Bus), by which Avahi is reached, is not there (\(reason))"
    case .notRunning: "Avahi does not run"
    case .avahi(let reason): "Avahi does not work: \(reason)"
    }
  }

  /// What is to be done.
  var mend: String {
    switch self {
    // A system without a bus has no Avahi either.
    case .noBus: "sudo \(Self.install), or where it is installed sudo systemctl start dbus avahi-daemon"
    case .notRunning: "sudo \(Self.start)"
    case .avahi: "sudo systemctl restart avahi-daemon"
    }
  }

  /// One line for the person at the terminal.
  public var description: String {
    if case .notRunning = self { return "\(reason) (package avahi-daemon): \(mend)" }
    return "\(reason); \(mend)"
  }

  /// What kind of failure it is.
  public var kind: FailureKind { .unavailable }
}
