package import Alerts
import FoundationEssentials
import Glibc
package import Platform
import Synchronization
package import TLS

/// The way of alerts to one browser whose page may be closed: Web Push (RFC 8030), encrypted for that browser.
///
/// It tells of alerts that begin, and of those that somebody acknowledges after that. The push service learns the time of a
/// message, and that two messages are about the same kind of alert of the same camera, but not which.
package final class WebPush: EventOutlet {
  /// The part that the ways to all browsers share.
  package struct Host: Sendable {
    /// The host's key.
    package var key: VAPIDKey
    /// A URL of whoever runs the host, for the push service; nil for none.
    package var contact: String?
    /// The value of `User-Agent`.
    package var agent: String
    /// The authorities that vouch for push services.
    let context: ClientContext
    /// `true` also connects to addresses that no host of the internet has. No option sets it.
    package var allowsPrivate = false

    /// Creates it with the system's authorities.
    ///
    /// - Throws: `OpenSSLError`.
    package init(key: VAPIDKey, contact: String?, agent: String) throws(OpenSSLError) {
      (self.key, self.contact, self.agent) = (key, contact, agent)
      context = try ClientContext()
    }
  }

  /// The time for which an alert is of use. Then neither nightjar nor the push service sends it any more.
  package static let lifetime: Int64 = 3600
  /// The longest time for which a push service may put an attempt off, in seconds.
  package static let longestDelay = 3600
  /// The time that an exchange may take.
  package static let patience = Duration.seconds(10)
  /// The validity of a token in seconds. A day is the most (RFC 8292 section 2).
  private static let tokenLifetime: Int64 = 12 * 3600
  /// The most subjects whose acknowledgement is told.
  private static let sentLimit = 256

  private let subscription: PushSubscription
  private let host: Host
  private let history: AlertHistory
  private let exchange: HTTPExchange
  private let forget: @Sendable (PushSubscription) -> Void
  /// The newest alert of each subject that the push service has taken.
  private let sent = Mutex<[AlertSubject: UInt64]>([:])

  /// Creates a way to the browser of `subscription`.
  ///
  /// - Parameters:
  ///   - history: the history of the events, which knows what is acknowledged.
  ///   - forget: takes a subscription that the browser has ended.
  package init(
    _ subscription: PushSubscription, _ host: Host, _ history: AlertHistory,
    forget: @escaping @Sendable (PushSubscription) -> Void
  ) {
    (self.subscription, self.host, self.history, self.forget) = (subscription, host, history, forget)
    exchange = HTTPExchange(
      target: subscription.target, context: host.context, allowsPrivate: host.allowsPrivate, privateRemedy: "")
  }

  package var kind: DeliveryCounts.Outlet { .push }
  package var name: String { "web push to \(subscription.owner) at \(subscription.target.authority)" }
  package var destination: [String] {
    [
      subscription.endpoint, Base64URL.text(subscription.publicKey), Base64URL.text(subscription.secret),
      subscription.owner, subscription.login ?? "", host.key.publicText, host.contact ?? "",
    ]
  }
  package var threadName: String { "nj-push" }

  package func wants(_ alert: Alert) -> Bool {
    guard !alert.quiet else { return false }
    return switch alert.state {
    case .began: !history.isAcknowledged(alert.id) && Self.remainingLife(of: alert) > 0
    // That of an older alert would take the place of a newer one.
    case .acknowledged: sent.withLock { $0[alert.subject] == alert.beginning }
    case .ended: false
    }
  }

  package func deliver(_ alert: Alert, stop: borrowing Interrupt) -> DeliveryOutcome {
    let deadline = Instant.now() + Self.patience
    let request: [UInt8]
    do throws(OpenSSLError) {
      guard let made = try self.request(for: alert) else { return .refused("its JSON cannot be written") }
      request = made
    } catch {
      return .failed("\(error)")
    }
    do throws(ExchangeError) {
      let answer = try exchange.answer(to: request, readsHead: true, by: deadline, stop: stop.fileDescriptor)
      return outcome(answer.status ?? 0, retryAfter: answer.retryAfter, of: alert)
    } catch {
      return .failed(error.reason)
    }
  }

  private func outcome(_ status: Int, retryAfter: Int?, of alert: Alert) -> DeliveryOutcome {
    switch status {
    case 200...299:
      if alert.state == .began {
        sent.withLock { sent in
          if sent.count == Self.sentLimit { sent = [:] }
          sent[alert.subject] = alert.id
        }
      }
      return .delivered
    case 404, 410:
      forget(subscription)
      return .refused("it answers \(status): the browser has ended this subscription, which is removed")
    case 401, 403:
      let remedy =
        host.contact == nil ? "set --web-push-contact, and look at the host's clock" : "is the host's clock right?"
      return .refused("it answers \(status): \(remedy)")
    case 300...399: return .refused("it answers \(status), and nightjar follows no redirect")
    case 408, 413, 425, 429, 500...599:
      guard let retryAfter else { return .failed("it answers \(status)") }
      return .postponed("it answers \(status)", Duration(seconds: Double(min(retryAfter, Self.longestDelay))))
    default: return .refused("it answers \(status)")
    }
  }

  /// Returns the seconds for which an alert is of use yet.
  private static func remainingLife(of alert: Alert) -> Int64 {
    let age = AlertClock.seconds(of: alert.time).map { Int64(time(nil)) - $0 } ?? 0
    // An alert of the future comes from a clock that was set back.
    return min(lifetime, lifetime - age)
  }

  // MARK: The request

  /// The message that the browser gets.
  private struct Content: Encodable {
    let id: UInt64
    let kind: String
    let state: String
    let camera: String?
    let time: String
    let title: String
  }

  /// Returns the content of a message about an alert; nil if it cannot be written.
  static func content(of alert: Alert) -> [UInt8]? {
    let words = alert.kind.title.prefix(1).uppercased() + alert.kind.title.dropFirst()
    let content = Content(
      id: alert.beginning, kind: alert.kind.rawValue, state: alert.state.rawValue, camera: alert.camera,
      time: alert.time, title: alert.state == .acknowledged ? "\(words): somebody takes care of it" : words)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(content)).map { Array($0) }
  }

  private func request(for alert: Alert) throws(OpenSSLError) -> [UInt8]? {
    guard let content = Self.content(of: alert) else { return nil }
    let body = try PushMessage(content, to: subscription).bytes
    let authorization = try host.key.authorization(
      for: "https://\(subscription.target.authority.lowercased())", expires: Int64(time(nil)) + Self.tokenLifetime,
      contact: host.contact)
    let lines = [
      "POST \(subscription.target.path) HTTP/1.1", "Host: \(subscription.target.authority)",
      "User-Agent: \(host.agent)", "Authorization: \(authorization)", "Content-Encoding: aes128gcm",
      "Content-Type: application/octet-stream", "Content-Length: \(body.count)", "Connection: close",
      "TTL: \(max(0, Self.remainingLife(of: alert)))", "Urgency: \(alert.state == .began ? "high" : "normal")",
      "Topic: \(topic(of: alert))",
    ]
    return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body
  }

  /// Returns a name by which a message replaces an older one about the same, where that still waits for the browser (RFC 8030
  /// section 5.4): 32 characters at most, which tell the push service nothing.
  private func topic(of alert: Alert) -> String {
    let subject = Array("\(alert.kind.rawValue) \(alert.camera ?? "")".utf8)
    return String(
      Base64URL.text(HashFunction.sha256.authenticationCode(of: subject, key: subscription.secret)).prefix(32))
  }
}
