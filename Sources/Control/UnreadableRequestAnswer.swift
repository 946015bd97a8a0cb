import Media
import NIOCore
import NIOHTTP1

/// Gives Hummingbird's own answer to what it cannot parse, an empty 400, the body that every other refusal has.
///
/// It is put before the encoder. The API answers nothing with an empty body, so this 400 cannot be one of the API's.
final class UnreadableRequestAnswer: ChannelOutboundHandler {
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  private let body: ByteBuffer
  private var isDue = false

  /// - Parameter headerLimit: how many bytes a header may have, to tell.
  init(headerLimit: Int) {
    let failure = ControlFailure(
      "what was sent is no HTTP/1.1 request, or its header has more than \(headerLimit) bytes: send one such as GET "
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
