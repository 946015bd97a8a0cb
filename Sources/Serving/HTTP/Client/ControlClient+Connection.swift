import NIOCore
import NIOHTTP1
import NIOPosix
import Platform

extension ControlClient {
  /// Sends a request and reads the answer.
  func ask<Value: Decodable & Sendable>(
    _ method: HTTPMethod, _ route: String, _ body: (any Encodable)? = nil
  ) throws -> Answer<Value> {
    let json = try send(method, route, body.map { ControlJSON.encode($0) } ?? [])
    do {
      return Answer(value: try ControlJSON.decode(Value.self, from: json), json: json)
    } catch {
      throw ControlClientError.foreign(path: path)
    }
  }

  /// Connects to the control socket. HTTP's messages go to the handler that `handler` makes.
  ///
  /// - Throws: ``ControlClientError``; `promise` has failed then.
  func openChannel<Value: Sendable>(
    _ threads: MultiThreadedEventLoopGroup, _ promise: EventLoopPromise<Value>,
    _ handler: @escaping @Sendable () -> some ChannelHandler
  ) throws -> any Channel {
    do {
      _ = try ControlSocket.address(of: path)
    } catch {
      promise.fail(error)
      throw error
    }
    do {
      return try ClientBootstrap(group: threads).channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          try pipeline.addHTTPClientHandlers()
          try pipeline.addHandler(handler())
        }
      }.connect(unixDomainSocketPath: path).wait()
    } catch {
      promise.fail(error)
      throw ControlClientError(connecting: error, path: path)
    }
  }

  /// Sends a request and returns the body of a success.
  private func send(_ method: HTTPMethod, _ route: String, _ body: [UInt8] = []) throws -> [UInt8] {
    let threads = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    // The shutdown fails only after an earlier one, and nothing else could have done that.
    defer { try? threads.syncShutdownGracefully() }
    let answer = threads.next().makePromise(of: ControlAnswer.self)
    let channel = try openChannel(threads, answer) { [path] in ControlAnswerCollector(answer, path: path) }
    let deadline = channel.eventLoop.scheduleTask(in: .nanoseconds(patience.nanoseconds)) { [patience] in
      answer.fail(ControlClientError.silent(path: path, seconds: patience.seconds))
    }
    defer {
      deadline.cancel()
      channel.close(promise: nil)
    }
    // RFC 9112 section 3.2: every request has a Host; a Unix socket has no name for it.
    var head = HTTPRequestHead(version: .http1_1, method: method, uri: route)
    head.headers.add(name: "host", value: "localhost")
    head.headers.add(name: "connection", value: "close")
    if !body.isEmpty { head.headers.add(name: "content-type", value: "application/json") }
    if method != .GET { head.headers.add(name: "content-length", value: "\(body.count)") }
    channel.write(HTTPClientRequestPart.head(head), promise: nil)
    channel.write(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: body))), promise: nil)
    // A server that refuses without reading ends this write; the reason is in the answer.
    channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
    let result = try answer.futureResult.wait()
    guard (200..<300).contains(result.status) else {
      // An answer that is not nightjar's is reported as such: its bytes would say nothing.
      throw (try? ControlJSON.decode(ControlFailure.self, from: result.body)) ?? ControlClientError.foreign(path: path)
    }
    return result.body
  }
}

private struct ControlAnswer: Sendable {
  var status: Int
  var body: [UInt8] = []
}

/// Collects the parts of an answer.
private final class ControlAnswerCollector: ChannelInboundHandler {
  typealias InboundIn = HTTPClientResponsePart

  private static let limit = 1 << 22
  private let promise: EventLoopPromise<ControlAnswer>
  private let path: String
  private var answer = ControlAnswer(status: 0)

  init(_ promise: EventLoopPromise<ControlAnswer>, path: String) {
    self.promise = promise
    self.path = path
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): answer = ControlAnswer(status: Int(head.status.code))
    case .body(let buffer):
      guard answer.body.count + buffer.readableBytes <= Self.limit else {
        promise.fail(ControlClientError.foreign(path: path))
        return context.close(promise: nil)
      }
      answer.body.append(contentsOf: buffer.readableBytesView)
    case .end: promise.succeed(answer)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    let isCut = error is IOError || error as? HTTPParserError == .invalidEOFState
    promise.fail(isCut ? ControlClientError.closed(path: path) : ControlClientError.foreign(path: path))
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    promise.fail(ControlClientError.closed(path: path))
    context.fireChannelInactive()
  }
}
