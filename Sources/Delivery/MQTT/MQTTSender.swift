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
    var answer = Duration.seconds(5)
    /// The delays after a loss or a failure. The longest decides how soon all is back after a restart of the broker.
    var delays = Duration.milliseconds(250)...Duration.seconds(2)
    /// The delays after a refusal, which mostly lasts until somebody mends it.
    var refusalDelays = Duration.seconds(2)...Duration.seconds(30)

    /// Creates the usual times.
    package init() {}
  }

  /// The time that the last message may take.
  private static let farewell = Duration.milliseconds(300)
  /// The time in which a former sender ends its connection.
  private static let succession = Duration.seconds(2)

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
  }

  private func run() {
    defer { isOver.store(true, ordering: .releasing) }
    // libmosquitto writes to sockets that the other side may have closed.
    var pipe = sigset_t()
    sigemptyset(&pipe)
    sigaddset(&pipe, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &pipe, nil)
    awaitFormer()
    var session = MQTTSession(configuration, history, feed, after: position)
    var log = ConnectionLog("mqtt \(configuration.target.authority)", reports)
    var delays = (lost: RetryBackOff(times.delays), refused: RetryBackOff(times.refusalDelays))
    while !stopping.hasFired() {
      let ending = attempt(&session, &log)
      session.forgetItems()
      let delay: Duration
      switch ending {
      case .stopped: return
      case .lost(let error, let duration):
        log.failed(error.reason, after: duration)
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
    let deadline = Instant.now() + Self.succession
    while former?.hasEnded == false, .now() < deadline, stopping.wait(until: .now() + .milliseconds(10)) {}
    // It has gone on until now.
    if let former { lastFinished.store(max(position, former.position), ordering: .relaxed) }
  }

  private func note(dropped count: UInt64, _ log: inout ConnectionLog) {
    log.dropped(count)
    counts.count(.mqtt) { $0.dropped += count }
  }

  // MARK: One connection

  /// Connects to the broker by each family of its addresses in turn, and serves the first connection that the broker answers.
  private func attempt(_ session: inout MQTTSession, _ log: inout ConnectionLog) -> Ending {
    let target = configuration.target
    var failure = ExchangeError.system("its name has no address")
    var families: [Bool] = []
    do throws(ExchangeError) {
      for address in try ResolvedAddress.all(of: target.host, port: target.port, by: .now() + times.answer)
      where !families.contains(address.isIPv6) { families.append(address.isIPv6) }
    } catch {
      failure = error
    }
    for isIPv6 in families where !stopping.hasFired() {
      var started: Instant?
      // Another sender may have taken the place of one that has hung without a connection.
      defer { if started != nil { counts.setConnected(false) } }
      do throws(ExchangeError) {
        let will = MosquittoClient.Will(topic: configuration.topics.status, text: "offline")
        let client = try MosquittoClient(configuration, will: will)
        try client.connect(to: target, isIPv6: families.count > 1 ? isIPv6 : nil)
        if let refusal = try open(client) { return .refused(refusal) }
        started = .now()
        counts.setConnected(true)
        try session.begin(client)
        try serve(client, &session, &log)
        return .stopped
      } catch .stopped {
        return .stopped
      } catch {
        if let started { return .lost(error, after: .now() - started) }
        failure = error
      }
    }
    return stopping.hasFired() ? .stopped : .lost(failure, after: .zero)
  }

  /// Waits for the broker's answer to the connection. Returns the reason of its refusal.
  private func open(_ client: MosquittoClient) throws(ExchangeError) -> String? {
    let deadline = Instant.now() + times.answer
    var isReached = false
    while true {
      let now = Instant.now()
      guard now < deadline else {
        throw .time(isReached ? "it takes the connection and does not answer" : "it does not take the connection")
      }
      // libmosquitto does not say which way TLS wants to go.
      let isInHandshake = isReached && configuration.target.isSecure
      let limit = isInHandshake ? min(deadline, now + .milliseconds(20)) : deadline
      let isReady = try wait(client, isWriting: isInHandshake ? false : !isReached || client.wantsWriting, until: limit)
      // A connection that is lost within the handshake is no error to libmosquitto.
      if isReady, !isReached || isInHandshake {
        try Self.requireConnection(client.socket)
        isReached = true
      }
      if isReady || isInHandshake { try client.advance() }
      for event in client.takeEvents() {
        switch event {
        case .connected: return nil
        case .refused(let code): return Self.text(ofRefusal: code)
        case .acknowledged, .message: break
        }
      }
    }
  }

  /// Keeps the broker informed until the connection is lost, or the sender is stopped.
  private func serve(
    _ client: MosquittoClient, _ session: inout MQTTSession, _ log: inout ConnectionLog
  ) throws(ExchangeError) {
    let started = Instant.now()
    var isHeard = false
    while true {
      if stopping.hasFired() {
        try end(client, session)
        return
      }
      if isHeard { log.connected(for: .now() - started) }
      note(dropped: session.takeDropped(), &log)
      try session.send(client, at: .now())
      // Looks at the figures, and at the broker's signs of life, once a second.
      let isReady: Bool
      do throws(ExchangeError) {
        isReady = try wait(client, isWriting: client.wantsWriting, until: .now() + .seconds(1))
      } catch .stopped {
        continue
      }
      if isReady { try client.advance() } else { try client.keepAlive() }
      for event in client.takeEvents() {
        switch event {
        case .acknowledged(let number):
          isHeard = true
          guard let alert = session.acknowledged(number) else { continue }
          lastFinished.store(alert.id, ordering: .relaxed)
          counts.count(.mqtt) { $0.sent += 1 }
        case .message(let topic, let payload, let isRetained):
          session.take(topic: topic, payload: payload, isRetained: isRetained, at: .now())
        case .connected, .refused: break
        }
      }
    }
  }

  /// Tells the broker that the program ends, and waits a moment until it knows.
  private func end(_ client: MosquittoClient, _ session: MQTTSession) throws(ExchangeError) {
    let last = try session.end(client)
    let deadline = Instant.now() + Self.farewell
    while .now() < deadline {
      var polled = pollfd(fd: client.socket, events: Int16(POLLIN | (client.wantsWriting ? POLLOUT : 0)), revents: 0)
      _ = nightjar_poll(&polled, 1, max(0, (deadline - .now()).nanoseconds))
      try client.advance()
      if client.takeEvents().contains(where: { if case .acknowledged(last) = $0 { true } else { false } }) { break }
    }
    client.disconnect()
  }

  /// Waits for the socket, for something to send, or for the end. Returns `true` if the socket is ready.
  ///
  /// - Throws: ``ExchangeError/stopped``.
  private func wait(_ client: MosquittoClient, isWriting: Bool, until limit: Instant) throws(ExchangeError) -> Bool {
    guard client.socket >= 0 else { throw .system("it has ended the connection") }
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

  /// Checks that TCP has connected.
  private static func requireConnection(_ socket: CInt) throws(ExchangeError) {
    var (error, size): (CInt, socklen_t) = (0, 4)
    guard getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0, error == 0 else {
      throw .system("\(SystemFailure.text(error == 0 ? errno : error))")
    }
    // TLS has tried to write before, and has got the error in this place.
    var address = sockaddr_storage()
    size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let isConnected = withUnsafeMutableBytes(of: &address) { bytes in
      bytes.baseAddress.map { getpeername(socket, $0.assumingMemoryBound(to: sockaddr.self), &size) } == 0
    }
    guard isConnected else { throw .system("it does not take the connection") }
  }

  /// Returns the meaning of a code of MQTT 3.1.1 section 3.2.2.3.
  static func text(ofRefusal code: Int) -> String {
    switch code {
    case 1: "it does not speak MQTT 3.1.1"
    case 2: "it refuses the client's name"
    case 3: "it is not available"
    case 4, 5: "it refuses the user or the password; look into the file of --mqtt-login"
    default: "it refuses the connection with code \(code)"
    }
  }
}
