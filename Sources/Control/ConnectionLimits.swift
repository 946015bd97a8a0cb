import NIOCore

/// Ends a connection that sends too much or takes too long for a request.
///
/// It stands before the HTTP decoder and counts from a request's first byte or the last answer, so that it sees a client that
/// sends its headers byte by byte, one that never ends its body, and one that keeps a connection and says nothing, all the same.
/// A reader that is slow has the time for each ``OutputProgress/piece`` of an answer.
final class ConnectionLimits: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundIn = IOData

  private let bytes: Int
  private let time: TimeAmount
  private var received = 0
  private var deadline: Scheduled<Void>?

  /// - Parameters:
  ///   - bytes: of a request in all, its header and what is thrown away of a body that is too large.
  ///   - time: from a request's first byte until its answer, and from the last answer, or the connection's start, until the
  ///     next request.
  init(bytes: Int, time: TimeAmount) {
    self.bytes = bytes
    self.time = time
  }

  func handlerAdded(context: ChannelHandlerContext) { restart(context) }

  func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }

  func channelInactive(context: ChannelHandlerContext) {
    deadline?.cancel()
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // A request has its time from its first byte on, and a connection that is kept has as much before that.
    if received == 0 { restart(context) }
    received += unwrapInboundIn(data).readableBytes
    guard received <= bytes else { return context.close(promise: nil) }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    restart(context)
    context.write(data, promise: promise)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard event is OutputProgress.PieceSent else { return context.fireUserInboundEventTriggered(event) }
    schedule(context, after: time)
  }

  func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
    guard let delay = event as? AnswerDelay else {
      return context.triggerUserOutboundEvent(event, promise: promise)
    }
    restart(context, after: delay.time)
    promise?.succeed()
  }

  private func restart(_ context: ChannelHandlerContext, after delay: TimeAmount = .zero) {
    if delay == .zero { received = 0 }
    schedule(context, after: delay + time)
  }

  private func schedule(_ context: ChannelHandlerContext, after time: TimeAmount) {
    deadline?.cancel()
    let channel = context.channel
    deadline = context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
  }
}

/// Says to ``ConnectionLimits`` that the next answer is held back for so long, which is no fault of the client.
struct AnswerDelay {
  let time: TimeAmount
}
