import CLinux
import CMosquitto
import Glibc
import Platform

/// One connection to an MQTT broker, by libmosquitto. Confined to one thread, whose signal mask has SIGPIPE.
///
/// libmosquitto's own loop waits in `select`, which no descriptor above 1023 goes through; so the owner polls ``socket``, and calls
/// ``advance()``.
package final class MosquittoClient {
  /// The broker's words.
  enum Event {
    /// It has taken the connection.
    case connected
    /// It has refused the connection, with this code (MQTT 3.1.1 section 3.2.2.3, or MQTT 5 section 3.2.2.2).
    case refused(CInt)
    /// It has the message of this number, or does not take it.
    case acknowledged(CInt, refusal: Refusal?)
    case message(topic: String, payload: [UInt8], isRetained: Bool)
  }

  /// The reason why a broker does not take a message (MQTT 5 section 3.4.2.1).
  struct Refusal {
    /// The broker's words for it.
    let reason: String
    /// `true` if another attempt would end in the same way.
    let isFinal: Bool

    init(_ code: CInt) {
      reason = MosquittoClient.words(ofReason: code)
      let lasting = [
        nightjar_MQTT_RC_NOT_AUTHORIZED, nightjar_MQTT_RC_TOPIC_NAME_INVALID, nightjar_MQTT_RC_PAYLOAD_FORMAT_INVALID,
      ]
      isFinal = lasting.contains(code)
    }
  }

  /// A version of MQTT.
  enum Version {
    /// MQTT 5, by which the broker sends no packet of more than ``MosquittoClient/packetLimit`` bytes.
    case five
    /// MQTT 3.1.1, in which the broker limits no packet: beyond ``MosquittoClient/patienceLimit`` the connection ends.
    case threeOneOne
  }

  /// A message that the broker tells others once the connection is lost.
  struct Will {
    let topic: String
    let text: String
    /// The quality of service: 0 or 1.
    var quality: CInt = 1
    var isRetained = true
  }

  /// The words for a connection that another client of the same name has ended.
  static let takenOver = "another client has its name there; give each program a --mqtt-prefix of its own"

  /// The seconds without a message after which each side asks the other for a sign of life.
  static let keepAlive: CInt = 10
  /// The longest message of the broker that is looked at, in bytes.
  private static let messageLimit = 4096
  /// The largest packet that a broker may send by MQTT 5, in bytes: a message, and a topic of its own.
  static let packetLimit: UInt32 = 8192
  /// The bytes without a whole packet, by any version, after which the connection is given up.
  static let patienceLimit = 1 << 20
  /// The most messages that are kept between two calls of ``takeEvents()``; more topics do not wait for their removal.
  private static let eventLimit = RetainedMessages.removalLimit + 100

  private let client: OpaquePointer
  /// The beginning of the line by which libmosquitto tells of a whole packet.
  private let sign: String
  private var metered: MeteredSocket?
  /// The bytes that libmosquitto has got since the last whole packet.
  private var incomplete = 0
  private var events: [Event] = []
  /// The largest packet that the broker takes, in bytes; 0 if it has named none.
  private var packetSize: UInt32 = 0
  /// The quality of service of messages: 1, unless the broker offers 0 alone.
  private var quality: CInt = 1
  /// The first error that libmosquitto has logged during this connection.
  private(set) var complaint: String?

  /// Once in a process.
  private static let library: Void = { _ = mosquitto_lib_init() }()

  /// Prepares the thread of clients: libmosquitto writes to sockets that the other side may have closed.
  static func prepareThread() {
    var pipe = sigset_t()
    sigemptyset(&pipe)
    sigaddset(&pipe, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &pipe, nil)
  }

  /// Creates a client that is not connected.
  ///
  /// - Throws: ``ExchangeError`` if there is no memory left, or the authorities cannot be read.
  init(
    _ configuration: MQTTConfiguration, identifier: String, will: Will?, version: Version
  ) throws(ExchangeError) {
    Self.library
    guard let client = mosquitto_new(identifier, true, nil) else {
      throw .system("libmosquitto: \(SystemFailure.text(errno))")
    }
    self.client = client
    sign = "Client \(identifier) received "
    mosquitto_user_data_set(client, Unmanaged.passUnretained(self).toOpaque())
    mosquitto_connect_v5_callback_set(client) { _, owner, code, _, properties in
      MosquittoClient.of(owner).answered(code, properties)
    }
    mosquitto_publish_v5_callback_set(client) { _, owner, number, code, _ in
      let refusal = code >= nightjar_MQTT_RC_UNSPECIFIED ? Refusal(code) : nil
      MosquittoClient.of(owner).add(.acknowledged(number, refusal: refusal))
    }
    mosquitto_message_callback_set(client) { _, owner, message in
      MosquittoClient.of(owner).take(message?.pointee)
    }
    mosquitto_disconnect_callback_set(client) { _, owner, reason in
      guard reason == nightjar_MQTT_RC_SESSION_TAKEN_OVER else { return }
      MosquittoClient.of(owner).note(MosquittoClient.takenOver)
    }
    mosquitto_log_callback_set(client) { _, owner, level, text in
      guard let text else { return }
      switch level {
      case nightjar_MOSQ_LOG_ERR: MosquittoClient.of(owner).note(String(cString: text))
      case nightjar_MOSQ_LOG_DEBUG: MosquittoClient.of(owner).noteProgress(String(cString: text))
      default: break
      }
    }
    _ = mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1)
    if version == .five {
      try check(mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5))
      try check(nightjar_limit_packets(client, Self.packetLimit))
    }
    if let will {
      let text = Array(will.text.utf8)
      try check(mosquitto_will_set(client, will.topic, CInt(text.count), text, will.quality, will.isRetained))
    }
    if let login = configuration.login {
      try check(mosquitto_username_pw_set(client, login.user, login.password))
    }
    guard configuration.target.isSecure else { return }
    // The broker's certificate and name are checked by default, and TLS is 1.2 at least.
    if let authorities = configuration.authorities {
      guard mosquitto_tls_set(client, authorities, nil, nil, nil, nil) == nightjar_MOSQ_ERR_SUCCESS else {
        throw .system("--mqtt-ca \(authorities) cannot be read")
      }
    } else {
      try check(mosquitto_int_option(client, MOSQ_OPT_TLS_USE_OS_CERTS, 1))
    }
  }

  deinit {
    mosquitto_log_callback_set(client, nil)
    mosquitto_disconnect_callback_set(client, nil)
    mosquitto_destroy(client)
  }

  private static func of(_ owner: UnsafeMutableRawPointer?) -> MosquittoClient {
    guard let owner else { preconditionFailure("libmosquitto has lost a pointer") }
    return Unmanaged<MosquittoClient>.fromOpaque(owner).takeUnretainedValue()
  }

  private func add(_ event: Event) { events.append(event) }

  /// Takes the broker's answer to the connection.
  private func answered(_ code: CInt, _ properties: OpaquePointer?) {
    packetSize = nightjar_maximum_packet_size(properties)
    quality = min(1, nightjar_maximum_qos(properties))
    add(code == 0 ? .connected : .refused(code))
  }

  /// Returns the meaning of a code of MQTT 5 section 2.4, as a part of a sentence.
  private static func words(ofReason code: CInt) -> String {
    let words = mosquitto_reason_string(code).map { plain(String(cString: $0)[...]) } ?? "code \(code)"
    return words.prefix(1).lowercased() + words.dropFirst()
  }

  private func take(_ message: mosquitto_message?) {
    // Whoever floods is left unheard. Acknowledgements are no more than the messages on their way.
    guard let message, let topic = message.topic, (0...CInt(Self.messageLimit)).contains(message.payloadlen),
      events.count < Self.eventLimit
    else { return }
    let payload = UnsafeRawBufferPointer(start: message.payload, count: Int(message.payloadlen))
    add(.message(topic: String(cString: topic), payload: Array(payload), isRetained: message.retain))
  }

  private func noteProgress(_ text: String) {
    if text.hasPrefix(sign) { incomplete = 0 }
  }

  private func note(_ text: String) {
    // As in "OpenSSL Error[0]: error:0A000086:SSL routines::certificate verify failed".
    guard complaint == nil else { return }
    let isOfOpenSSL = text.hasPrefix("OpenSSL Error")
    let plain = isOfOpenSSL || text.hasPrefix("Error:") ? text.split(separator: ":").last ?? text[...] : text[...]
    complaint = Self.plain(plain)
  }

  /// Returns a sentence, which may have a line feed, as a part of another one.
  private static func plain(_ text: Substring) -> String {
    let words = text.drop { $0 == " " }.prefix { !$0.isNewline }.prefix(200)
    return String(words.hasSuffix(".") ? words.dropLast() : words)
  }

  /// Begins to connect. The name is resolved once more, by libmosquitto, which may wait for a name server.
  ///
  /// - Parameter isIPv6: the family of the addresses to try; nil for any.
  /// - Throws: ``ExchangeError``.
  func connect(to target: MQTTTarget, isIPv6: Bool?) throws(ExchangeError) {
    // An address to bind to has a family, and libmosquitto takes only addresses of the broker that go with it.
    let own = isIPv6.map { $0 ? "::" : "0.0.0.0" }
    try check(mosquitto_connect_bind_async(client, target.host, CInt(target.port), Self.keepAlive, own))
    do throws(SystemFailure) {
      metered = try MeteredSocket(mosquitto_socket(client))
    } catch {
      throw .system("\(error)")
    }
  }

  /// The connection's descriptor; -1 without a connection.
  var socket: CInt { mosquitto_socket(client) < 0 ? -1 : metered?.number ?? -1 }

  /// `true` if something waits for room in the socket.
  var wantsWriting: Bool { mosquitto_want_write(client) || metered?.isWaiting == true }

  /// `true` if the connection was given up because of a packet of more than ``patienceLimit`` bytes.
  private(set) var isFlooded = false

  /// Reads and writes as much as there is, a portion at most. Also continues the handshake of TLS.
  ///
  /// - Throws: ``ExchangeError`` if the connection is lost.
  func advance() throws(ExchangeError) {
    defer { metered?.flush() }
    incomplete += try metered?.receive() ?? 0
    // A call takes a few packets. Each takes a byte at least.
    for _ in 0..<MeteredSocket.portion {
      try check(mosquitto_loop_read(client, 1))
      if unread == 0 { break }
    }
    if incomplete > Self.patienceLimit {
      isFlooded = true
      throw .system("messages of more than \(Self.patienceLimit >> 20) MiB come from it")
    }
    if mosquitto_want_write(client) { try check(mosquitto_loop_write(client, 1)) }
    try check(mosquitto_loop_misc(client))
    // Within the handshake of TLS, libmosquitto takes no notice of an end.
    guard metered?.isEnded == true else { return }
    if let complaint { throw .system(complaint) }
    throw .ended
  }

  /// The bytes that libmosquitto has not read yet.
  private var unread: CInt {
    var count: CInt = 0
    let descriptor = mosquitto_socket(client)
    guard descriptor >= 0, nightjar_ioctl(descriptor, UInt(FIONREAD), &count) == 0 else { return 0 }
    return count
  }

  /// Asks for a sign of life where it is due.
  ///
  /// - Throws: ``ExchangeError`` if none has come in time.
  func keepAlive() throws(ExchangeError) {
    defer { metered?.flush() }
    try check(mosquitto_loop_misc(client))
  }

  /// Sends a message that the broker has to acknowledge (QoS 1); returns its number, or nil for one that is larger than the broker
  /// takes. A broker that offers QoS 0 alone acknowledges nothing: such a message counts as acknowledged once it is in the socket.
  ///
  /// - Throws: ``ExchangeError``.
  func publish(_ topic: String, _ payload: [UInt8], isRetained: Bool) throws(ExchangeError) -> CInt? {
    // libmosquitto counts one byte too few, and keeps a message whose turn comes later for good.
    guard packetSize == 0 || Self.size(of: topic, payload) <= Int(packetSize) else { return nil }
    defer { metered?.flush() }
    var number: CInt = 0
    let result = mosquitto_publish(client, &number, topic, CInt(payload.count), payload, quality, isRetained)
    if result == nightjar_MOSQ_ERR_OVERSIZE_PACKET { return nil }
    try check(result)
    return number
  }

  /// Returns the length of the packet of a message by MQTT 5, in bytes, with the number of an acknowledgement (section 3.3).
  package static func size(of topic: String, _ payload: [UInt8]) -> Int {
    // The length of the topic, the number, and no properties.
    let rest = 2 + topic.utf8.count + 2 + 1 + payload.count
    let digits = rest < 1 << 7 ? 1 : rest < 1 << 14 ? 2 : rest < 1 << 21 ? 3 : 4
    return 1 + digits + rest
  }

  /// Has the broker send the messages of the topics that `filter` selects.
  ///
  /// - Throws: ``ExchangeError``.
  func subscribe(_ filter: String) throws(ExchangeError) {
    defer { metered?.flush() }
    try check(mosquitto_subscribe(client, nil, filter, 1))
  }

  /// Ends the connection in order, without the will. Does not wait.
  func disconnect() {
    mosquitto_disconnect(client)
    metered?.flush()
  }

  /// `true` if the broker has said something that was not taken yet.
  var hasEvents: Bool { !events.isEmpty }

  /// Returns and removes what the broker has said.
  func takeEvents() -> [Event] {
    defer { events.removeAll(keepingCapacity: true) }
    return events
  }

  /// The reason for the connection's end, as libmosquitto has logged it.
  private func check(_ result: CInt) throws(ExchangeError) {
    guard result != nightjar_MOSQ_ERR_SUCCESS, result != nightjar_MOSQ_ERR_CONN_PENDING else { return }
    let errorNumber = errno
    // The code of a refusal is among the events.
    if events.contains(where: { if case .refused = $0 { true } else { false } }) { return }
    if let complaint { throw .system(complaint) }
    switch result {
    case nightjar_MOSQ_ERR_ERRNO where errorNumber != EPIPE: throw .system(SystemFailure.text(errorNumber))
    case nightjar_MOSQ_ERR_ERRNO, nightjar_MOSQ_ERR_CONN_LOST, nightjar_MOSQ_ERR_NO_CONN: throw .ended
    case nightjar_MOSQ_ERR_KEEPALIVE: throw .time("it gives no sign of life")
    default: throw .system(mosquitto_strerror(result).map { Self.plain(String(cString: $0)[...]) } ?? "error \(result)")
    }
  }
}
