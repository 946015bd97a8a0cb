import CLinux
import CMosquitto
import Glibc
import Platform

/// The way to a connection with a broker: its addresses, the versions of MQTT, and its answer. It blocks, and so has a thread of its
/// own, which ``MosquittoClient/prepareThread()`` has prepared.
struct MQTTOpening {
  /// The end of an attempt.
  enum Result {
    case open(MosquittoClient, MosquittoClient.Version)
    /// The broker does not want the connection.
    case refused(String)
    case failed(ExchangeError)
  }

  private let configuration: MQTTConfiguration
  /// The time from the first packet to the broker's answer.
  private let patience: Duration
  /// The descriptor that can be read once the attempt is to end; -1 for none.
  private let stop: CInt
  /// The last manner that the broker has answered to.
  private var manner = Manner()
  /// The attempts without an answer since the last one.
  private var failures = 0
  /// The delays before MQTT 5 is tried again at a broker that was silent to it.
  private var delays: RetryBackOff
  /// The delay before MQTT 5 is tried again at a broker that has refused it.
  private let longestDelay: Duration

  /// The attempts without an answer after which the broker may be another one.
  static let failureLimit = 3
  /// The usual delays before MQTT 5 is tried again.
  static let delays = Duration.seconds(300)...Duration.seconds(86_400)

  /// The manner in which the broker is spoken to.
  private struct Manner {
    var version = MosquittoClient.Version.five
    /// `true` once the broker has taken a connection in this manner. Then silence and an end are no signs of another version.
    var isProven = false
    /// `true` if the broker was silent to MQTT 5, and has not refused it: that may have been a bad moment of the network.
    var isGuess = false
    /// The time at which MQTT 5 is tried again after a guess.
    var nextFive: Instant?
    var willQuality: CInt = 1
    var retainsWill = true

    /// Adapts itself to a refusal by MQTT 5; returns `false` if it cannot.
    mutating func adapt(to code: CInt) -> Bool {
      guard version == .five else { return false }
      switch code {
      // 1 is what brokers from before MQTT 5 say (MQTT 3.1.1 section 3.2.2.3).
      case nightjar_MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION, 1: (version, isProven, isGuess) = (.threeOneOne, false, false)
      // The will is the only message whose quality the broker judges before it names its own.
      case nightjar_MQTT_RC_QOS_NOT_SUPPORTED where willQuality > 0: willQuality = 0
      case nightjar_MQTT_RC_RETAIN_NOT_SUPPORTED where retainsWill: retainsWill = false
      default: return false
      }
      return true
    }

    /// Returns a will as the broker takes it.
    func will(_ will: MosquittoClient.Will?) -> MosquittoClient.Will? {
      will.map {
        MosquittoClient.Will(topic: $0.topic, text: $0.text, quality: willQuality, isRetained: retainsWill)
      }
    }
  }

  init(
    _ configuration: MQTTConfiguration, patience: Duration, stop: CInt, delays: ClosedRange<Duration> = Self.delays
  ) {
    (self.configuration, self.patience, self.stop) = (configuration, patience, stop)
    (self.delays, longestDelay) = (RetryBackOff(delays), delays.upperBound)
  }

  /// Returns `true` if the next connection is to try MQTT 5 again.
  func isFiveDue(at now: Instant) -> Bool { manner.nextFive.map { $0 <= now } ?? false }

  /// Connects to the broker by each family of its addresses in turn, until it answers: by MQTT 5, and by MQTT 3.1.1 if it does not
  /// speak that. What the broker answers to is remembered for the next calls; after some without an answer it may be another broker.
  /// A broker that was silent to MQTT 5, and has not refused it, is asked by MQTT 5 again later.
  ///
  /// - Parameters:
  ///   - identifier: the client's name at the broker.
  ///   - will: nil for none.
  mutating func open(_ identifier: String, _ will: MosquittoClient.Will?) -> Result {
    if isFiveDue(at: .now()) || failures >= Self.failureLimit { manner = Manner() }
    let result = attempt(identifier, will)
    if case .failed = result { failures += 1 } else { failures = 0 }
    return result
  }

