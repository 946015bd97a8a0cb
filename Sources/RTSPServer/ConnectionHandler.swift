import Media
import NIOCore

/// A connection in NIO's pipeline.
final class ConnectionHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let service: Service
  private let isEncrypted: Bool
  private var connection: Connection?

  init(_ service: Service, isEncrypted: Bool) {
    self.service = service
    self.isEncrypted = isEncrypted
  }

  func channelActive(context: ChannelHandlerContext) {
    connection = service.open(context.channel, isEncrypted: isEncrypted)
    if connection == nil { context.close(promise: nil) }
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    if let connection { service.closed(connection) }
    connection = nil
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    connection?.read(unwrapInboundIn(data), at: .now())
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    connection?.noteWritability(context.channel.isWritable)
    context.fireChannelWritabilityChanged()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // A client that vanishes, or speaks no TLS: nothing can be told to it.
    context.close(promise: nil)
  }
}
