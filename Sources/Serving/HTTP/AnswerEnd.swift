import NIOCore
import NIOHTTP1

/// Closes the connection after an answer if the client expects that: after answers to HTTP/1.0 without keep-alive, and
/// after answers that have no other end.
///
/// These are endless answers without a length, which are sent without chunks as in HTTP/1.0 (the simplest picture
/// viewers support no chunks). They are also answers to HEAD without a length, to which the encoder would add a last
/// chunk. The connection of a live sound closes too, though the sound is sent in chunks.
///
/// The handler stands before the encoder, and sees requests as well.
final class AnswerEnd: ChannelDuplexHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  /// The properties of a request that its answer depends on.
  private struct Asked {
    let isHead: Bool
    let isLast: Bool
  }

  /// The requests without an answer so far: a client may send several at once.
  private var asked = CircularBuffer<Asked>()
  private var closes = false
  private let onRequest: @Sendable () -> Void
  private let onAnswer: @Sendable () -> Void

  /// Creates a handler for one connection.
  ///
  /// - Parameters:
  ///   - onRequest: called when a request begins.
  ///   - onAnswer: called when the answer to a request has left completely.
  init(onRequest: @escaping @Sendable () -> Void, onAnswer: @escaping @Sendable () -> Void) {
    (self.onRequest, self.onAnswer) = (onRequest, onAnswer)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if case .head(let head) = unwrapInboundIn(data) {
      asked.append(
        Asked(isHead: head.method == .HEAD, isLast: head.version.minor == 0 && !head.isKeepAlive))
      onRequest()
    }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    var part = unwrapOutboundIn(data)
    if case .head(var head) = part {
      // There is none if the input was no request.
      let asked = asked.popFirst()
      let hasNoLength = !head.headers.contains(name: "content-length")
      let isEndless =
        head.headers.first(name: "content-type")?.hasPrefix("multipart/x-mixed-replace") == true
        || asked?.isHead == true
      if hasNoLength, isEndless { head.version = .http1_0 }
      // A live sound counts as a stream for as long as its connection is open.
      let isSound = head.headers.first(name: "content-type") == "audio/mpeg"
      closes = asked?.isLast == true || hasNoLength && (isEndless || isSound)
      if closes { head.headers.replaceOrAdd(name: "connection", value: "close") }
      part = .head(head)
    }
    guard case .end = part else { return context.write(wrapOutboundOut(part), promise: promise) }
    // Only once all of it has left: NIO discards what the socket has not accepted by then.
    let sent = promise ?? context.eventLoop.makePromise()
    let (channel, closes, onAnswer) = (context.channel, closes, onAnswer)
    sent.futureResult.whenComplete { _ in
      onAnswer()
      if closes { channel.close(promise: nil) }
    }
    context.write(wrapOutboundOut(part), promise: sent)
    if closes { context.flush() }
  }
}
