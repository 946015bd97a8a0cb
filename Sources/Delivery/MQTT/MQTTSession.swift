import Alerts
import Platform

/// The messages to the broker: their order, and which of them it has acknowledged. Confined to the thread of the sender. It outlives connections.
struct MQTTSession {
  /// The most messages that are on their way at a time.
  private static let limit = 16
  /// The time that the broker may take to acknowledge a message.
  private static let patience = Duration.seconds(10)
  /// The least time between two answers to the same request of others at the broker.
  private static let pause = Duration.seconds(5)
  /// The time for which nothing of others is asked for after a message that was too large.
  private static let deafness = Duration.seconds(600)

  /// A message on its way.
  private enum Item: Hashable {
    case retained(RetainedMessages.Message)
    case event(Alert)
    case picture(topic: String)
  }

  /// The end of a message.
  enum Outcome {
    /// The broker has the event.
    case sent(Alert)
    /// The broker has not taken the event, and would not take it later.
    case lost(Alert, DeliveryCounts.Loss, String)
    /// The broker does not take the event now, for this reason. It is sent again.
    case postponed(String)
    /// The broker does not want another message, for this reason.
    case refused(topic: String, String)
  }

  private let configuration: MQTTConfiguration
  private let history: AlertHistory
  private let feed: LiveFeed
  private var state: MQTTState
  private var retained = RetainedMessages()
  private var waiting: WaitingEvents
  /// The number of the last picture that was sent.
  private var shown: UInt64 = 0
  private var items: [CInt: (item: Item, sent: Instant)] = [:]
  private var suspicion = MQTTSuspicion<Item>()
  private var outcomes: [Outcome] = []
  /// `true` while an event is on its way.
  private(set) var hasEvent = false
  private var hasPicture = false
  private var hasLostPicture = false
  /// The times before which nothing is sent again.
  private var (nextBirth, nextStatus) = (Instant.zero, Instant.zero)
  private var (isBirthDue, isStatusDue) = (false, false)
  /// The time until which nothing of others is asked for, and `true` once it is asked for in this connection.
  private var (deafUntil, isSubscribed) = (Instant.zero, false)
  /// The pauses after events, and after other messages, that the broker does not take for now.
  private var (eventPause, otherPause): (MQTTPause, MQTTPause)
  /// The topics of those other messages.
  private var postponed: Set<String> = []

  /// - Parameter delays: the pauses after what the broker does not take for now.
  init(
    _ configuration: MQTTConfiguration, _ history: AlertHistory, _ feed: LiveFeed, after last: UInt64,
    delays: ClosedRange<Duration>
  ) {
    (eventPause, otherPause) = (MQTTPause(delays), MQTTPause(delays))
    (self.configuration, self.history, self.feed) = (configuration, history, feed)
    state = MQTTState(configuration)
    waiting = WaitingEvents(history, after: last)
  }

  /// Returns the number of the events that were dropped since the last call.
  mutating func takeDropped() -> UInt64 {
    _ = waiting.first()
    return waiting.takeDropped()
  }

  /// `true` if nothing is on its way.
  var isIdle: Bool { items.isEmpty }

  /// Begins with a new connection, whose broker may have lost everything.
  mutating func begin(_ client: MosquittoClient, at now: Instant) throws(ExchangeError) {
    forgetItems(isEndedByBroker: false, at: now)
    retained.forget()
    isSubscribed = false
    (eventPause, otherPause) = (eventPause.ended, otherPause.ended)
    postponed = []
    // Home Assistant may have started meanwhile, and pictures are not retained. One that was on its way when the connection was
    // lost may have been too large for it.
    if !hasLostPicture { shown = 0 }
    hasLostPicture = false
    try subscribe(client, at: now)
  }

  /// Asks for what others send, unless that was too large a while ago.
  private mutating func subscribe(_ client: MosquittoClient, at now: Instant) throws(ExchangeError) {
    guard !isSubscribed, now >= deafUntil else { return }
    isSubscribed = true
    try client.subscribe(configuration.topics.status)
    guard let discovery = state.discovery else { return }
    try client.subscribe(discovery.birthTopic)
    try client.subscribe(discovery.filter)
  }

  /// Asks for nothing of others for a while: a message of theirs was too large.
  mutating func stopListening(at now: Instant) { deafUntil = now + Self.deafness }

  /// Forgets what was on its way when the connection was lost.
  ///
  /// - Parameter isEndedByBroker: `true` if the broker has ended the connection without a word, perhaps because of a message.
  mutating func forgetItems(isEndedByBroker: Bool, at now: Instant) {
    if isEndedByBroker, let culprit = suspicion.lost(with: items.values.map(\.item)) { giveUp(culprit, at: now) }
    items = [:]
    if hasPicture { hasLostPicture = true }
    (hasEvent, hasPicture) = (false, false)
  }

  /// Passes over a message at which the broker ends each connection.
  private mutating func giveUp(_ item: Item, at now: Instant) {
    switch item {
    case .event(let alert):
      waiting.finish(alert)
      outcomes.append(.lost(alert, .ended, Self.endsConnections))
    case .retained(let message):
      retained.giveUp(message, at: now)
      outcomes.append(.refused(topic: message.topic, Self.endsConnections))
    // Not sent again with the next connection.
    case .picture(let topic): outcomes.append(.refused(topic: topic, Self.endsConnections))
    }
  }

