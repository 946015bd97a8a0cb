import Glibc
import Platform
import Streaming
import Synchronization
import WebRTC

/// The TCP connections of peers whose network lets no UDP through (RFC 6544), and their limits.
///
/// A connection of which nothing is known costs a descriptor and at most one incomplete datagram. It ends after
/// ``Limits/proof`` without a check that proves a session's password, and at once after anything else.
final class PeerConnections: @unchecked Sendable {
  // Sendable: the server's thread alone uses what is not under a mutex.

  /// The limits of connections.
  struct Limits: Hashable, Sendable {
    /// The most connections.
    var connections = 256
    /// The most connections of one client's network.
    var perNetwork = 32
    /// The time that a connection has for its first proved check.
    var proof = Duration.seconds(10)
  }

  /// The end of a connection that reads.
  private struct Reader {
    let connection: PeerConnection
    let path: PeerPath
    let network: [UInt8]
    let opened: Instant
    var stream = FramedStream()
    var isProved = false
  }

  private let limits: Limits
  private let listeners: [PeerListener]
  private let input: DescriptorSet
  private let output: DescriptorSet
  private var readers: [UInt64: Reader] = [:]
  /// The time until which no connection is accepted, because the system has no room for another one.
  private var acceptRests: Instant?
  private let shared = Mutex(Shared())
  private let wake: @Sendable () -> Void

  private struct Shared {
    var connections: [UInt64: PeerConnection] = [:]
    var counts = PeerCounts()
    /// The connections on which bytes have begun to wait.
    var waiting: Set<UInt64> = []
  }

  /// The connections that are read at a time, and the most bytes of each.
  private static let (readAtATime, bytesAtATime) = (16, 4096)
  private static let acceptRest = Duration.milliseconds(200)

  /// Serves the connections of `listeners`.
  ///
  /// - Parameter wake: wakes the server's thread. Any thread calls it.
  /// - Throws: ``SystemFailure`` where the process has no descriptor left.
  init(_ listeners: [PeerListener], limits: Limits, wake: @escaping @Sendable () -> Void) throws(SystemFailure) {
    self.listeners = listeners
    self.limits = limits
    self.wake = wake
    input = try DescriptorSet(.input, capacity: Self.readAtATime)
    output = try DescriptorSet(.output, capacity: Self.readAtATime)
  }

  deinit { for reader in readers.values { reader.connection.close() } }

  /// The counts of connections. Any thread.
  var counts: PeerCounts {
    shared.withLock { shared in
      var counts = shared.counts
      for connection in shared.connections.values { counts[.noRoom] += connection.dropped }
      return counts
    }
  }

  /// Returns the open connection of a path; nil if it is closed. Any thread.
  func connection(_ number: UInt64) -> PeerConnection? { shared.withLock { $0.connections[number] } }

  /// `true` if no connection is open.
  var isEmpty: Bool { readers.isEmpty }

  /// The time at which accepting goes on; nil while it does.
  var deadline: Instant? { acceptRests }

  /// The descriptors to poll for `POLLIN`.
  var descriptors: [CInt] {
    (acceptRests == nil ? listeners.map(\.fileDescriptor) : []) + [input.fileDescriptor, output.fileDescriptor]
  }

  /// Notes that bytes wait on a connection. Any thread.
  private func noteWaiting(_ number: UInt64) {
    shared.withLock { _ = $0.waiting.insert(number) }
    wake()
  }

  // MARK: The server's thread

  /// Accepts the connections that wait.
  func accept(at now: Instant) {
    if let rests = acceptRests {
      guard now >= rests else { return }
      acceptRests = nil
    }
    for listener in listeners {
      for _ in 0..<Self.readAtATime {
        let accepted = listener.accept { [weak self] in self?.noteWaiting($0) }
        guard case .connection(let connection) = accepted else {
          if case .noRoom = accepted { acceptRests = now + Self.acceptRest }
          break
        }
        admit(connection, at: now)
      }
    }
  }

