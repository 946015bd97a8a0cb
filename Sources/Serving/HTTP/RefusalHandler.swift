import NIOCore
import Platform

/// Sends a client the reason for a refusal after its request: a client that is closed earlier could not read it.
final class RefusalHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private var answer: ByteBuffer?

  /// Creates a handler for one connection.
  ///
  /// - Parameter retryAfter: the time to wait before the next request, in seconds.
  init(status: String, retryAfter: Int? = nil, _ failure: ControlFailure) {
    let body = ControlJSON.encode(failure)
    var answer = ByteBuffer(
      string: "HTTP/1.1 \(status)\r\ncontent-type: application/json\r\ncontent-length: \(body.count)\r\n"
        + (retryAfter.map { "retry-after: \($0)\r\n" } ?? "") + "connection: close\r\n\r\n")
    answer.writeBytes(body)
    self.answer = answer
  }

  /// The refusal of a peer of the Unix socket that may not use it.
  static var anotherUser: RefusalHandler {
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
    // The peer speaks no TLS, or has left: no answer can reach it.
    context.close(promise: nil)
  }
}
