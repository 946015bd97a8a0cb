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
  private let exchange: HTTPExchange
  private let patience: Duration
  /// The value of `User-Agent`.
  private let agent: String

  /// The time that an exchange may take, from the name of the host to the answer.
  package static let patience = Duration.seconds(10)

  /// Creates a webhook.
  ///
  /// - Parameters:
  ///   - key: signs the requests; nil leaves them without a signature.
  ///   - allowsPrivate: `true` also connects to addresses that no host of the internet has.
  /// - Throws: ``OpenSSLError``.
  package init(
    _ target: WebhookTarget, key: WebhookKey?, allowsPrivate: Bool, agent: String, patience: Duration = Webhook.patience
  ) throws(OpenSSLError) {
    (self.target, self.key, self.agent, self.patience) = (target, key, agent, patience)
    exchange = HTTPExchange(
      target: target, context: target.isSecure ? try ClientContext() : nil, allowsPrivate: allowsPrivate,
      privateRemedy: "; --webhook-private allows such addresses")
  }

  package var kind: DeliveryCounts.Outlet { .webhook }
  package var name: String { "webhook \(target.authority)" }
  package var destination: [String] { [target.isSecure ? "https" : "http", target.authority, target.path] }
  package var threadName: String { "nj-webhook" }

  package func deliver(_ alert: Alert, stop: borrowing Interrupt) -> DeliveryOutcome {
    guard let body = alert.json else { return .refused("its JSON cannot be written") }
    let deadline = Instant.now() + patience
    do throws(ExchangeError) {
      let answer = try exchange.answer(to: request(alert, body), by: deadline, stop: stop.fileDescriptor)
      return Self.outcome(answer.status ?? 0)
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
}
