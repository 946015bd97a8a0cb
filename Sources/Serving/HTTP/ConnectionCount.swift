import Synchronization

/// The number of open connections, in all and of each network.
final class ConnectionCount: Sendable {
  private let counts = Mutex<[[UInt8]: Int]>([:])

  /// Adds a connection; returns the numbers that include it.
  func add(_ network: [UInt8]) -> (all: Int, ofNetwork: Int) {
    counts.withLock { counts in
      counts[network, default: 0] += 1
      return (counts.values.reduce(0, +), counts[network] ?? 0)
    }
  }

  /// Removes a connection.
  func remove(_ network: [UInt8]) {
    counts.withLock { counts in
      counts[network, default: 1] -= 1
      if counts[network] == 0 { counts[network] = nil }
    }
  }
}
