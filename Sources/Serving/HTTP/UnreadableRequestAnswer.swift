import NIOCore
import NIOHTTP1
import Platform

/// Adds a body to Hummingbird's own answer to an unreadable request, an empty 400: the body that every other refusal
/// has.
///
/// The handler stands before the encoder. The API sends no empty body, so this 400 cannot be one of the API's.
final class UnreadableRequestAnswer: ChannelOutboundHandler {
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  private let body: ByteBuffer
  private var isDue = false

  /// Creates a handler for one connection.
  ///
  /// - Parameter headerLimit: the largest header in bytes, for the message.
  init(headerLimit: Int) {
    let failure = ControlFailure(
      "the request is not HTTP/1.1, or its header has more than \(headerLimit) bytes: send one such as GET "
        + "/v1/status", kind: .usage, field: "request", limit: "\(headerLimit)")
    body = ByteBuffer(bytes: ControlJSON.encode(failure))
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    var part = unwrapOutboundIn(data)
    switch part {
    case .head(var head) where head.status == .badRequest && head.headers["content-length"] == ["0"]:
      head.headers.replaceOrAdd(name: "content-length", value: "\(body.readableBytes)")
      head.headers.add(name: "content-type", value: "application/json")
      part = .head(head)
      isDue = true
    case .end where isDue:
      isDue = false
      context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
    default: break
    }
    context.write(wrapOutboundOut(part), promise: promise)
  }
}
