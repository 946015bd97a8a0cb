import Platform

/// The decision which ends and beginnings of a connection the log tells: changes, and not each attempt.
struct ConnectionLog {
  /// The last failure that was told.
  private enum Told { case unreachable, refused }

  private let name: String
  private let reports: EventQueue<DeliveryReport>
  private var told: Told?
  private var wasConnected = false
  private var dropped: UInt64 = 0

  init(_ name: String, _ reports: EventQueue<DeliveryReport>) { (self.name, self.reports) = (name, reports) }

  /// Notes that the connection stands.
  mutating func connected() {
    if told != nil || !wasConnected {
      let lost = dropped > 0 ? ", without the \(dropped) events that were dropped" : ""
      add("\(name): connected\(wasConnected ? " again" : "")\(lost)", isWarning: false)
    }
    (told, wasConnected, dropped) = (nil, true, 0)
  }

  /// Notes that an attempt has failed, or that the connection is lost.
  mutating func failed(_ reason: String) {
    guard told == nil else { return }
    told = .unreachable
    add("\(name): \(reason); nightjar tries again", isWarning: true)
  }

  /// Notes that the broker does not want the connection.
  mutating func refused(_ reason: String) {
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

  private func add(_ text: String, isWarning: Bool) { reports.add(DeliveryReport(text: text, isWarning: isWarning)) }
}
