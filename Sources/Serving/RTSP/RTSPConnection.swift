import CLinux
package import NIOCore
package import Platform
import RTP
import RTSP
package import Streaming

/// One client's connection, on the event loop.
package final class RTSPConnection {
  let number: UInt64
  let channel: any Channel
  /// The client's address without its port.
  let client: String
  let peer: PeerAddress?
  let table: SessionTable.Connection
  private unowned let service: RTSPService
  private var parser = RequestParser()
  /// Requests that wait for the answer to the previous one.
  private var waiting: [Request] = []
  private var isAnswering = false
  private(set) var isClosed = false
  /// `true` if nothing more is read, because the connection closes after its last output.
  private var isEnding = false
  /// `true` if there is nothing more to answer.
  var isOver: Bool { isClosed || isEnding }
  /// The user that has logged in here, with the hashes of that time.
  var user: UsersFile.User?
  /// `true` after a login: only logins are delayed.
  var hasLoggedIn: Bool { user != nil }
  /// The start of an incomplete request. `lastRequest` is the time of the last complete one.
  private var requestBegan: Instant?
  private(set) var lastRequest: Instant
  /// `true` if the client has sent a request.
  private(set) var hasAsked = false
  private let opened: Instant
  private var outgoing: OutgoingBytes
  /// `true` if a later check of the bytes that have left is scheduled.
  private var isWatched = false

  /// The most requests that a client may send ahead.
  static let pipelineLimit = 16
  /// The interval between checks of the frames that have left.
  static let watchInterval = TimeAmount.milliseconds(10)
  /// The same while bytes wait here: the kernel does not report that there is room for them. It has more bytes than a network
  /// takes in this time, so that the network is never idle.
  static let holdingInterval = TimeAmount.milliseconds(5)
  /// The waiting bytes beyond which the client gets no more tracks, and no more answers that have to wait: NIO's own limit.
  static let heldLimit = 65_536

  /// Creates a connection; nil if its channel has ended and has no address.
  package init?(_ channel: any Channel, number: UInt64, isEncrypted: Bool, _ service: RTSPService, at now: Instant) {
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
    let host = IPAddress.bracketed(here)
    table = SessionTable.Connection(
      identifier: number, client: address, authority: "\(host):\(local.port ?? 554)",
      scheme: isEncrypted ? .rtsps : .rtsp)
  }

  /// Returns an address without its port; a link-local one with its interface, without which nothing can be sent to it.
  /// An IPv4 address at an IPv6 socket that takes both, as systemd opens them, is returned as IPv4 (RFC 4291 section
  /// 2.5.5.2).
  private static func text(of address: NIOCore.SocketAddress) -> String? {
    guard let text = address.ipAddress, !text.contains("%") else { return address.ipAddress }
    if text.hasPrefix(mappedPrefix), let mapped = IPAddress(text.dropFirst(mappedPrefix.count)), !mapped.isIPv6 {
      return String(text.dropFirst(mappedPrefix.count))
    }
    // struct sockaddr_in6 of <netinet/in.h>: the last four of its 28 bytes contain the interface.
    let scope: UInt32 = address.withSockAddr { pointer, size in
      guard address.protocol == .inet6, size >= 28 else { return 0 }
      return UnsafeRawPointer(pointer).loadUnaligned(fromByteOffset: 24, as: UInt32.self)
    }
    return scope == 0 ? text : "\(text)%\(scope)"
  }

  private static let mappedPrefix = "::ffff:"

  /// Returns an IPv6 address without its interface.
  static func withoutZone(_ address: String) -> String {
    String(address.prefix { $0 != "%" })
  }

  /// `true` if the connection comes from this machine's loopback address; the kernel admits no such address from a
  /// network.
  var isFromHere: Bool { (try? Streaming.SocketAddress(host: client, port: 1))?.isLoopback ?? false }

  /// The server's address on this connection.
  var localAddress: ConnectionAddress? {
    channel.localAddress.flatMap(Self.text(of:)).flatMap { ConnectionAddress(Self.withoutZone($0)) }
  }

  // MARK: Reading

  /// Reads bytes from the client.
  func read(_ buffer: ByteBuffer, at now: Instant) {
    buffer.withUnsafeReadableBytes { bytes in
      var rest = bytes
      while !isOver {
        let message: ClientMessage?
        do throws(RequestError) {
          message = try parser.next(from: &rest)
        } catch {
          service.noteRefusal(of: self, AttributeFile.printable("not RTSP: \(error)"))
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

  private func take(_ message: ClientMessage, at now: Instant) {
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
    // A client that takes no answers gets no more of them: they would have to be stored.
    guard !isAnswering, !isOver, !waiting.isEmpty, takesAnswers else { return }
    isAnswering = true
    service.answer(waiting.removeFirst(), on: self)
  }

  /// Sends the answer to the last request that was handed over, and continues with the next.
  func answered(_ response: Response) {
    send(response)
    isAnswering = false
    // Without recursion: a client may have sent many.
    if !waiting.isEmpty {
      let connection = NIOLoopBound(self, eventLoop: channel.eventLoop)
      channel.eventLoop.execute { connection.value.answerNext() }
    }
  }

  /// Returns the reason for closing the connection at `now`; nil if it may stay.
  func complaint(at now: Instant, hasSession: Bool, _ configuration: RTSPServerConfiguration) -> String? {
    if let requestBegan, now - requestBegan > configuration.requestTime { return "a request that does not end" }
    outgoing.noteTaking(at: now)
    if let stalledSince = outgoing.stalledSince, now - stalledSince >= configuration.stallTime {
      return "a viewer that reads nothing"
    }
    if configuration.users != nil, !hasLoggedIn, !isAnswering, now - opened > configuration.idleTime {
      return "nobody logged in"
    }
    if !hasSession, !isAnswering, now - lastRequest > configuration.idleTime { return "no request" }
    return nil
  }

  // MARK: Writing

  private func send(_ response: Response) {
    write(ByteBuffer(bytes: response.bytes))
  }

  /// `true` if the client takes what is written for it: not much waits.
  package var takesMore: Bool { channel.isWritable && outgoing.heldBytes < Self.heldLimit }

  /// `true` if the client takes answers: they do not wait, or not much does.
  private var takesAnswers: Bool { takesMore || channel.isWritable && outgoing.mayLeave(nil) }

  /// Writes packets of `transport`, or an answer if that is nil. The transport is told once a frame that they end has left,
  /// or never will.
  package func write(_ buffer: ByteBuffer, of transport: InterleavedTransport? = nil, endsFrame: Bool = false) {
    let ended = endsFrame ? transport : nil
    guard !isClosed else {
      ended?.frameHasLeft()
      return
    }
    guard outgoing.mayLeave(transport) else {
      outgoing.hold(buffer, of: transport, endsFrame: endsFrame)
      writeWaiting()
      outgoing.noteProgress()
      return watch()
    }
    channel.writeAndFlush(buffer, promise: nil)
    // The write may have failed, and the connection with it.
    guard !isClosed else {
      ended?.frameHasLeft()
      return
    }
    outgoing.give(buffer.readableBytes, endingFrameOf: ended)
    watch()
  }

  /// Writes the waiting bytes that may leave now. A write may fail, and the connection with it.
  private func writeWaiting() {
    while !isClosed, let bytes = outgoing.next() { channel.writeAndFlush(bytes, promise: nil) }
  }

  /// Writes all waiting bytes, because the connection is about to close.
  private func writeAllWaiting() {
    while !isClosed, let bytes = outgoing.nextAtOnce() { channel.writeAndFlush(bytes, promise: nil) }
  }

  /// Adds the transport of a track that is played on this connection.
  package func add(_ transport: InterleavedTransport) {
    guard !isClosed else { return }
    outgoing.add(transport)
  }

  /// Lets go of the transport of a track that is played no more.
  package func letGo(of transport: InterleavedTransport) { outgoing.letGo(of: transport) }

  /// Schedules another check while frames have not left or bytes wait: the kernel does not report that it has sent them.
  private func watch() {
    guard outgoing.isPending, !isWatched else { return }
    isWatched = true
    let connection = NIOLoopBound(self, eventLoop: channel.eventLoop)
    channel.eventLoop.scheduleTask(in: outgoing.isHolding ? Self.holdingInterval : Self.watchInterval) {
      let connection = connection.value
      connection.isWatched = false
      connection.writeWaiting()
      connection.outgoing.noteProgress()
      connection.answerNext()
      connection.watch()
    }
  }

  /// Notes that the channel has become writable or not.
  func noteWritability(_ isWritable: Bool) {
    if isWritable { answerNext() }
  }

  func close() {
    writeAllWaiting()
    guard !isClosed else { return }
    isClosed = true
    // Bytes written before are sent first.
    channel.close(mode: .all, promise: nil)
  }

  /// Closes the connection to free its place, without waiting for anything such as the peer's TLS `close_notify`; also
  /// one that is closing and waits for that.
  func closeAtOnce() {
    isClosed = true
    channel.triggerUserOutboundEvent(TLSHandler.CloseAtOnce(), promise: nil)
    channel.close(mode: .all, promise: nil)
  }

  /// Closes the connection after the last answer has had time to arrive. Unread input would make the system reset the
  /// connection, and the answer would be lost.
  package func closeSoon() {
    writeAllWaiting()
    guard !isClosed else { return }
    isClosed = true
    let channel = channel
    channel.eventLoop.scheduleTask(in: .milliseconds(200)) { channel.close(mode: .all, promise: nil) }
  }

  /// Closes the connection after the send thread's last packet, a BYE, has had time to arrive here. Nothing more is
  /// read from the connection.
  func closeAfterGoodbye() {
    guard !isOver else { return }
    isEnding = true
    waiting.removeAll()
    let connection = NIOLoopBound(self, eventLoop: channel.eventLoop)
    let time = TimeAmount.nanoseconds(service.configuration.goodbyeTime.nanoseconds)
    channel.eventLoop.scheduleTask(in: time) { connection.value.close() }
  }

  func noteClosed() {
    isClosed = true
    outgoing.letGo()
  }
}
