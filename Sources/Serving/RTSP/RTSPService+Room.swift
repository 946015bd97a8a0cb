import NIOCore
import RTSP

/// Room for connections.
///
/// A connection with a login or a session is never closed for another. Connections with neither get at most half of the
/// room, and those of one address its share. If room is short, the least important connection is closed: one without a
/// request before one with requests, the oldest first, of the address that has most of them.
extension RTSPService {
  /// Makes room for a connection from `network`, by closing another if there is none; returns `false` if there can be
  /// none.
  func makeRoom(for network: [UInt8]?) -> Bool {
    let carriers = Set(table.sessions.values.compactMap(\.carrier))
    // Without connections that belong to a viewer, or to a client that may watch.
    let idle = connections.values.filter { connection in
      !carriers.contains(connection.number) && (authenticator == nil || connection.user == nil)
    }
    let own = idle.filter { $0.peer?.network == network }
    let established = connections.count - idle.count
    if connections.values.count(where: { $0.peer?.network == network }) >= configuration.connectionsPerAddress {
      // A client that fills its address's share costs no other address a connection.
      return closeLeast(of: own)
    }
    let room = min(configuration.connections - established, max(1, configuration.connections / 2))
    guard idle.count >= room else { return true }
    let shares = Dictionary(grouping: idle) { $0.peer?.network }
    return closeLeast(of: shares.values.max { $0.count < $1.count } ?? [])
  }

  /// Closes one of `idle`; returns `false` if there is none.
  private func closeLeast(of idle: [RTSPConnection]) -> Bool {
    let least = idle.min { ($0.hasAsked ? 1 : 0, $0.lastRequest) < ($1.hasAsked ? 1 : 0, $1.lastRequest) }
    guard let least else { return false }
    if !least.isOver {
      let fault = least.hasAsked ? "has no session" : "has sent no request"
      noteClosing(of: least, "there are too many connections, and this one \(fault)")
    }
    // At once: a peer that withholds its TLS `close_notify` would keep its place for seconds.
    least.closeAtOnce()
    // The end of the connection may not have been reported completely yet.
    connections[least.number] = nil
    return true
  }
}
