package import NIOCore
package import TLS

/// TLS in NIO's pipeline, as a server: decrypts input from the socket and encrypts output to it.
///
/// It buffers as little as the channel allows. Written plaintext is encrypted while the channel is writable, and
/// otherwise stays in its writer's buffer. So a promise is kept once its bytes are with the kernel, and a writable
/// channel holds nothing back. Decrypted bytes are passed on at once: a reader that stops also stops the socket's
/// reads.
package final class TLSHandler: ChannelDuplexHandler {
  package typealias InboundIn = ByteBuffer
  package typealias InboundOut = ByteBuffer
  package typealias OutboundIn = ByteBuffer
  package typealias OutboundOut = ByteBuffer

  /// An outbound event that ends the connection at once: written bytes that were not sent are lost, and `close_notify`
  /// is not awaited.
  package struct CloseAtOnce: Sendable {
    /// Creates the event.
    package init() {}
  }

  enum Phase {
    /// The handshake, and the time after it.
    case active
    /// Earlier writes are sent, then `close_notify`; the peer's is awaited.
    case closing
    case closed
  }

  struct Write {
    var data: ByteBuffer
    let promise: EventLoopPromise<Void>?
  }

  /// The most bytes that a client may send before the handshake is complete.
  package static let handshakeLimit = 1 << 16
  /// The most bytes that may be written before the handshake is complete.
  package static let earlyWriteLimit = 1 << 18
  /// The most bytes of TLS's own answers, for example to requests for new keys, that wait for a client that takes none.
  package static let answerLimit = 1 << 14
  /// The time for a handshake.
  package static let handshakeTime = TimeAmount.seconds(20)
  /// The time that a closed connection waits for the peer to take the rest, and to close it too.
  package static let closeTime = TimeAmount.seconds(5)
  /// The most bytes of plaintext that are encrypted into one buffer.
  private static let batch = 1 << 16
  /// The largest capacity of a buffer that is used again.
  private static let keptCapacity = 1 << 15

  private let handshakeTime: TimeAmount
  var phase = Phase.active
  var connection: TLSConnection?
  private var deadline: Scheduled<Void>?
  var pending = MarkedCircularBuffer<Write>(initialCapacity: 4)
  /// The written bytes of plaintext that wait for the channel to be writable.
  package private(set) var waitingBytes = 0
  private var earlyBytes = 0
  private var isPumping = false
  private var mustPumpAgain = false
  /// OpenSSL's output that the channel has not received yet, unless ``isSent`` is set.
  private var outgoing = ByteBuffer()
  private var isSent = false
  private var plaintext = ByteBuffer()
  private var handshakeBytes = 0
  private var untakenAnswers = 0
  private var hasDelivered = false
  /// `true` if the peer sends nothing more, and upstream knows.
  var isInputClosed = false
  /// `true` if the socket has failed: nothing can be sent any more.
  var isBroken = false
  var wantsOutputClosed = false
  var isOutputClosed = false
  /// `true` if `close_notify` and all before it are with the kernel.
  var isCloseSent = false
  var outputPromise: EventLoopPromise<Void>?
  var closePromise: EventLoopPromise<Void>?

  /// Creates a handler that waits for a client.
  ///
  /// - Throws: `OpenSSLError` without memory.
  package init(
    _ context: ServerContext, handshakeTime: TimeAmount = TLSHandler.handshakeTime
  ) throws(OpenSSLError) {
    self.handshakeTime = handshakeTime
    connection = try TLSConnection(context) { [unowned self] in keep($0) }
  }

  private func keep(_ bytes: UnsafeRawBufferPointer) {
    if isSent {
      outgoing.clear(minimumCapacity: bytes.count)
      isSent = false
    }
    outgoing.writeBytes(bytes)
  }

  var isEstablished: Bool { connection?.state == .established }

  // MARK: Beginning and end

  package func handlerAdded(context: ChannelHandlerContext) {
    if context.channel.isActive { begin(context) }
  }

  package func handlerRemoved(context: ChannelHandlerContext) {
    phase = .closed
    deadline?.cancel()
    discard()
    connection = nil
  }

  package func channelActive(context: ChannelHandlerContext) {
    begin(context)
    context.fireChannelActive()
  }

  private func begin(_ context: ChannelHandlerContext) {
    guard deadline == nil else { return }
    schedule(context, in: handshakeTime) {
      $0.fail(context, .handshakeTime(seconds: $0.handshakeTime.nanoseconds / 1_000_000_000))
    }
  }

  func schedule(
    _ context: ChannelHandlerContext, in time: TimeAmount, _ body: @escaping (TLSHandler) -> Void
  ) {
    deadline?.cancel()
    deadline = context.eventLoop.assumeIsolated().scheduleTask(in: time) { [self] in
      guard phase != .closed else { return }
      body(self)
    }
  }

  package func channelInactive(context: ChannelHandlerContext) {
    let error: TLSConnectionError? =
      switch phase {
      case .active: isEstablished ? (isInputClosed ? nil : .truncated) : .handshake("the connection ended")
      case .closing, .closed: nil
      }
    phase = .closed
    deadline?.cancel()
    if let error { context.fireErrorCaught(error) }
    discard()
    closePromise?.succeed()
    closePromise = nil
    context.fireChannelInactive()
  }

  package func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // A reset, usually. NIO closes the channel afterwards, whatever upstream does.
    if error is IOError { isBroken = true }
    context.fireErrorCaught(error)
  }

  /// Ends the connection at once because of the peer's fault, and reports that upstream.
  private func fail(_ context: ChannelHandlerContext, _ error: TLSConnectionError) {
    guard phase != .closed else { return }
    phase = .closed
    deadline?.cancel()
    // The output may contain an alert.
    writeOutgoing(context)
    context.flush()
    context.fireErrorCaught(error)
    discard()
    context.close(promise: closePromise)
    closePromise = nil
  }

  func closeNow(_ context: ChannelHandlerContext) {
    phase = .closed
    deadline?.cancel()
    discard()
    context.close(promise: closePromise)
    closePromise = nil
  }

  /// Fails the promises of unsent writes.
  private func discard() {
    outputPromise?.fail(ChannelError.ioOnClosedChannel)
    outputPromise = nil
    while let write = pending.popFirst() { write.promise?.fail(ChannelError.ioOnClosedChannel) }
    waitingBytes = 0
  }

  // MARK: Reading

  package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard let connection, phase != .closed else { return }
    let bytes = unwrapInboundIn(data)
    let wasEstablished = isEstablished
    if !wasEstablished {
      handshakeBytes += bytes.readableBytes
      guard handshakeBytes <= Self.handshakeLimit else {
        return fail(context, .handshakeSize(limit: Self.handshakeLimit))
      }
    }
    var failure: TLSConnectionError?
    bytes.withUnsafeReadableBytes { bytes in
      do throws(TLSConnectionError) {
        try connection.receive(bytes) { plaintext.writeBytes($0) }
      } catch {
        failure = error
      }
    }
    sendAnswers(context)
    if isEstablished, !wasEstablished, phase == .active {
      deadline?.cancel()
      pump(context)
    }
    deliver(context)
    if let failure { return fail(context, failure) }
    if connection.isInputClosed, !isInputClosed { inputEnded(context) }
  }

  /// Sends TLS's own answers. A peer that takes nothing does not make them grow without limit.
  private func sendAnswers(_ context: ChannelHandlerContext) {
    guard !isSent, outgoing.readableBytes > 0, phase != .closed else { return }
    if !context.channel.isWritable {
      untakenAnswers += outgoing.readableBytes
      guard untakenAnswers <= Self.answerLimit else { return fail(context, .untaken(limit: Self.answerLimit)) }
    }
    writeOutgoing(context)
    context.flush()
  }

  /// Passes decrypted bytes on; while the connection closes, they are discarded.
  private func deliver(_ context: ChannelHandlerContext) {
    guard plaintext.readableBytes > 0 else { return }
    let read = plaintext
    plaintext = ByteBuffer()
    guard phase == .active else { return }
    hasDelivered = true
    context.fireChannelRead(wrapInboundOut(read))
  }

  package func channelReadComplete(context: ChannelHandlerContext) {
    if hasDelivered {
      hasDelivered = false
      context.fireChannelReadComplete()
    } else if (try? context.channel.syncOptions?.getOption(.autoRead)) == false {
      // A reader that has requested one read has received nothing of it yet.
      context.read()
    }
  }

  /// Handles the peer's `close_notify`.
  private func inputEnded(_ context: ChannelHandlerContext) {
    guard phase != .closed else { return }
    isInputClosed = true
    if phase == .closing { return closeIfBothHave(context) }
    guard (try? context.channel.syncOptions?.getOption(.allowRemoteHalfClosure)) == true else {
      return close(context: context, mode: .all, promise: nil)
    }
    context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    closeIfBothHave(context)
  }

  package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard case ChannelEvent.inputClosed? = event as? ChannelEvent else {
      return context.fireUserInboundEventTriggered(event)
    }
    // The peer has closed its side of the connection below TLS.
    switch phase {
    case .closed: context.fireUserInboundEventTriggered(event)
    case .closing:
      isInputClosed = true
      closeIfBothHave(context)
    case .active where !isEstablished: fail(context, .handshake("the connection ended"))
    case .active where isInputClosed: break
    case .active:
      isInputClosed = true
      context.fireErrorCaught(TLSConnectionError.truncated)
      context.fireUserInboundEventTriggered(event)
    }
  }

  // MARK: Writing

  package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard phase == .active else {
      promise?.fail(ChannelError.ioOnClosedChannel)
      return
    }
    guard !wantsOutputClosed else {
      promise?.fail(ChannelError.outputClosed)
      return
    }
    let bytes = unwrapOutboundIn(data)
    if !isEstablished {
      earlyBytes += bytes.readableBytes
      guard earlyBytes <= Self.earlyWriteLimit else {
        promise?.fail(TLSConnectionError.notWritable)
        return fail(context, .notWritable)
      }
    }
    pending.append(Write(data: bytes, promise: promise))
    waitingBytes += bytes.readableBytes
  }

  package func flush(context: ChannelHandlerContext) {
    pending.mark()
    pump(context)
  }

  package func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { untakenAnswers = 0 }
    pump(context)
    context.fireChannelWritabilityChanged()
  }

  /// Encrypts waiting writes while the channel accepts them; after the last one, does the requested close.
  func pump(_ context: ChannelHandlerContext) {
    // The calls below may write again.
    guard !isPumping else {
      mustPumpAgain = true
      return
    }
    isPumping = true
    defer { isPumping = false }
    repeat {
      mustPumpAgain = false
      guard phase != .closed, isEstablished else { return }
      encrypt(context)
      context.flush()
    } while mustPumpAgain
    guard phase != .closed, !pending.hasMark, phase == .closing || wantsOutputClosed else { return }
    closeOutput(context)
  }

  private func encrypt(_ context: ChannelHandlerContext) {
    while phase != .closed, pending.hasMark, context.channel.isWritable, var write = pending.first {
      let count = min(write.data.readableBytes, Self.batch)
      if count > 0 {
        guard encrypt(context, write.data, count) else { return }
        write.data.moveReaderIndex(forwardBy: count)
        waitingBytes -= count
      }
      var promise: EventLoopPromise<Void>?
      if write.data.readableBytes == 0 {
        promise = pending.removeFirst().promise
      } else {
        pending[pending.startIndex] = write
      }
      // Several small writes leave together; a write with a promise leaves with those before it.
      if let promise {
        writeOutgoing(context, promise)
      } else if outgoing.readableBytes >= Self.batch {
        writeOutgoing(context)
      }
    }
    writeOutgoing(context)
  }

  /// Encrypts the first bytes of `data`. Returns `false` if that has ended the connection.
  private func encrypt(_ context: ChannelHandlerContext, _ data: ByteBuffer, _ count: Int) -> Bool {
    // The capacity includes the overhead of each record of 16 KiB.
    let room = count + (count >> 14 + 1) * 64
    if isSent {
      outgoing.clear(minimumCapacity: room)
      isSent = false
    } else {
      outgoing.reserveCapacity(minimumWritableBytes: room)
    }
    var failure: TLSConnectionError?
    data.withUnsafeReadableBytes { bytes in
      do throws(TLSConnectionError) {
        try connection?.write(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
      } catch {
        failure = error
      }
    }
    if let failure { fail(context, failure) }
    return failure == nil
  }

  /// Gives the channel the encrypted bytes, if there are any.
  func writeOutgoing(_ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>? = nil) {
    guard !isSent, outgoing.readableBytes > 0 else {
      // The order is that of the writes.
      if let promise { context.write(wrapOutboundOut(ByteBuffer()), promise: promise) }
      return
    }
    let bytes = outgoing
    if outgoing.capacity <= Self.keptCapacity {
      // Cleared when there is more to send: by then the channel has usually released it.
      isSent = true
    } else {
      outgoing = ByteBuffer()
    }
    context.write(wrapOutboundOut(bytes), promise: promise)
  }
}
