import NIOCore

/// Tells, piece by piece, that an answer leaves: one that is large leaves slowly where its reader is slow.
///
/// It stands behind TLS, which encrypts as the connection takes it, and tells of each piece once it has left. What TLS
/// answers for itself is no progress.
final class OutputProgress: ChannelOutboundHandler {
  typealias OutboundIn = IOData
  typealias OutboundOut = IOData

  /// The user event: another ``piece`` bytes are with the kernel.
  struct PieceSent {}

  /// What a reader must take within the time of ``ConnectionLimits``, in bytes.
  static let piece = 64 << 10

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard case .byteBuffer(var bytes) = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
    let channel = context.channel
    while bytes.readableBytes > Self.piece, let piece = bytes.readSlice(length: Self.piece) {
      let sent = context.eventLoop.makePromise(of: Void.self)
      sent.futureResult.whenSuccess { channel.pipeline.fireUserInboundEventTriggered(PieceSent()) }
      context.write(wrapOutboundOut(.byteBuffer(piece)), promise: sent)
    }
    context.write(wrapOutboundOut(.byteBuffer(bytes)), promise: promise)
  }
}
