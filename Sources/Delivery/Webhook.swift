package import Alerts
import Glibc
package import Platform
package import TLS

/// A webhook: each event is a request `POST` to a URL, with the event's JSON as its body.
///
/// The other side is not trusted. nightjar connects to an address that it has checked, follows no redirect, reads of the
/// answer its first line and at most 64 KiB to be polite, and gives up after ten seconds.
package struct Webhook: EventOutlet {
  private let target: WebhookTarget
  private let key: WebhookKey?
  private let allowsPrivate: Bool
  private let context: ClientContext?
  private let patience: Duration
  /// The value of `User-Agent`.
  private let agent: String

  /// The time that an exchange may take, from the name of the host to the answer.
  package static let patience = Duration.seconds(10)
  /// The most addresses of a host that one attempt tries.
  private static let addressLimit = 4
  /// The longest first lines of an answer, and the most that is read behind them, in bytes.
  private static let (lineLimit, restLimit) = (16 << 10, 64 << 10)

  /// Creates a webhook.
  ///
  /// - Parameters:
  ///   - key: signs the requests; nil leaves them without a signature.
  ///   - allowsPrivate: `true` also connects to addresses that no host of the internet has.
  /// - Throws: ``OpenSSLError``.
  package init(
    _ target: WebhookTarget, key: WebhookKey?, allowsPrivate: Bool, agent: String, patience: Duration = Webhook.patience
  ) throws(OpenSSLError) {
    (self.target, self.key, self.allowsPrivate, self.agent) = (target, key, allowsPrivate, agent)
    self.patience = patience
    context = target.isSecure ? try ClientContext() : nil
  }

  package var kind: DeliveryCounts.Outlet { .webhook }
  package var name: String { "webhook \(target.authority)" }
  package var destination: [String] { [target.isSecure ? "https" : "http", target.authority, target.path] }
  package var threadName: String { "nj-webhook" }

  package func deliver(_ alert: Alert, stop: borrowing Interrupt) -> DeliveryOutcome {
    guard let body = alert.json else { return .refused("its JSON cannot be written") }
    let deadline = Instant.now() + patience
    do throws(ExchangeError) {
      let connection = try connect(by: deadline, stop: stop.fileDescriptor)
      let request = request(alert, body)
      let status =
        if let context { try Self.exchange(request, connection, context, target.host) } else {
          try Self.exchange(request, connection)
        }
      return Self.outcome(status)
    } catch {
      return .failed(error.reason)
    }
  }

  /// Returns the meaning of an answer's status code.
  static func outcome(_ status: Int) -> DeliveryOutcome {
    switch status {
    case 200...299: .delivered
    case 300...399: .refused("it answers \(status), and nightjar follows no redirect; write the URL that it leads to")
    case 408, 425, 429, 500...599: .failed("it answers \(status)")
    default: .refused("it answers \(status)")
    }
  }

  /// Connects to the first address that is allowed and answers.
  private func connect(by deadline: Instant, stop: CInt) throws(ExchangeError) -> TimedConnection {
    let addresses = try ResolvedAddress.all(of: target.host, port: target.port, by: deadline)
    let allowed = addresses.filter { allowsPrivate || $0.address.isPublic }
    guard let first = addresses.first else { throw .system("its name has no address") }
    guard let best = allowed.first else {
      throw .system("its address \(first.address.text) is private; --webhook-private allows such addresses")
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

  private func request(_ alert: Alert, _ body: [UInt8]) -> [UInt8] {
    // The same for each attempt, so that the receiver knows what it has. A history in memory begins at 1 after each start.
    let id = "\(alert.id)-\(alert.time)"
    var lines = [
      "POST \(target.path) HTTP/1.1", "Host: \(target.authority)", "User-Agent: \(agent)",
      "Content-Type: application/json", "Content-Length: \(body.count)", "Connection: close", "webhook-id: \(id)",
    ]
    let seconds = Int64(time(nil))
    lines.append("webhook-timestamp: \(seconds)")
    if let key { lines.append("webhook-signature: \(key.signature(id: id, seconds: seconds, body: body))") }
    return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body
  }

  // MARK: The exchange

  private static func exchange(_ request: [UInt8], _ connection: borrowing TimedConnection) throws(ExchangeError) -> Int
  {
    try connection.send(request)
    var answer = HTTPStatusReader(limit: lineLimit)
    while answer.status == nil {
      let bytes = try connection.receive()
      guard !bytes.isEmpty else { throw .system("it ends the connection without an answer") }
      try answer.take(bytes)
    }
    finish(connection)
    return answer.status ?? 0
  }

  private static func exchange(
    _ request: [UInt8], _ connection: borrowing TimedConnection, _ context: ClientContext, _ host: String
  ) throws(ExchangeError) -> Int {
    let outgoing = TLSOutput()
    do {
      let tls = try TLSConnection(context, host: host) { outgoing.bytes += $0 }
      try tls.begin()
      var answer = HTTPStatusReader(limit: lineLimit)
      var isSent = false
      while answer.status == nil {
        if tls.state == .established, !isSent {
          try request.withUnsafeBytes { try tls.write($0) }
          isSent = true
        }
        try connection.send(outgoing.take())
        let bytes = try connection.receive()
        guard !bytes.isEmpty, !tls.isInputClosed else {
          throw ExchangeError.system("it ends the connection without an answer")
        }
        var plain: [UInt8] = []
        try bytes.withUnsafeBytes { try tls.receive($0) { plain += $0 } }
        try answer.take(plain)
      }
      tls.closeOutput()
      try connection.send(outgoing.take())
      finish(connection)
      return answer.status ?? 0
    } catch let error as ExchangeError {
      throw error
    } catch {
      throw .system("\(error)")
    }
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
