import Platform

/// The decision which ends and beginnings of a connection the log tells: changes, and not each attempt.
struct ConnectionLog {
  /// A failure that was told.
  private enum Told { case unreachable, refused }

  /// The time after which a connection that is lost was a good one.
  static let stable = Duration.seconds(10)

  /// The connections in a row that a broker ends at once, after which the log names the likely cause.
  static let endedLimit = 3

  private let name: String
  private let reports: EventQueue<DeliveryReport>
  /// The last failure that was told, if no connection was told since.
  private var told: Told?
  /// `true` if some connection was told, and if the present one was.
  private var (wasConnected, isConnected) = (false, false)
  /// `true` if the last connection was lost at once: the next one is told only once it is stable.
  private var isShaky = false
  /// The connections in a row that the broker has ended at once.
  private var ended = 0
  private var dropped: UInt64 = 0
  /// `true` once it was told that the broker speaks MQTT 3.1.1 alone.
  private var isVersionTold = false
  /// The last reason for which an event was lost, if none has come through since.
  private var lossTold: String?
  /// The reasons for which other messages were refused.
  private var refusals: Set<String> = []

  init(_ name: String, _ reports: EventQueue<DeliveryReport>) { (self.name, self.reports) = (name, reports) }

  /// Notes that the broker has acknowledged messages, in a connection of this age.
  mutating func connected(for age: Duration, by version: MosquittoClient.Version) {
    guard !isConnected, !isShaky || age >= Self.stable else {
      if isConnected, isVersionTold, version == .five {
        isVersionTold = false
        add("\(name): it speaks MQTT 5 now", isWarning: false)
      }
      return
    }
    let lost = dropped > 0 ? ", without the \(dropped) events that were dropped" : ""
    let isOld = version == .threeOneOne
    let old = isOld && !isVersionTold ? " by MQTT 3.1.1, in which it limits no message of its other users" : ""
    isVersionTold = isOld
    add("\(name): connected\(wasConnected ? " again" : "")\(old)\(lost)", isWarning: false)
    (told, wasConnected, isConnected, isShaky, dropped) = (nil, true, true, false, 0)
  }

  /// Notes that an attempt has failed, or that a connection of this age is lost.
  mutating func failed(_ error: ExchangeError, after age: Duration) {
    isConnected = false
    if age > .zero {
      isShaky = age < Self.stable
      if isShaky, case .ended = error { ended += 1 } else { ended = 0 }
    }
    if age > .zero, ended == Self.endedLimit {
      told = .unreachable
      // By MQTT 5 a broker may say so itself, as mosquitto does from 2.0.15 on.
      let cause = MosquittoClient.takenOver
      add(
        "\(name): it ends each connection soon; perhaps it does not want a message, or \(cause); nightjar tries again",
        isWarning: true)
      return
    }
    guard told == nil else { return }
    told = .unreachable
    add("\(name): \(error.reason); nightjar tries again", isWarning: true)
  }

  /// Notes that the broker does not want the connection.
  mutating func refused(_ reason: String) {
    isConnected = false
    guard told != .refused else { return }
    told = .refused
    add("\(name): \(reason); nightjar tries again", isWarning: true)
  }

  /// Notes that `count` events were dropped.
  mutating func dropped(_ count: UInt64) {
    guard count > 0 else { return }
    if dropped == 0 {
      add("\(name): more than \(WaitingEvents.limit) events wait, so the oldest are dropped", isWarning: true)
    }
    dropped += count
  }

  /// Notes that the broker has an event.
  mutating func delivered() {
    guard lossTold != nil else { return }
    lossTold = nil
    add("\(name) takes events again", isWarning: false)
  }

  /// Notes that the broker does not take an event.
  mutating func lost(_ reason: String) {
    guard reason != lossTold else { return }
    lossTold = reason
    add("\(name): an event is lost: \(reason)", isWarning: true)
  }

  /// Notes that the broker does not take an event for now.
  mutating func postponed(_ reason: String) {
    guard reason != lossTold else { return }
    lossTold = reason
    add("\(name): \(reason); nightjar tries again", isWarning: true)
  }

  /// Notes that the broker does not take another message than an event. The reasons are those of MQTT, and so not many.
  mutating func refused(_ topic: String, _ reason: String) {
    guard refusals.insert(reason).inserted else { return }
    add("\(name): a message of \(topic) is lost: \(reason)", isWarning: true)
  }

  private func add(_ text: String, isWarning: Bool) { reports.add(DeliveryReport(text: text, isWarning: isWarning)) }
}
