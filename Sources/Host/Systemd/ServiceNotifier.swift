import CSystemd
import Glibc
package import Platform

/// The notifications of this program to systemd (sd_notify(3)).
package struct ServiceNotifier: Sendable {
  /// The time without a keep-alive after which systemd ends the program; nil where systemd does not watch it.
  package let watchdogPeriod: Duration?

  /// `true` if systemd expects notifications: the program was started as a service of `Type=notify`.
  package static var isService: Bool { getenv("NOTIFY_SOCKET") != nil }

  /// Creates a notifier; nil where systemd expects no notifications.
  package init?() {
    guard Self.isService else { return nil }
    var microseconds: UInt64 = 0
    // The function also checks that the variable is meant for this process.
    let isWatched = sd_watchdog_enabled(0, &microseconds) > 0
    watchdogPeriod =
      isWatched && microseconds <= UInt64(Int64.max / 1000)
      ? Duration(nanoseconds: Int64(microseconds) * 1000) : nil
  }

  /// Notifies systemd that the service is ready.
  package func ready() { send("READY=1") }

  /// Notifies systemd that the service is alive; must be called at least every third of ``watchdogPeriod``.
  package func keepAlive() { send("WATCHDOG=1") }

  /// Notifies systemd that the service is stopping.
  package func stopping() { send("STOPPING=1") }

  /// Sets the service's status line for `systemctl status`.
  package func status(_ text: String) {
    // Each line is a separate assignment: a line feed in a name must not create one.
    send("STATUS=" + String(text.map { $0.isNewline || $0 == "\0" ? " " : $0 }))
  }

  private func send(_ assignments: String) {
    // An error is ignored: without systemd there is no receiver for it.
    _ = sd_notify(0, assignments)
  }
}
