import NIOCore

/// Ends a connection that sends too much or takes too long for a request.
///
/// The handler stands before the HTTP decoder and counts from a request's first byte or the last answer. So it sees
/// clients that send their headers byte by byte, that never end their body, or that keep a silent connection. A slow
/// reader has the time for each ``OutputProgress/piece`` of an answer.
final class ConnectionLimits: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundIn = IOData

  private let bytes: Int
  private let time: TimeAmount
  private var received = 0
  private var deadline: Scheduled<Void>?

  /// - Parameters:
  ///   - bytes: the limit for a whole request: its header and the discarded bytes of a body that is too large.
  ///   - time: the limit from a request's first byte until its answer, and from the last answer, or the connection's
  ///     start, until the next request.
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
    // A request has its time from its first byte on; an open connection has as much before that.
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

/// Tells ``ConnectionLimits`` that the next answer is delayed for `time`, for which the client is not to blame.
struct AnswerDelay {
  let time: TimeAmount
}
