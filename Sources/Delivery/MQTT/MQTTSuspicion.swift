/// The search for a message at which a broker ends each connection, as brokers do by MQTT 3.1.1 with what they do not want.
struct MQTTSuspicion<Item: Hashable> {
  /// The connections in a row that end with messages on their way, after which one goes at a time.
  static var connections: Int { 2 }
  /// The connections in a row that end with the same message alone on its way, after which it is given up.
  static var limit: Int { 2 }

  private var ended = 0
  private var suspect: (item: Item, count: Int)?

  /// `true` if one message is to go at a time.
  var isStrong: Bool { ended >= Self.connections }

  /// Notes that the broker has ended a connection while `items` were on their way. Returns the message to give up; nil for none.
  mutating func lost(with items: [Item]) -> Item? {
    guard let first = items.first else {
      (ended, suspect) = (0, nil)
      return nil
    }
    guard isStrong, items.count == 1 else {
      ended += 1
      return nil
    }
    let count = suspect?.item == first ? (suspect?.count ?? 0) + 1 : 1
    guard count >= Self.limit else {
      suspect = (first, count)
      return nil
    }
    (ended, suspect) = (0, nil)
    return first
  }

  /// Notes that the broker has answered a message.
  mutating func clear(_ item: Item) {
    if suspect?.item == item { (ended, suspect) = (0, nil) }
  }
}