  private mutating func attempt(_ identifier: String, _ will: MosquittoClient.Will?) -> Result {
    let target = configuration.target
    var failure = ExchangeError.system("its name has no address")
    var families: [Bool] = []
    do throws(ExchangeError) {
      for address in try ResolvedAddress.all(of: target.host, port: target.port, by: .now() + patience)
      where !families.contains(address.isIPv6) { families.append(address.isIPv6) }
    } catch {
      failure = error
    }
    for isIPv6 in families {
      var manner = self.manner
      // The manner adapts itself a few times at most.
      while true {
        do throws(ExchangeError) {
          let client = try MosquittoClient(
            configuration, identifier: identifier, will: manner.will(will), version: manner.version)
          try client.connect(to: target, isIPv6: families.count > 1 ? isIPv6 : nil)
          switch try answer(to: client, mayBeOlder: manner.version == .five && !manner.isProven) {
          case .accepted:
            manner.isProven = true
            remember(manner)
            return .open(client, manner.version)
          case .refused(let code):
            if manner.adapt(to: code) { continue }
            // One that refuses MQTT 5, or answers by MQTT 3.1.1 alone, gets no other question because of a wrong password. One that
            // refuses MQTT 3.1.1 has taken the place of an older one.
            if code != 1 { remember(manner) } else if self.manner.version == .threeOneOne { self.manner = Manner() }
            return .refused(Self.text(ofRefusal: code))
          case .otherVersion:
            (manner.version, manner.isGuess) = (.threeOneOne, true)
            continue
          }
        } catch .stopped {
          return .failed(.stopped)
        } catch {
          failure = error
        }
        break
      }
    }
    return .failed(failure)
  }

  /// Keeps the manner for the next calls.
  private mutating func remember(_ answered: Manner) {
    let isNew = answered.version == .threeOneOne && answered.nextFive == nil
    manner = answered
    // A broker that has refused MQTT 5 speaks it after an upgrade.
    if isNew { manner.nextFive = .now() + (answered.isGuess ? delays.failed() : longestDelay) }
    if answered.version == .five { delays.reset() }
  }

  /// A broker's answer to a connection.
  private enum Answer {
    case accepted
    /// It does not want the connection, by this code.
    case refused(CInt)
    /// It has ended the connection instead of an answer, or gives none, as brokers from before MQTT 5 may do.
    case otherVersion
  }

  /// Waits for the broker's answer to the connection.
  ///
  /// - Parameter mayBeOlder: `true` if an end or silence may be the answer of a broker that does not speak MQTT 5.
  private func answer(to client: MosquittoClient, mayBeOlder: Bool) throws(ExchangeError) -> Answer {
    let deadline = Instant.now() + patience
    var isReached = false
    while true {
      let now = Instant.now()
      guard now < deadline else {
        if isReached, mayBeOlder { return .otherVersion }
        throw .time(isReached ? "it takes the connection and does not answer" : "it does not take the connection")
      }
      // libmosquitto does not say which way TLS wants to go.
      let isInHandshake = isReached && configuration.target.isSecure
      let limit = isInHandshake ? min(deadline, now + .milliseconds(20)) : deadline
      do throws(ExchangeError) {
        let isWriting = isInHandshake ? false : !isReached || client.wantsWriting
        let isReady = try wait(client, isWriting: isWriting, until: limit)
        // A connection that is lost within the handshake is no error to libmosquitto.
        if isReady, !isReached || isInHandshake {
          try Self.requireConnection(client.socket)
          isReached = true
        }
        if isReady || isInHandshake { try client.advance() }
      } catch {
        guard mayBeOlder, isReached, error.isOfOtherSide, client.complaint == nil else { throw error }
        return .otherVersion
      }
      for event in client.takeEvents() {
        switch event {
        case .connected: return .accepted
        case .refused(let code): return .refused(code)
        case .acknowledged, .message: break
        }
      }
    }
  }

  /// Waits for the socket. Returns `true` if it is ready.
  ///
  /// - Throws: ``ExchangeError``, as `stopped`.
  private func wait(_ client: MosquittoClient, isWriting: Bool, until limit: Instant) throws(ExchangeError) -> Bool {
    guard client.socket >= 0 else { throw .ended }
    var polled = [
      pollfd(fd: client.socket, events: Int16(POLLIN | (isWriting ? POLLOUT : 0)), revents: 0),
      pollfd(fd: stop, events: Int16(POLLIN), revents: 0),
    ]
    guard nightjar_poll(&polled, UInt32(polled.count), max(0, (limit - .now()).nanoseconds)) > 0 else { return false }
    if polled[1].revents != 0 { throw .stopped }
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

  /// Returns the meaning of a code of MQTT 3.1.1 section 3.2.2.3, or of MQTT 5 section 3.2.2.2.
  private static func text(ofRefusal code: CInt) -> String {
    switch code {
    case 1: "it does not speak MQTT 3.1.1"
    case 2, 133: "it refuses the client's name"
    case 3, 136, 137: "it is not available"
    case 4, 5, 134, 135: "it refuses the user or the password; look into the file of --mqtt-login"
    default: "it refuses the connection with code \(code)"
    }
  }
}
