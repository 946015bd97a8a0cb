import Alerts
import Delivery
import Platform
import Serving

/// The ways of alerts to browsers whose page is closed, each with a thread of its own. Confined to the main thread, which waits
/// for none of them.
final class PushOutputs {
  /// The browsers; nil if their file cannot be read.
  let subscriptions: PushSubscriptions?
  /// The reason why their file cannot be read; nil if there is none.
  let error: PushSubscriptionError?
  private let history: AlertHistory
  /// The number of the last event before the start of the program.
  private let first: UInt64
  private let reports = EventQueue<DeliveryReport>()
  private let counts: DeliveryCounts
  private var host: WebPush.Host?
  private var senders: [EventSender] = []
  /// The state of the browsers and the settings that `senders` follow; nil for none.
  private var followed: (count: Int, contact: String?)?
  private var hasBegun = false
  /// The reason why browsers are not followed, and the one that the log lacks.
  private var (complaint, untold): (String?, String?)

  init(_ history: AlertHistory, _ counts: DeliveryCounts, directory: String = StandardPaths.stateDirectory) {
    (self.history, first, self.counts) = (history, history.lastID, counts)
    do throws(PushSubscriptionError) {
      subscriptions = try PushSubscriptions(directory: directory)
      error = nil
    } catch {
      subscriptions = nil
      self.error = error
    }
  }

  /// Follows the browsers: those that were added, and those that may be told no more. Called once a second.
  ///
  /// - Parameter server: the server that the page comes from; nil if there is none.
  func follow(_ settings: PushSettings, _ server: HTTPServer.Configuration?) {
    guard let subscriptions, settings.isOn, let server else {
      stop()
      return
    }
    subscriptions.remove { !server.mayWatch($0.owner) }
    let count = subscriptions.changeCount
    if let followed, followed.count == count, followed.contact == settings.contact { return }
    do {
      try send(to: subscriptions.list, of: subscriptions, contact: settings.contact)
      (followed, complaint) = ((count, settings.contact), nil)
    } catch {
      // The next second tries again.
      let text = "web push: \(error)"
      if complaint != text { untold = text }
      complaint = text
    }
  }

  private func send(to list: [PushSubscription], of subscriptions: PushSubscriptions, contact: String?) throws {
    defer { hasBegun = true }
    guard !list.isEmpty else {
      stop()
      return
    }
    let host =
      if let host, host.contact == contact { host } else {
        try WebPush.Host(key: subscriptions.key(), contact: contact, agent: "nightjar/\(Program.version)")
      }
    self.host = host
    let former = Dictionary(senders.map { ($0.destination.first, $0) }) { $1 }
    var new: [EventSender] = []
    do {
      for subscription in list {
        let outlet = WebPush(subscription, host, history) { gone in subscriptions.remove { $0 == gone } }
        let before = former[outlet.destination.first]
        if let before, before.destination == outlet.destination, !before.hasEnded {
          new.append(before)
        } else {
          let place = before?.position ?? (hasBegun ? nil : first)
          new.append(try EventSender(outlet, history, reports, counts: counts, after: place))
        }
      }
    } catch {
      for sender in new where !senders.contains(where: { $0 === sender }) { sender.stop() }
      throw error
    }
    for sender in senders where !new.contains(where: { $0 === sender }) { sender.stop() }
    senders = new
  }

  /// Returns and removes what became of events, for the log.
  func takeReports() -> [DeliveryReport] { reports.take() }

  /// Returns the reason why browsers are not followed, once.
  func takeComplaint() -> String? {
    defer { untold = nil }
    return untold
  }

  /// Ends them all, without waiting.
  func stop() {
    for sender in senders { sender.stop() }
    (senders, host, followed) = ([], nil, nil)
  }
}
