import NIOCore

/// Reports the progress of an answer, piece by piece: a large answer leaves slowly if its reader is slow.
///
/// The handler stands behind TLS, which encrypts as the connection accepts data. It reports each piece once the piece
/// has left. TLS's own answers are no progress.
final class OutputProgress: ChannelOutboundHandler {
  typealias OutboundIn = IOData
  typealias OutboundOut = IOData

  /// The user event: another ``piece`` bytes are with the kernel.
  struct PieceSent {}

  /// The number of bytes that a reader must accept within the time of ``ConnectionLimits``.
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
