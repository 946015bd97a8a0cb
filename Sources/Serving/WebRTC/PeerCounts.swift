/// The counts of what came to the browsers' port and was refused, or was for a browser and found no room.
package struct PeerCounts: Hashable, Sendable {
  /// The cause of a refusal.
  package enum Cause: String, CaseIterable, Hashable, Sendable {
    /// A connectivity check for no session, without its password, or malformed.
    case check
    /// Another datagram of nobody known.
    case datagram
    /// A connection beyond the limits.
    case connectionLimit = "connection-limit"
    /// A connection without a check of a session in time.
    case silentConnection = "silent-connection"
    /// A connection on which something came that is no datagram of a session.
    case connectionData = "connection-data"
    /// A small datagram for a browser whose connection had no room.
    case noRoom = "no-room"
  }

  private var counts: [Cause: UInt64] = [:]

  /// Creates counts of 0.
  package init() {}

  /// The count of a cause.
  package subscript(cause: Cause) -> UInt64 {
    get { counts[cause] ?? 0 }
    set { counts[cause] = newValue }
  }

  /// Returns the sums of both.
  package static func + (left: PeerCounts, right: PeerCounts) -> PeerCounts {
    var sum = left
    for cause in Cause.allCases { sum[cause] += right[cause] }
    return sum
  }
}
