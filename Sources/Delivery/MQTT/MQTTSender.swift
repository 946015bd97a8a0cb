package import Alerts
import CLinux
import Glibc
package import Platform
import Synchronization

/// Keeps an MQTT broker informed: of each event of a history, of the present state, and of Home Assistant's discovery. It has a
/// thread of its own, for which nothing waits.
package final class MQTTSender: Sendable {
  private let configuration: MQTTConfiguration
  private let history: AlertHistory
  private let feed: LiveFeed
  private let reports: EventQueue<DeliveryReport>
  private let counts: DeliveryCounts
  /// The sender whose place this one takes, until it has ended.
  private let former: Mutex<MQTTSender?>
  private let times: Times
  private let wake: WakeUp
  private let stopping: Interrupt
  private let lastFinished: Atomic<UInt64>
  private let isOver = Atomic(false)

  /// The times of a connection.
  package struct Times: Sendable {
    /// The time from the first packet to the broker's answer.
    package var answer = Duration.seconds(5)
    /// The delays after a loss or a failure. The longest decides how soon all is back after a restart of the broker.
    var delays = Duration.milliseconds(250)...Duration.seconds(2)
    /// The delays after a refusal, which mostly lasts until somebody mends it.
    package var refusalDelays = Duration.seconds(2)...Duration.seconds(30)
    /// The delays before MQTT 5 is tried again at a broker that was silent to it.
    package var versionDelays = MQTTOpening.delays
    /// The time that the last message may take.
    package var farewell = Duration.milliseconds(300)
    /// The time that an event on its way may take at the end: another sender would send it again.
    package var lastEvent = Duration.seconds(1)
    /// The time in which a former sender ends its connection.
    package var succession = Duration.seconds(2)

    /// Creates the usual times.
    package init() {}
  }

  /// Starts to send the events after the one with the number `last`; nil for those from now on.
  ///
  /// - Parameters:
  ///   - feed: the state beside the events.
  ///   - reports: takes what becomes of the connection, for the log.
  ///   - former: the sender whose place this one takes, which has been stopped.
  /// - Throws: ``SystemFailure`` if the system has no thread or descriptor left.
  package init(
    _ configuration: MQTTConfiguration, _ history: AlertHistory, _ feed: LiveFeed,
    _ reports: EventQueue<DeliveryReport>, counts: DeliveryCounts, after last: UInt64? = nil,
    following former: MQTTSender? = nil, times: Times = Times()
  ) throws(SystemFailure) {
    (self.configuration, self.history, self.feed, self.reports) = (configuration, history, feed, reports)
    (self.counts, self.times) = (counts, times)
    self.former = Mutex(former)
    wake = try WakeUp()
    stopping = try Interrupt()
    let now = history.follow(wake)
    feed.follow(wake)
    lastFinished = Atomic(last ?? now)
    do throws(SystemFailure) {
      // What hangs in a name server is left behind.
      try NamedThread("nj-mqtt") { [self] in run() }.detach()
    } catch {
      unfollow()
      throw error
    }
  }

  /// Ends the connection in order, and then the thread. Returns at once.
  package func stop() {
    unfollow()
    stopping.fire()
    wake.fire()
  }

  private func unfollow() {
    history.unfollow(wake)
    feed.unfollow(wake)
  }

  /// `true` once its thread does nothing more.
  package var hasEnded: Bool { isOver.load(ordering: .acquiring) }

  /// The number of the last event that the broker has.
  package var position: UInt64 { lastFinished.load(ordering: .relaxed) }

  /// The end of an attempt.
  private enum Ending {
    case stopped
    /// The broker is away or was lost, after a connection of this length.
    case lost(ExchangeError, after: Duration)
    /// The broker does not want the connection.
    case refused(String)
    /// The connection has ended in order, and the next one tries MQTT 5 again.
    case renewed
  }

  private func run() {
    defer { isOver.store(true, ordering: .releasing) }
    MosquittoClient.prepareThread()
    awaitFormer()
    var opening = MQTTOpening(
      configuration, patience: times.answer, stop: stopping.fileDescriptor, delays: times.versionDelays)
    var session = MQTTSession(configuration, history, feed, after: position, delays: times.refusalDelays)
    var log = ConnectionLog("mqtt \(configuration.target.authority)", reports)
    var delays = (lost: RetryBackOff(times.delays), refused: RetryBackOff(times.refusalDelays))
    while !stopping.hasFired() {
      let ending = attempt(&opening, &session, &log)
      var isEnded = false
      if case .lost(.ended, _) = ending { isEnded = true }
      session.forgetItems(isEndedByBroker: isEnded, at: .now())
      noteOutcomes(&session, &log)
      let delay: Duration
      switch ending {
      case .stopped: return
      case .renewed: continue
      case .lost(let error, let duration):
        log.failed(error, after: duration)
        if duration >= ConnectionLog.stable { delays.lost.reset() }
        if duration > .zero { delays.refused.reset() }
        delay = delays.lost.failed()
      case .refused(let reason):
        log.refused(reason)
        delay = delays.refused.failed()
      }
      counts.count(.mqtt) { $0.failed += 1 }
      note(dropped: session.takeDropped(), &log)
      _ = stopping.wait(until: .now() + delay)
    }
  }

  private func awaitFormer() {
    let former = former.withLock { $0.take() }
    let deadline = Instant.now() + times.succession
    while former?.hasEnded == false, .now() < deadline, stopping.wait(until: .now() + .milliseconds(10)) {}
    // It has gone on until now.
    if let former { lastFinished.store(max(position, former.position), ordering: .relaxed) }
  }

  private func note(dropped count: UInt64, _ log: inout ConnectionLog) {
    log.dropped(count)
    counts.count(.mqtt) { $0.dropped += count }
  }

  // MARK: One connection

  /// Connects to the broker, and keeps it informed until the connection ends.
  private func attempt(
    _ opening: inout MQTTOpening, _ session: inout MQTTSession, _ log: inout ConnectionLog
  ) -> Ending {
    let will = MosquittoClient.Will(topic: configuration.topics.status, text: "offline")
    switch opening.open(configuration.clientIdentifier, will) {
    case .refused(let reason): return .refused(reason)
    case .failed(.stopped): return .stopped
    case .failed(let error): return stopping.hasFired() ? .stopped : .lost(error, after: .zero)
    case .open(let client, let version):
      let started = Instant.now()
      counts.setConnected(true)
      // Another sender may have taken the place of one that has hung without a connection.
      defer { counts.setConnected(false) }
      do throws(ExchangeError) {
        try session.begin(client, at: started)
        let isRenewed = try serve(client, by: version, &session, &log) { opening.isFiveDue(at: $0) }
        return isRenewed ? .renewed : .stopped
      } catch .stopped {
        return .stopped
      } catch {
        // What breaks during the farewell is no loss.
        if stopping.hasFired() { return .stopped }
        if client.isFlooded { session.stopListening(at: .now()) }
        return .lost(error, after: .now() - started)
      }
    }
  }

  /// Keeps the broker informed until the connection is lost, or the sender is stopped. Returns `true` if another connection is to
  /// follow at once.
  ///
  /// - Parameter isRenewalDue: returns `true` once another version of MQTT is to be tried.
  private func serve(
    _ client: MosquittoClient, by version: MosquittoClient.Version, _ session: inout MQTTSession,
    _ log: inout ConnectionLog, isRenewalDue: (Instant) -> Bool
  ) throws(ExchangeError) -> Bool {
    let started = Instant.now()
    var isHeard = false
    while true {
      if stopping.hasFired() {
        try end(client, &session, &log)
        return false
      }
      note(dropped: session.takeDropped(), &log)
      try session.send(client, at: .now())
      noteOutcomes(&session, &log)
      // Without the will: the program goes on.
      if isHeard, session.isIdle, isRenewalDue(.now()) {
        client.disconnect()
        return true
      }
      // Looks at the figures, and at the broker's signs of life, once a second.
      let isReady: Bool
      do throws(ExchangeError) {
        let pause = client.hasEvents ? Duration.zero : .seconds(1)
        isReady = try wait(client, isWriting: client.wantsWriting, until: .now() + pause)
      } catch .stopped {
        continue
      }
      let failure = Self.failure { () throws(ExchangeError) in
        if isReady { try client.advance() } else { try client.keepAlive() }
      }
      // What came before the end of the connection counts.
      for event in client.takeEvents() {
        switch event {
        case .acknowledged(let number, let refusal):
          isHeard = true
          session.acknowledged(number, refusal: refusal, at: .now())
        case .message(let topic, let payload, let isRetained):
          session.take(topic: topic, payload: payload, isRetained: isRetained, at: .now())
        case .connected, .refused: break
        }
      }
      // The log tells the connection before the events that came through it.
      if isHeard, failure == nil { log.connected(for: .now() - started, by: version) }
      noteOutcomes(&session, &log)
      if let failure { throw failure }
    }
  }

  /// Returns the error of `body`; nil for none.
  private static func failure(_ body: () throws(ExchangeError) -> Void) -> ExchangeError? {
    do throws(ExchangeError) {
      try body()
      return nil
    } catch {
      return error
    }
  }

  /// Counts and tells what became of messages.
  private func noteOutcomes(_ session: inout MQTTSession, _ log: inout ConnectionLog) {
    for outcome in session.takeOutcomes() {
      switch outcome {
      case .sent(let alert):
        lastFinished.store(alert.id, ordering: .relaxed)
        counts.count(.mqtt) { $0.sent += 1 }
        log.delivered()
      case .lost(let alert, let loss, let reason):
        lastFinished.store(alert.id, ordering: .relaxed)
        counts.count(.mqtt) { $0.lose(loss) }
        log.lost(reason)
      case .postponed(let reason):
        counts.count(.mqtt) { $0.failed += 1 }
        log.postponed(reason)
      case .refused(let topic, let reason): log.refused(topic, reason)
      }
    }
  }

  /// Tells the broker that the program ends, and waits a moment until it knows, and has the event that is on its way.
  private func end(
    _ client: MosquittoClient, _ session: inout MQTTSession, _ log: inout ConnectionLog
  ) throws(ExchangeError) {
    var last = try session.end(client)
    let now = Instant.now()
    while last != nil || session.hasEvent {
      let deadline = now + (session.hasEvent ? times.lastEvent : times.farewell)
      let rest = deadline - .now()
      guard rest > .zero else { break }
      var failure: ExchangeError?
      if !client.hasEvents {
        var polled = pollfd(fd: client.socket, events: Int16(POLLIN | (client.wantsWriting ? POLLOUT : 0)), revents: 0)
        _ = nightjar_poll(&polled, 1, rest.nanoseconds)
        failure = Self.failure { () throws(ExchangeError) in try client.advance() }
      }
      for event in client.takeEvents() {
        guard case .acknowledged(let number, let refusal) = event else { continue }
        if number == last { last = nil } else { session.acknowledged(number, refusal: refusal, at: .now()) }
      }
      noteOutcomes(&session, &log)
      if let failure { throw failure }
    }
    client.disconnect()
  }

  /// Waits for the socket, for something to send, or for the end. Returns `true` if the socket is ready.
  ///
  /// - Throws: ``ExchangeError/stopped``.
  private func wait(_ client: MosquittoClient, isWriting: Bool, until limit: Instant) throws(ExchangeError) -> Bool {
    guard client.socket >= 0 else { throw .ended }
    var polled = [
      pollfd(fd: client.socket, events: Int16(POLLIN | (isWriting ? POLLOUT : 0)), revents: 0),
      pollfd(fd: wake.fileDescriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: stopping.fileDescriptor, events: Int16(POLLIN), revents: 0),
    ]
    guard nightjar_poll(&polled, UInt32(polled.count), max(0, (limit - .now()).nanoseconds)) > 0 else { return false }
    if polled[2].revents != 0 { throw .stopped }
    if polled[1].revents != 0 { wake.clear() }
    return polled[0].revents != 0
  }
}
