import Credentials
import Listening
import Media
import NIOCore
import RTP
import RTSP
import Streaming

/// One client's connection, on the event loop.
final class Connection {
  let number: UInt64
  let channel: any Channel
  /// The client's address without its port.
  let client: String
  let peer: PeerAddress?
  let table: SessionTable.Connection
  private unowned let service: Service
  private var parser = RequestParser()
  /// Requests that wait for the answer to the one before.
  private var waiting: [Request] = []
  private var isAnswering = false
  private(set) var isClosed = false
  /// Whether nothing more is read, because it is to be closed once the last word is out.
  private var isEnding = false
  /// Whether there is nothing more to answer.
  var isOver: Bool { isClosed || isEnding }
  /// Who has logged in here, by the hashes of then.
  var user: UsersFile.User?
  /// Whether anybody has: only logins are delayed.
  var hasLoggedIn: Bool { user != nil }
  /// When a request began that is not complete, and when the last one was.
  private var requestBegan: MediaTime?
  private(set) var lastRequest: MediaTime
  /// Whether it has sent a request.
  private(set) var hasAsked = false
  private let opened: MediaTime
  private var outgoing: OutgoingBytes
  /// Whether it is going to be looked at again how much has left.
  private var isWatched = false

  /// The most requests that a client may send ahead.
  static let pipelineLimit = 16
  /// How soon it is looked at again whether frames have left.
  static let watchInterval = TimeAmount.milliseconds(10)
  /// How long a BYE may take from the send thread to a connection.
  static let goodbyeTime = TimeAmount.milliseconds(200)

  init?(_ channel: any Channel, number: UInt64, isEncrypted: Bool, _ service: Service, at now: MediaTime) {
    guard let remote = channel.remoteAddress, let local = channel.localAddress, let client = Self.text(of: remote),
      let here = Self.text(of: local).map(Self.withoutZone), let address = ConnectionAddress(Self.withoutZone(client))
    else { return nil }
    self.number = number
    self.channel = channel
    outgoing = OutgoingBytes(channel)
    self.client = client
    self.service = service
    peer = PeerAddress(client)
    lastRequest = now
    opened = now
    let host = here.contains(":") ? "[\(here)]" : here
    table = SessionTable.Connection(
      identifier: number, client: address, authority: "\(host):\(local.port ?? 554)",
      scheme: isEncrypted ? .rtsps : .rtsp)
  }

  /// An address without its port; a link-local one with its interface, without which nothing can be sent there. One of
  /// IPv4 as such where it came to a socket of IPv6 that takes both, as systemd opens them (RFC 4291 section 2.5.5.2).
  private static func text(of address: NIOCore.SocketAddress) -> String? {
    guard let text = address.ipAddress, !text.contains("%") else { return address.ipAddress }
    if text.hasPrefix(mappedPrefix), let mapped = IPAddress(text.dropFirst(mappedPrefix.count)), !mapped.isIPv6 {
      return String(text.dropFirst(mappedPrefix.count))
    }
    // struct sockaddr_in6 of <netinet/in.h>: its interface is in the last four of 28 bytes.
    let scope: UInt32 = address.withSockAddr { pointer, size in
      guard address.protocol == .inet6, size >= 28 else { return 0 }
      return UnsafeRawPointer(pointer).loadUnaligned(fromByteOffset: 24, as: UInt32.self)
    }
    return scope == 0 ? text : "\(text)%\(scope)"
  }

  private static let mappedPrefix = "::ffff:"

  /// An IPv6 address without the interface that it is of.
  static func withoutZone(_ address: String) -> String {
    String(address.prefix { $0 != "%" })
  }

  /// Whether it is from this machine by its own name; the kernel lets no such address in from a network.
  var isFromHere: Bool { (try? Streaming.SocketAddress(host: client, port: 1))?.isLoopback ?? false }

  /// This side's address.
  var localAddress: ConnectionAddress? {
    channel.localAddress.flatMap(Self.text(of:)).flatMap { ConnectionAddress(Self.withoutZone($0)) }
  }

  // MARK: Reading

  /// Takes what the client has sent.
  func read(_ buffer: ByteBuffer, at now: MediaTime) {
    buffer.withUnsafeReadableBytes { bytes in
      var rest = bytes
      while !isOver {
        let message: ClientMessage?
        do throws(RequestError) {
          message = try parser.next(from: &rest)
        } catch {
          service.noteRefusal(of: self, AttributeFile.printable("no RTSP: \(error)"))
          waiting.removeAll()
          send(Response(to: error, sequenceNumber: parser.sequenceNumber))
          return closeSoon()
        }
        guard let message else { break }
        take(message, at: now)
      }
    }
    requestBegan = parser.isInsideMessage ? requestBegan ?? now : nil
  }