  private func admit(_ connection: PeerConnection, at now: Instant) {
    let address = connection.peer.address
    let network = PeerAddress(address.bytes)?.network ?? []
    guard readers.count < limits.connections,
      readers.values.count(where: { $0.network == network }) < limits.perNetwork,
      (try? input.insert(connection.fileDescriptor, token: connection.number)) != nil
    else {
      connection.close()
      return shared.withLock { $0.counts[.connectionLimit] += 1 }
    }
    let path = PeerPath(
      address: address, port: connection.peer.port, local: connection.local, carrier: .connection(connection.number))
    readers[connection.number] = Reader(connection: connection, path: path, network: network, opened: now)
    shared.withLock { $0.connections[connection.number] = connection }
  }

  /// Reads what has come.
  ///
  /// - Parameters:
  ///   - memory: room for a piece.
  ///   - receive: hands a datagram to the table.
  ///   - forget: is told of a path that is closed.
  func read(
    into memory: UnsafeMutableRawBufferPointer,
    receive: (UnsafeRawBufferPointer, PeerPath) -> PeerTable.Reception, forget: (PeerPath) -> Void
  ) {
    let piece = UnsafeMutableRawBufferPointer(rebasing: memory.prefix(Self.bytesAtATime))
    var ready: [UInt64] = []
    _ = input.takeReady { ready.append($0) }
    for number in ready {
      guard var reader = readers[number] else { continue }
      guard let count = reader.connection.receive(into: piece) else {
        close(number, forget)
        continue
      }
      let path = reader.path
      var (isRefused, isProved) = (false, reader.isProved)
      do throws(FramedStream.LengthError) {
        try reader.stream.take(UnsafeRawBufferPointer(rebasing: piece[..<count])) { datagram in
          // An empty one keeps the connection open in a NAT.
          guard !datagram.isEmpty else { return true }
          let reception = receive(datagram, path)
          if reception == .proved { isProved = true }
          isRefused = reception == .refused
          return !isRefused
        }
      } catch { isRefused = true }
      reader.isProved = isProved
      readers[number] = reader
      guard isRefused else { continue }
      shared.withLock { $0.counts[.connectionData] += 1 }
      close(number, forget)
    }
  }

  /// Sends what waits, as far as there is room by now.
  func flush() {
    let waiting = shared.withLock { shared in
      defer { shared.waiting = [] }
      return shared.waiting
    }
    for number in waiting {
      guard let connection = readers[number]?.connection, !connection.flush() else { continue }
      // Watched already if bytes have waited before.
      try? output.insert(connection.fileDescriptor, token: number)
    }
    _ = output.takeReady { number in
      guard let connection = readers[number]?.connection, connection.flush() else { return }
      output.remove(connection.fileDescriptor)
    }
  }

  /// Closes the connections that had their time, and those of sessions that have ended.
  func expire(at now: Instant, knows: (PeerPath) -> Bool, forget: (PeerPath) -> Void) {
    for (number, reader) in readers {
      if reader.isProved ? !knows(reader.path) || reader.connection.isClosed : now - reader.opened > limits.proof {
        if !reader.isProved { shared.withLock { $0.counts[.silentConnection] += 1 } }
        close(number, forget)
      }
    }
  }

  /// Closes all connections.
  func closeAll(_ forget: (PeerPath) -> Void) { for number in Array(readers.keys) { close(number, forget) } }

  private func close(_ number: UInt64, _ forget: (PeerPath) -> Void) {
    guard let reader = readers.removeValue(forKey: number) else { return }
    input.remove(reader.connection.fileDescriptor)
    output.remove(reader.connection.fileDescriptor)
    shared.withLock {
      $0.connections[number] = nil
      $0.waiting.remove(number)
      $0.counts[.noRoom] += reader.connection.dropped
    }
    reader.connection.close()
    forget(reader.path)
  }
}