  /// Sends what is due, as much as may be on its way.
  ///
  /// - Throws: ``ExchangeError`` if the connection is lost, or the broker acknowledges nothing.
  mutating func send(_ client: MosquittoClient, at now: Instant) throws(ExchangeError) {
    if let oldest = items.values.map(\.sent).min(), now - oldest > Self.patience {
      throw .time("it takes messages and acknowledges none")
    }
    try subscribe(client, at: now)
    if isBirthDue, now >= nextBirth {
      (isBirthDue, nextBirth, shown) = (false, now + Self.pause, 0)
      retained.forget()
    }
    if isStatusDue, now >= nextStatus {
      (isStatusDue, nextStatus) = (false, now + Self.pause)
      retained.forget(configuration.topics.status)
    }
    if otherPause.isOver(at: now) {
      for topic in postponed { retained.forget(topic) }
      postponed = []
    }
    retained.want(state.messages(feed.reading, open: history.open, at: now))
    let limit = suspicion.isStrong ? 1 : Self.limit
    while items.count < limit {
      // What the broker says that it does not take, for its size, is passed over. The next picture may be smaller.
      if let message = retained.next(at: now) {
        let number = try client.publish(message.topic, message.payload, isRetained: true)
        if let number {
          items[number] = (.retained(message), now)
        } else {
          outcomes.append(.refused(topic: message.topic, Self.tooLarge))
        }
      } else if !hasEvent, eventPause.isOver(at: now), let alert = waiting.first() {
        hasEvent = true
        let topic = configuration.topics.state("event", of: alert.camera)
        // An event in a history is one that JSON can have.
        if let number = try client.publish(topic, alert.json ?? [], isRetained: false) {
          items[number] = (.event(alert), now)
        } else {
          hasEvent = false
          waiting.finish(alert)
          outcomes.append(.lost(alert, .tooLarge, Self.tooLarge))
        }
      } else if configuration.sendsPictures, !hasPicture, let picture = feed.picture(after: shown) {
        (hasPicture, shown) = (true, picture.number)
        let topic = configuration.topics.state("snapshot", of: picture.camera)
        if let number = try client.publish(topic, picture.bytes, isRetained: false) {
          items[number] = (.picture(topic: topic), now)
        } else {
          hasPicture = false
        }
      } else {
        // The broker has all.
        if items.isEmpty { suspicion = MQTTSuspicion() }
        return
      }
    }
  }

  /// The words for a message that is larger than the broker takes.
  private static let tooLarge = "it is larger than the broker takes"
  /// The words for a message at which the broker ends each connection.
  private static let endsConnections = "the broker ends each connection at it"

  /// Notes that the broker has a message, or does not take it.
  mutating func acknowledged(_ number: CInt, refusal: MosquittoClient.Refusal?, at now: Instant) {
    guard let item = items.removeValue(forKey: number)?.item else { return }
    suspicion.clear(item)
    let words = refusal.map { "the broker refuses it: \($0.reason)" }
    let isPostponed = refusal?.isFinal == false
    let topic: String
    switch item {
    case .retained(let message):
      topic = message.topic
      if isPostponed {
        postponed.insert(topic)
        otherPause.begin(at: now)
      } else {
        retained.note(message)
      }
    case .event(let alert):
      hasEvent = false
      if isPostponed {
        eventPause.begin(at: now)
        outcomes.append(.postponed(words ?? ""))
        return
      }
      eventPause.reset()
      waiting.finish(alert)
      outcomes.append(words.map { .lost(alert, .refused, $0) } ?? .sent(alert))
      return
    case .picture(let place):
      hasPicture = false
      topic = place
    }
    if let words { outcomes.append(.refused(topic: topic, words)) }
  }

  /// Returns and removes what became of messages.
  mutating func takeOutcomes() -> [Outcome] {
    defer { outcomes.removeAll() }
    return outcomes
  }

  /// Takes a message of others: of Home Assistant, which starts, or of an earlier run of the program.
  mutating func take(topic: String, payload: [UInt8], isRetained: Bool, at now: Instant) {
    if topic == configuration.topics.status {
      // The will of a connection that the broker has given up only now. A retained one is from before this connection.
      if payload != Array("online".utf8), !isRetained { isStatusDue = true }
    } else if topic == state.discovery?.birthTopic {
      if payload == Array("online".utf8), !isRetained { isBirthDue = true }
    } else if isRetained, !payload.isEmpty {
      for topic in state.leftBehind(topic: topic, payload: payload) { retained.remove(topic) }
    }
  }

  /// Sends the end of the availability; returns the number of the message, or nil for none.
  ///
  /// - Throws: ``ExchangeError``.
  func end(_ client: MosquittoClient) throws(ExchangeError) -> CInt? {
    try client.publish(configuration.topics.status, Array("offline".utf8), isRetained: true)
  }
}
