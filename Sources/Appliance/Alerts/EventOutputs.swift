import Alerts
import Delivery
import Glibc
import Platform

/// The ways out of an event that run. Confined to the main thread, which waits for none of them.
final class EventOutputs {
  private let history: AlertHistory
  /// The number of the last event before the start of the program.
  private let first: UInt64
  private let reports = EventQueue<DeliveryReport>()
  private var plan: EventOutputPlan?
  private var senders: [EventSender] = []
  private var mqtt: MQTTSender?
  private let counts: DeliveryCounts
  /// The state beside the events, for MQTT.
  let feed = LiveFeed()

  init(_ history: AlertHistory, _ counts: DeliveryCounts) {
    (self.history, first, self.counts) = (history, history.lastID, counts)
  }

  /// Runs the ways out of `plan`. One that is the same as before goes on with the events that wait.
  ///
  /// - Throws: `OpenSSLError`, and ``SystemFailure`` if the system has no thread left; then the former ones are as before.
  func follow(_ plan: EventOutputPlan) throws {
    guard plan != self.plan else { return }
    let isStart = self.plan == nil
    var places = Dictionary(grouping: senders, by: \.destination)
    // What has not changed goes on: an event on its way is not sent again.
    let areWebhooksSame =
      plan.key == self.plan?.key && plan.settings.allowsPrivateWebhooks == self.plan?.settings.allowsPrivateWebhooks
    var (kept, new): ([EventSender], [EventSender]) = ([], [])
    // The senders that get a successor.
    var followed: [EventSender] = []
    var broker = mqtt
    do {
      for outlet in try plan.outlets() {
        let former = places[outlet.destination]?.popLast()
        if let former, !former.hasEnded, outlet.kind != .webhook || areWebhooksSame {
          kept.append(former)
          continue
        }
        let place = former?.position ?? (isStart ? first : nil)
        new.append(try EventSender(outlet, history, reports, counts: counts, after: place, following: former))
        if let former { followed.append(former) }
      }
      if plan.mqtt != self.plan?.mqtt {
        broker = try plan.mqtt.map {
          try MQTTSender(
            $0, history, feed, reports, counts: counts, after: mqtt?.position ?? (isStart ? first : nil),
            following: mqtt)
        }
      }
    } catch {
      for sender in new { sender.stop() }
      throw error
    }
    for sender in senders where !kept.contains(where: { $0 === sender }) {
      // The event on its way is not sent, nor counted, twice.
      if followed.contains(where: { $0 === sender }) { sender.retire() } else { sender.stop() }
    }
    if broker !== mqtt { mqtt?.stop() }
    (self.plan, senders, mqtt) = (plan, kept + new, broker)
  }

  /// Returns and removes what became of events, for the log.
  func takeReports() -> [DeliveryReport] { reports.take() }

  /// The time that the ways out have for their end at the end of the program, so that no command outlives it.
  private static let patience = Duration.milliseconds(500)

  /// Ends them all at the end of the program, and waits for `others`, which have been stopped, too. One that hangs, as in a name
  /// server, is left behind.
  func end(with others: [EventSender]) {
    for sender in senders { sender.stop() }
    senders += others
    mqtt?.stop()
    let deadline = Instant.now() + Self.patience
    while !senders.allSatisfy(\.hasEnded) || mqtt?.hasEnded == false, .now() < deadline { usleep(5000) }
    (senders, mqtt) = ([], nil)
  }
}
