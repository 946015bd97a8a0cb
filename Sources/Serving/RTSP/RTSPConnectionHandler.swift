import NIOCore
import Platform

/// A connection in NIO's pipeline.
final class RTSPConnectionHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let service: RTSPService
  private let isEncrypted: Bool
  private var connection: RTSPConnection?

  init(_ service: RTSPService, isEncrypted: Bool) {
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
    // The client vanishes, or speaks no TLS: no answer can reach it.
    context.close(promise: nil)
  }
}
