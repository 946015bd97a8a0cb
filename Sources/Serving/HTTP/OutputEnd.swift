import NIOCore

/// The end of a connection's output, which waits until all before it is with the kernel.
///
/// NIO closes both sides at once if the client has closed its own, and discards what a slow client has not accepted yet.
/// ``TLSHandler`` does the same with its `close_notify`, so this handler stands on connections without TLS.
final class OutputEnd: ChannelOutboundHandler {
  typealias OutboundIn = IOData
  typealias OutboundOut = IOData

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    guard mode == .output else { return context.close(mode: mode, promise: promise) }
    let sent = context.eventLoop.makePromise(of: Void.self)
    // A connection that has failed meanwhile is closed already.
    sent.futureResult.assumeIsolated().whenComplete { _ in context.close(mode: .output, promise: promise) }
    context.writeAndFlush(wrapOutboundOut(.byteBuffer(ByteBuffer())), promise: sent)
  }
}
