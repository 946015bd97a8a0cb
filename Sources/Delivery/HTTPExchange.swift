import Platform
import TLS

/// One request to another host, and the beginning of its answer. The other side is not trusted: the address that is checked is
/// the one that is connected to, no redirect is followed, and every call ends in time.
struct HTTPExchange: Sendable {
  let target: WebhookTarget
  /// The authorities that are trusted; nil for a connection without TLS.
  let context: ClientContext?
  /// `true` also connects to addresses that no host of the internet has.
  let allowsPrivate: Bool
  /// The remedy for a private address, in words that follow "its address … is private".
  let privateRemedy: String

  /// The most addresses of a host that one attempt tries.
  private static let addressLimit = 4
  /// The longest head of an answer, and the most that is read behind it, in bytes.
  private static let (headLimit, restLimit) = (16 << 10, 64 << 10)

  /// Sends a request, and returns the answer's status, and what its head says besides where `readsHead` is set. Blocks until
  /// `deadline` at most.
  ///
  /// - Throws: ``ExchangeError``.
  func answer(
    to request: [UInt8], readsHead: Bool = false, by deadline: Instant, stop: CInt
  ) throws(ExchangeError) -> HTTPStatusReader {
    let connection = try connect(by: deadline, stop: stop)
    let answer = HTTPStatusReader(limit: Self.headLimit, readsHead: readsHead)
    if let context { return try Self.exchange(request, answer, connection, context, target.host) }
    return try Self.exchange(request, answer, connection)
  }

  /// Connects to the first address that is allowed and answers.
  private func connect(by deadline: Instant, stop: CInt) throws(ExchangeError) -> TimedConnection {
    let addresses = try ResolvedAddress.all(of: target.host, port: target.port, by: deadline)
    let allowed = addresses.filter { allowsPrivate || $0.address.isPublic }
    guard let first = addresses.first else { throw .system("its name has no address") }
    guard let best = allowed.first else {
      throw .system("its address \(first.address.text) is private\(privateRemedy)")
    }
    // One family after the other: where IPv6 leads nowhere, IPv4 has its turn.
    let others = allowed.filter { $0.isIPv6 != best.isIPv6 }
    let same = allowed.filter { $0.isIPv6 == best.isIPv6 }
    let tried = (0..<max(same.count, others.count)).flatMap {
      same.dropFirst($0).prefix(1) + others.dropFirst($0).prefix(1)
    }
    .prefix(Self.addressLimit)
    var failure = ExchangeError.time("it does not take the connection")
    for (index, address) in tried.enumerated() {
      // A share of what is left for each, and one for the exchange.
      let share = Duration(nanoseconds: (deadline - .now()).nanoseconds / Int64(tried.count - index + 1))
      do throws(ExchangeError) {
        return try TimedConnection(address, limit: .now() + share, deadline: deadline, stop: stop)
      } catch .stopped {
        throw .stopped
      } catch {
        failure = error
      }
    }
    throw failure
  }

  private static func exchange(
    _ request: [UInt8], _ empty: HTTPStatusReader, _ connection: borrowing TimedConnection
  ) throws(ExchangeError) -> HTTPStatusReader {
    try connection.send(request)
    var answer = empty
    while !answer.isComplete, let bytes = try next(connection, after: answer) { try answer.take(bytes) }
    finish(connection)
    return answer
  }

  private static func exchange(
    _ request: [UInt8], _ empty: HTTPStatusReader, _ connection: borrowing TimedConnection, _ context: ClientContext,
    _ host: String
  ) throws(ExchangeError) -> HTTPStatusReader {
    let outgoing = TLSOutput()
    do {
      let tls = try TLSConnection(context, host: host) { outgoing.bytes += $0 }
      try tls.begin()
      var answer = empty
      var isSent = false
      while !answer.isComplete {
        if tls.state == .established, !isSent {
          try request.withUnsafeBytes { try tls.write($0) }
          isSent = true
        }
        try connection.send(outgoing.take())
        // The end of TLS says as much as that of the connection.
        guard let bytes = try next(connection, after: answer, hasEnded: tls.isInputClosed) else { break }
        var plain: [UInt8] = []
        try bytes.withUnsafeBytes { try tls.receive($0) { plain += $0 } }
        try answer.take(plain)
      }
      tls.closeOutput()
      try connection.send(outgoing.take())
      finish(connection)
      return answer
    } catch let error as ExchangeError {
      throw error
    } catch {
      throw .system("\(error)")
    }
  }

  /// Returns the next bytes; nil for an end, or for no more in time, where the answer has a status already.
  ///
  /// - Throws: ``ExchangeError``.
  private static func next(
    _ connection: borrowing TimedConnection, after answer: HTTPStatusReader, hasEnded: Bool = false
  ) throws(ExchangeError) -> [UInt8]? {
    var bytes: [UInt8] = []
    do throws(ExchangeError) {
      if !hasEnded { bytes = try connection.receive() }
    } catch .time(let reason) {
      guard answer.status != nil else { throw .time(reason) }
    }
    if !bytes.isEmpty { return bytes }
    guard answer.status != nil else { throw .system("it ends the connection without an answer") }
    return nil
  }

  /// Reads on to the end for a moment: a connection that is closed before would make a reset out of the other side's writing.
  private static func finish(_ connection: borrowing TimedConnection) {
    let end = Instant.now() + .seconds(1)
    var count = 0
    while count < restLimit, let bytes = try? connection.receive(until: end), !bytes.isEmpty { count += bytes.count }
  }
}

/// The bytes that TLS wants to send.
private final class TLSOutput {
  var bytes: [UInt8] = []

  func take() -> [UInt8] {
    defer { bytes.removeAll() }
    return bytes
  }
}