  private func take(_ message: ClientMessage, at now: MediaTime) {
    requestBegan = nil
    switch message {
    case .interleaved(let frame):
      service.receive(frame, on: self)
    case .request(let request):
      lastRequest = now
      hasAsked = true
      guard waiting.count < Self.pipelineLimit else {
        service.noteClosing(of: self, "\(Self.pipelineLimit) requests wait for their answers")
        return close()
      }
      waiting.append(request)
      answerNext()
    }
  }

  private func answerNext() {
    // Who takes no answers gets no more of them made: they would have to be kept.
    guard !isAnswering, !isOver, !waiting.isEmpty, channel.isWritable else { return }
    isAnswering = true
    service.answer(waiting.removeFirst(), on: self)
  }

  /// Sends the answer to the request that was handed over last, and goes on with the next.
  func answered(_ response: Response) {
    send(response)
    isAnswering = false
    // Not by calling itself: a client may have sent many.
    if !waiting.isEmpty {
      let connection = NIOLoopBound(self, eventLoop: channel.eventLoop)
      channel.eventLoop.execute { connection.value.answerNext() }
    }
  }

  /// Why the connection ought to be closed at `now`; nil where it may stay.
  func complaint(at now: MediaTime, hasSession: Bool, _ configuration: ServerConfiguration) -> String? {
    if let requestBegan, now - requestBegan > configuration.requestTime { return "a request that does not end" }
    outgoing.noteTaking(at: now)
    if let stalledSince = outgoing.stalledSince, now - stalledSince >= configuration.stallTime {
      return "a viewer that takes nothing"
    }
    if configuration.users != nil, !hasLoggedIn, !isAnswering, now - opened > configuration.idleTime {
      return "nobody logged in"
    }
    if !hasSession, !isAnswering, now - lastRequest > configuration.idleTime { return "nothing asked for" }
    return nil
  }

  // MARK: Writing

  private func send(_ response: Response) {
    write(ByteBuffer(bytes: response.bytes))
  }

  /// Writes packets, the last ones of a frame of `transport` where there is one: it is told once that has left, or never
  /// will.
  func write(_ buffer: ByteBuffer, endingFrameOf transport: InterleavedTransport? = nil) {
    guard !isClosed else {
      transport?.frameHasLeft()
      return
    }
    channel.writeAndFlush(buffer, promise: nil)
    // The write may have failed, and the connection with it.
    guard !isClosed else {
      transport?.frameHasLeft()
      return
    }
    outgoing.give(buffer.readableBytes, endingFrameOf: transport)
    watch()
  }

  /// Looks again soon while frames have not left: nothing tells when the kernel has sent them.
  private func watch() {
    guard outgoing.hasFrames, !isWatched else { return }
    isWatched = true
    let connection = NIOLoopBound(self, eventLoop: channel.eventLoop)
    channel.eventLoop.scheduleTask(in: Self.watchInterval) {
      let connection = connection.value
      connection.isWatched = false
      connection.outgoing.noteProgress()
      connection.watch()
    }
  }

  /// There is room for more, or none.
  func noteWritability(_ isWritable: Bool) {
    if isWritable { answerNext() }
  }

  func close() {
    guard !isClosed else { return }
    isClosed = true
    // What was written before goes out first.
    channel.close(mode: .all, promise: nil)
  }

  /// Closes the connection for another's sake: nothing is waited for, as the peer's last word of TLS.
  func closeAtOnce() {
    guard !isClosed else { return }
    isClosed = true
    channel.triggerUserOutboundEvent(TLSHandler.CloseAtOnce(), promise: nil)
    channel.close(mode: .all, promise: nil)
  }

  /// Closes the connection once the last answer has had time to arrive: what is still to be read would make the system
  /// break it off, and the answer would be lost with it.
  func closeSoon() {
    guard !isClosed else { return }
    isClosed = true
    let channel = channel
    channel.eventLoop.scheduleTask(in: .milliseconds(200)) { channel.close(mode: .all, promise: nil) }
  }

  /// Closes the connection once what the send thread has still to say, a BYE, has had time to get here. Nothing more is
  /// read from it.
  func closeAfterGoodbye() {
    guard !isOver else { return }
    isEnding = true
    waiting.removeAll()
    let connection = NIOLoopBound(self, eventLoop: channel.eventLoop)
    channel.eventLoop.scheduleTask(in: Self.goodbyeTime) { connection.value.close() }
  }

  func noteClosed() {
    isClosed = true
    outgoing.letGo()
  }
}
