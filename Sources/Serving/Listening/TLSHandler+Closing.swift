package import NIOCore
import TLS

extension TLSHandler {
  package func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    switch (mode, phase) {
    case (.input, _): promise?.fail(ChannelError.operationUnsupported)
    case (_, .closed): context.close(mode: mode, promise: promise)
    case (_, .closing): closePromise.setOrCascade(to: promise)
    case (.output, .active):
      // Once `close_notify` has left, the channel says that its output is closed already.
      if isCloseSent { return context.close(mode: .output, promise: promise) }
      outputPromise.setOrCascade(to: promise)
      guard !wantsOutputClosed else { break }
      wantsOutputClosed = true
      pending.mark()
      pump(context)
    case (.all, .active):
      closePromise = promise
      guard isEstablished, !isBroken else { return closeNow(context) }
      phase = .closing
      schedule(context, in: Self.closeTime) { $0.closeNow(context) }
      pending.mark()
      pump(context)
    }
  }

  package func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
    guard event is CloseAtOnce else { return context.triggerUserOutboundEvent(event, promise: promise) }
    if phase != .closed { closeNow(context) }
    promise?.succeed()
  }

  /// Sends `close_notify` after everything before it has left this handler, and closes as far as requested once it is
  /// with the kernel: of a client that has closed its side of the socket, NIO closes both sides at once and discards
  /// what waits.
  func closeOutput(_ context: ChannelHandlerContext) {
    guard !isOutputClosed else { return closeIfBothHave(context) }
    isOutputClosed = true
    connection?.closeOutput()
    let sent = context.eventLoop.makePromise(of: Void.self)
    sent.futureResult.assumeIsolated().whenSuccess { [self] in
      isCloseSent = true
      let promise = outputPromise
      outputPromise = nil
      if phase == .active { context.close(mode: .output, promise: promise) } else { promise?.succeed() }
      closeIfBothHave(context)
    }
    writeOutgoing(context, sent)
    context.flush()
  }

  /// Closes the connection once both sides have sent `close_notify`, but not before this side's has left: NIO would
  /// discard it.
  func closeIfBothHave(_ context: ChannelHandlerContext) {
    if isInputClosed, isCloseSent, phase != .closed { closeNow(context) }
  }
}
