import CSystemd
import Glibc
public import Media

/// What systemd is told of this program (sd_notify(3)).
public struct ServiceNotifier: Sendable {
  /// How long systemd waits for a sign of life before it ends this program; nil where it does not.
  public let watchdogPeriod: MediaTime?

  /// Whether somebody waits to be told: the program was started as a service of `Type=notify`.
  public static var isService: Bool { getenv("NOTIFY_SOCKET") != nil }

  /// Nil where nobody waits to be told.
  public init?() {
    guard Self.isService else { return nil }
    var microseconds: UInt64 = 0
    // It looks whether the variable is meant for this process, too.
    let isWatched = sd_watchdog_enabled(0, &microseconds) > 0
    watchdogPeriod =
      isWatched && microseconds <= UInt64(Int64.max / 1000)
      ? MediaTime(nanoseconds: Int64(microseconds) * 1000) : nil
  }

  /// The service does what it is there for.
  public func ready() { send("READY=1") }

  /// The service lives; at least every third of ``watchdogPeriod``.
  public func keepAlive() { send("WATCHDOG=1") }

  /// The service ends.
  public func stopping() { send("STOPPING=1") }

  /// How the service is, in a line for `systemctl status`.
  public func status(_ text: String) {
    // Each line is an assignment of its own: a name with a line feed in it must not make one.
    send("STATUS=" + String(text.map { $0.isNewline || $0 == "\0" ? " " : $0 }))
  }

  private func send(_ assignments: String) {
    // Where systemd does not listen, there is nobody to complain to.
    _ = sd_notify(0, assignments)
  }
}
