import Media
import NIOCore

/// Tells a client that it is not served and why, once it has asked: one that is closed before could not read it.
final class RefusalHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private var answer: ByteBuffer?

  /// - Parameter retryAfter: when to ask again, in seconds.
  init(status: String, retryAfter: Int? = nil, _ failure: ControlFailure) {
    let body = ControlJSON.encode(failure)
    var answer = ByteBuffer(
      string: "HTTP/1.1 \(status)\r\ncontent-type: application/json\r\ncontent-length: \(body.count)\r\n"
        + (retryAfter.map { "retry-after: \($0)\r\n" } ?? "") + "connection: close\r\n\r\n")
    answer.writeBytes(body)
    self.answer = answer
  }

  /// For a peer of the Unix socket that may not use it.
  static var stranger: RefusalHandler {
    RefusalHandler(
      status: "403 Forbidden",
      ControlFailure(
        "only the owner of the control socket and the members of its group may use it", kind: .noPermission))
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard let answer = answer.take() else { return }
    context.writeAndFlush(wrapOutboundOut(answer), promise: nil)
    context.close(promise: nil)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event as? ChannelEvent == .inputClosed { context.close(promise: nil) }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // It speaks no TLS, or has gone: nothing can be told to it.
    context.close(promise: nil)
  }
}
