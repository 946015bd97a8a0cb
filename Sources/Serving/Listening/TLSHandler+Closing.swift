package import NIOCore
import TLS

extension TLSHandler {
  package func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    switch (mode, phase) {
    case (.input, _): promise?.fail(ChannelError.operationUnsupported)
    case (_, .closed): context.close(mode: mode, promise: promise)
    case (_, .closing):
      guard let promise else { break }
      if let closePromise { closePromise.futureResult.cascade(to: promise) } else { closePromise = promise }
    case (.output, .active):
      guard !wantsOutputClosed else { return context.close(mode: .output, promise: promise) }
      wantsOutputClosed = true
      outputPromise = promise
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

  /// Sends `close_notify` after everything before it has left this handler, and closes as far as requested.
  func closeOutput(_ context: ChannelHandlerContext) {
    guard !isOutputClosed else { return closeIfBothHave(context) }
    isOutputClosed = true
    connection?.closeOutput()
    let sent = context.eventLoop.makePromise(of: Void.self)
    sent.futureResult.assumeIsolated().whenSuccess { [self] in
      isCloseSent = true
      closeIfBothHave(context)
    }
    writeOutgoing(context, sent)
    context.flush()
    guard phase == .active else { return }
    let promise = outputPromise
    outputPromise = nil
    context.close(mode: .output, promise: promise)
  }

  /// Closes the connection once both sides have sent `close_notify`, but not before this side's has left: NIO would
  /// discard it.
  func closeIfBothHave(_ context: ChannelHandlerContext) {
    if isInputClosed, isCloseSent, phase != .closed { closeNow(context) }
  }
}
