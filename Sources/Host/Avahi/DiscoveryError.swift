package import Platform

/// An error from service discovery or announcement.
package enum DiscoveryError: Failure {
  /// No message bus to reach Avahi by; the reason.
  case noBus(String)
  /// Avahi does not run.
  case notRunning
  /// Avahi reports that it cannot work, or gives no usable answer.
  case avahi(String)

  init(_ error: BusError) {
    switch error {
    case .connection(_, let reason): self = .noBus(reason)
    case .call where error.isWithoutOwner: self = .notRunning
    case .call(_, _, let reason): self = .avahi(reason)
    case .unreadable: self = .avahi("\(error)")
    }
  }

  /// The command that starts Avahi.
  package static let start = "systemctl start avahi-daemon"
  /// The command that installs Avahi and the bus, and starts both.
  package static let install = "apt install avahi-daemon"

  /// The problem, without its remedy.
  package var reason: String {
    switch self {
    case .noBus(let reason): "the message bus (D-Bus), which Avahi needs, does not run (\(reason))"
    case .notRunning: "Avahi does not run"
    case .avahi(let reason): "Avahi does not work: \(reason)"
    }
  }

  /// The remedy.
  var mend: String {
    switch self {
    // A system without a bus has no Avahi either.
    case .noBus: "sudo \(Self.install), or if it is installed: sudo systemctl start dbus avahi-daemon"
    case .notRunning: "sudo \(Self.start)"
    case .avahi: "sudo systemctl restart avahi-daemon"
    }
  }

  /// A one-line message for the terminal.
  package var description: String {
    if case .notRunning = self { return "\(reason) (package avahi-daemon): \(mend)" }
    return "\(reason); \(mend)"
  }

  /// The kind of failure.
  package var kind: FailureKind { .unavailable }
}
