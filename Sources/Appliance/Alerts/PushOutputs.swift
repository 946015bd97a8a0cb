package import Alerts
package import Delivery
import Platform
package import Serving

/// The ways of alerts to browsers whose page is closed, each with a thread of its own. Confined to the main thread, which waits
/// for none of them.
package final class PushOutputs {
  /// The browsers; nil if their file cannot be read.
  package let subscriptions: PushSubscriptions?
  /// The reason why their file cannot be read; nil if there is none.
  let error: PushSubscriptionError?
  private let history: AlertHistory
  /// The number of the last event before the start of the program.
  private let first: UInt64
  private let reports = EventQueue<DeliveryReport>()
  private let counts: DeliveryCounts
  private let makeHost: (VAPIDKey, _ contact: String?) throws -> WebPush.Host
  private var host: WebPush.Host?
  private var senders: [EventSender] = []
  /// The senders that have been stopped, and whose thread may wait for a name server yet.
  private var ending: [EventSender] = []
  /// The state of the browsers and the settings that `senders` follow; nil for none.
  private var followed: (count: Int, contact: String?)?
  private var hasBegun = false
  /// The reason why browsers are not followed, and the one that the log lacks.
  private var (complaint, untold): (String?, String?)

  /// Creates them without a thread.
  ///
  /// - Parameters:
  ///   - directory: the folder of the browsers and of the host's key.
  ///   - makeHost: creates the part that all ways share.
  package init(
    _ history: AlertHistory, _ counts: DeliveryCounts, directory: String = StandardPaths.stateDirectory,
    makeHost: @escaping (VAPIDKey, _ contact: String?) throws -> WebPush.Host = PushOutputs.usualHost
  ) {
    (self.history, first, self.counts, self.makeHost) = (history, history.lastID, counts, makeHost)
    do throws(PushSubscriptionError) {
      let subscriptions = try PushSubscriptions(directory: directory)
      // Later the main thread waits for no disk.
      if !subscriptions.list.isEmpty { _ = try? subscriptions.key() }
      (self.subscriptions, error) = (subscriptions, nil)
    } catch {
      subscriptions = nil
      self.error = error
    }
  }

  static func usualHost(_ key: VAPIDKey, _ contact: String?) throws -> WebPush.Host {
    try WebPush.Host(key: key, contact: contact, agent: "nightjar/\(Program.version)")
  }

  /// Follows the browsers: those that were added, and those that may be told no more. Called once a second.
  ///
  /// - Parameter server: the server that the page comes from; nil if there is none.
  package func follow(_ settings: PushSettings, _ server: HTTPServer.Configuration?) {
    // Also while nobody is told: another one may get the name of an owner who is gone.
    if let subscriptions, let server { tell(subscriptions.drop { !server.mayTell($0) }) }
    if let count = subscriptions?.takeForgotten(), count > 0 {
      let text = "web push: \(count) browsers are removed, because this host has a new key; each page subscribes again"
      reports.add(DeliveryReport(text: text, isWarning: true))
    }
    guard let subscriptions, settings.isOn, server != nil else {
      // Whoever is told later is told of what comes then.
      hasBegun = true
      _ = stop()
      return
    }
    let count = subscriptions.changeCount
    if let followed, followed.count == count, followed.contact == settings.contact { return }
    do {
      let areAll = try send(to: subscriptions.list, of: subscriptions, contact: settings.contact)
      (followed, complaint) = (areAll ? (count, settings.contact) : nil, nil)
    } catch {
      // The next second tries again.
      let text = "web push: \(error)"
      if complaint != text { untold = text }
      complaint = text
    }
  }

  /// Tells that browsers were removed because of their owners.
  private func tell(_ gone: Set<PushSubscription>) {
    for one in gone.sorted(by: { $0.endpoint < $1.endpoint }) {
      let text = "web push to \(one.owner) at \(one.target.authority) is removed: its log-in is gone, or another one"
      reports.add(DeliveryReport(text: text, isWarning: false))
    }
  }

  /// Makes the senders those of `list`. Returns `false` if some of them begin later, once their former thread has ended: there is
  /// one thread for each browser at a time.
  private func send(to list: [PushSubscription], of subscriptions: PushSubscriptions, contact: String?) throws -> Bool {
    defer { hasBegun = true }
    let endpoints = Set(list.map(\.endpoint))
    end { sender in sender.destination.first.map { !endpoints.contains($0) } ?? true }
    guard !list.isEmpty else { return true }
    let host =
      if let host, host.contact == contact { host } else { try makeHost(subscriptions.key(), contact) }
    self.host = host
    // Those that begin later: the place at which they begin is that of their former sender.
    var waiting: Set<String> = []
    for subscription in list {
      let outlet = WebPush(subscription, host, history) { gone in subscriptions.drop { $0 == gone } }
      let former = senders.first { $0.destination.first == subscription.endpoint }
      if let former, former.destination == outlet.destination, !former.hasEnded { continue }
      if former != nil { end { $0 === former } }
      let before = ending.last { $0.destination.first == subscription.endpoint }
      guard before?.hasEnded != false else {
        waiting.insert(subscription.endpoint)
        continue
      }
      let place = (former ?? before)?.position ?? (hasBegun ? nil : first)
      senders.append(try EventSender(outlet, history, reports, counts: counts, after: place))
    }
    ending.removeAll { sender in sender.hasEnded && sender.destination.first.map { !waiting.contains($0) } ?? true }
    return waiting.isEmpty
  }

  /// Ends the senders that match. Their threads end by themselves.
  private func end(where isMeant: (EventSender) -> Bool) {
    for sender in senders where isMeant(sender) {
      sender.stop()
      ending.append(sender)
    }
    senders.removeAll(where: isMeant)
  }

  /// Returns and removes what became of events, for the log.
  package func takeReports() -> [DeliveryReport] { reports.take() }

  /// Returns the reason why browsers are not followed, once.
  package func takeComplaint() -> String? {
    defer { untold = nil }
    return untold
  }

  /// Ends them all, without waiting; returns those whose thread has not ended.
  package func stop() -> [EventSender] {
    end { _ in true }
    (host, followed) = (nil, nil)
    ending.removeAll(where: \.hasEnded)
    return ending
  }
}
