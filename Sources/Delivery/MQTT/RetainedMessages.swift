package import Platform

/// The retained messages of one broker: those that it ought to have, and those that it has.
///
/// Of each topic only the newest message counts, so nothing queues up while the broker is away. What the broker has is sent
/// anew after each connection, because a broker may come back without it.
package struct RetainedMessages {
  /// A message; one without a payload removes the retained message of its topic.
  package struct Message: Hashable {
    /// The topic.
    package let topic: String
    /// The payload; an empty one removes the topic.
    package let payload: [UInt8]

    /// Creates a message.
    package init(topic: String, payload: [UInt8]) {
      (self.topic, self.payload) = (topic, payload)
    }
  }

  /// The most topics that wait for their removal.
  package static let removalLimit = 500
  /// The time for which a message is passed over at first; it doubles each time, up to a day. Each new try costs four connections, in
  /// which events wait.
  static let despair = Duration.seconds(600)...Duration.seconds(86_400)

  private var wanted: [Message] = []
  private var topics: Set<String> = []
  /// The topics whose messages are to be removed.
  private var removed: Set<String> = []
  /// The messages at which the broker ends each connection, and the times from which they are tried again: somebody may have mended
  /// the broker by then.
  private var hopeless: [Message: (until: Instant, delay: Duration)] = [:]
  /// The messages that were sent during this connection.
  private var sent: [String: [UInt8]] = [:]

  /// Creates a table that has sent nothing.
  package init() {}

  /// Sets the messages that the broker ought to have, in the order in which it gets them. Topics that are not among them any
  /// more are removed.
  package mutating func want(_ messages: [Message]) {
    guard messages != wanted else { return }
    let former = topics
    wanted = messages
    topics = Set(messages.map(\.topic))
    for topic in former.subtracting(topics) { remove(topic) }
    for topic in topics where removed.remove(topic) != nil { sent[topic] = nil }
  }

  /// Removes the message of a topic that is not wanted. Beyond ``removalLimit`` it stays.
  package mutating func remove(_ topic: String) {
    guard !topics.contains(topic), removed.count < Self.removalLimit else { return }
    removed.insert(topic)
    sent[topic] = nil
  }

  /// Returns the next message to send, and counts it as sent; nil if the broker has all.
  package mutating func next(at now: Instant) -> Message? {
    let message =
      removed.sorted().map { Message(topic: $0, payload: []) }.first { sent[$0.topic] != [] && isHopeful($0, at: now) }
      ?? wanted.first { sent[$0.topic] != $0.payload && isHopeful($0, at: now) }
    if let message { sent[message.topic] = message.payload }
    return message
  }

  private func isHopeful(_ message: Message, at now: Instant) -> Bool { now >= hopeless[message]?.until ?? .zero }

  /// Notes that the broker has a message.
  package mutating func note(_ message: Message) {
    guard message.payload.isEmpty, removed.remove(message.topic) != nil else { return }
    sent[message.topic] = nil
  }

  /// Passes over a message for a while. Another one of its topic is sent. Beyond ``removalLimit`` all are tried again.
  package mutating func giveUp(_ message: Message, at now: Instant) {
    if hopeless.count >= Self.removalLimit { hopeless = [:] }
    let delay = hopeless[message].map { min($0.delay + $0.delay, Self.despair.upperBound) } ?? Self.despair.lowerBound
    hopeless[message] = (now + delay, delay)
    if message.payload.isEmpty { removed.remove(message.topic) }
  }

  /// Forgets what the broker has: all of it, or one topic.
  package mutating func forget(_ topic: String? = nil) {
    if let topic { sent[topic] = nil } else { sent = [:] }
  }
}
