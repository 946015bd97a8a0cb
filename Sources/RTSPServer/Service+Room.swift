import Credentials
import Media
import NIOCore
import RTSP

/// Room for connections. One that has logged in, or has a session, is never closed for another; those that have neither get
/// half of the room at most, and of an address its share. Where that is short the least of them goes: one that has not asked
/// anything before one that has, the oldest first, of the address that has most of them.
extension Service {
  /// Makes room for a connection from `network`, by closing another where there is none; false where none can be had.
  func makeRoom(for network: [UInt8]?) -> Bool {
    let carriers = Set(table.sessions.values.map(\.connection))
    // Not those that have shown that somebody watches, or may.
    let idle = connections.values.filter { connection in
      !carriers.contains(connection.number) && (authenticator == nil || connection.user == nil)
    }
    let own = idle.filter { $0.peer?.network == network }
    let established = connections.count - idle.count
    if connections.values.count(where: { $0.peer?.network == network }) >= configuration.connectionsPerAddress {
      // Whoever fills an address's share is nobody else's loss.
      return closeLeast(of: own)
    }
    let room = min(configuration.connections - established, max(1, configuration.connections / 2))
    guard idle.count >= room else { return true }
    let shares = Dictionary(grouping: idle) { $0.peer?.network }
    return closeLeast(of: shares.values.max { $0.count < $1.count } ?? [])
  }

  /// Closes one of `idle`; false where there is none.
  private func closeLeast(of idle: [Connection]) -> Bool {
    let least = idle.min { ($0.hasAsked ? 1 : 0, $0.lastRequest) < ($1.hasAsked ? 1 : 0, $1.lastRequest) }
    guard let least else { return false }
    noteClosing(of: least, "others need its room, and it has \(least.hasAsked ? "no session" : "not asked anything")")
    // At once: a peer that keeps its last word of TLS back would keep its place for seconds.
    least.closeAtOnce()
    // Not all of its end may have come yet.
    connections[least.number] = nil
    return true
  }
}
