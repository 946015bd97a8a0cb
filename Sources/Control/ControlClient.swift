import Glibc
public import Media
import NIOCore
import NIOHTTP1
import NIOPosix

/// Asks a ``ControlServer``: one connection a request, each call waits for its answer.
public struct ControlClient: Sendable {
  /// The socket's path.
  public let path: String
  private let patience: MediaTime

  /// A client of the socket at `path`; gives up after `patience`.
  public init(path: String = ControlSocket.clientPath, patience: MediaTime = MediaTime(seconds: 10)) {
    self.path = path
    self.patience = patience
  }

  /// How the stream is.
  ///
  /// - Throws: ``ControlClientError``, ``ControlSocketError`` for an impossible path, ``ControlFailure`` as the server says.
  public func status() throws -> StreamStatus { try decoded(statusJSON()) }

  /// The same as the server gave it, which may say more than this client knows.
  ///
  /// - Throws: as ``status()``.
  public func statusJSON() throws -> [UInt8] { try send(.GET, "/v1/status") }

  /// Lays pictures so from now on; what the server took.
  ///
  /// - Throws: as ``status()``.
  public func rotate(to orientation: Orientation) throws -> Orientation {
    let body = ControlJSON.encode(OrientationRequest(orientation))
    let answer: OrientationRequest = try decoded(send(.PUT, "/v1/orientation", body))
    return try answer.orientation()
  }

  /// Asks for a key frame.
  ///
  /// - Throws: as ``status()``.
  public func requestKeyFrame() throws {
    let _: KeyFrameAnswer = try decoded(send(.POST, "/v1/keyframe"))
  }

  /// Encodes at so many bits a second from now on; what the server took.
  ///
  /// - Throws: as ``status()``.
  public func changeBitrate(_ bitsPerSecond: Int) throws -> Int {
    let body = ControlJSON.encode(BitrateRequest(bitsPerSecond))
    let answer: BitrateRequest = try decoded(send(.PUT, "/v1/bitrate", body))
    return answer.bitsPerSecond
  }

  /// Sends the stream to one more destination; what its receivers must know (SDP).
  ///
  /// - Throws: as ``status()``.
  public func addDestination(_ url: String) throws -> String {
    let body = ControlJSON.encode(DestinationRequest(url))
    let answer: DestinationAnswer = try decoded(send(.POST, "/v1/destinations", body))
    return answer.sessionDescription
  }

  /// Ends the stream to a destination.
  ///
  /// - Throws: as ``status()``.
  public func removeDestination(_ url: String) throws {
    let _: DestinationRequest = try decoded(
      send(.DELETE, "/v1/destinations", ControlJSON.encode(DestinationRequest(url))))
  }

  private func decoded<Value: Decodable>(_ body: [UInt8]) throws -> Value {
    do {
      return try ControlJSON.decode(Value.self, from: body)
    } catch {
      throw ControlClientError.foreign(path: path)
    }
  }

  /// The body of a success.
  private func send(_ method: HTTPMethod, _ route: String, _ body: [UInt8] = []) throws -> [UInt8] {
    _ = try ControlSocket.address(of: path)
    let threads = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    // It fails only where it was shut down before, which nobody else can have done.
    defer { try? threads.syncShutdownGracefully() }
    let answer = threads.next().makePromise(of: ControlAnswer.self)
    let path = path
    let channel: any Channel
    do {
      channel = try ClientBootstrap(group: threads).channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          try pipeline.addHTTPClientHandlers()
          try pipeline.addHandler(ControlAnswerCollector(answer, path: path))
        }
      }.connect(unixDomainSocketPath: path).wait()
    } catch {
      answer.fail(error)
      throw ControlClientError(connecting: error, path: path)
    }
    let deadline = channel.eventLoop.scheduleTask(in: .nanoseconds(patience.nanoseconds)) { [patience] in
      answer.fail(ControlClientError.silent(path: path, seconds: patience.seconds))
    }
    defer {
      deadline.cancel()
      channel.close(promise: nil)
    }
    // RFC 9112 section 3.2: every request has a Host; a Unix socket has no name to put there.
    var head = HTTPRequestHead(version: .http1_1, method: method, uri: route)
    head.headers.add(name: "host", value: "localhost")
    head.headers.add(name: "connection", value: "close")
    if !body.isEmpty { head.headers.add(name: "content-type", value: "application/json") }
    if method != .GET { head.headers.add(name: "content-length", value: "\(body.count)") }
    channel.write(HTTPClientRequestPart.head(head), promise: nil)
    channel.write(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: body))), promise: nil)
    // A server that refuses without reading ends this write; what it said is in the answer.
    channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
    let result = try answer.futureResult.wait()
    guard (200..<300).contains(result.status) else {
      // What does not answer as nightjar does is told as just that: its bytes would say nothing.
      throw (try? ControlJSON.decode(ControlFailure.self, from: result.body)) ?? ControlClientError.foreign(path: path)
    }
    return result.body
  }
}

/// Why there is no answer.
public enum ControlClientError: Failure, Hashable {
  /// There is no socket at the path.
  case noSocket(path: String)
  /// There is one, and nobody listens.
  case deaf(path: String)
  /// The system does not let us use it.
  case noPermission(path: String)
  /// Connecting failed otherwise.
  case connecting(path: String, errorNumber: CInt)
  /// It does not answer in time.
  case silent(path: String, seconds: Double)
  /// It closed the connection before its answer was whole.
  case closed(path: String)
  /// It answers, but not as nightjar does.
  case foreign(path: String)

  init(connecting error: any Error, path: String) {
    switch (error as? IOError)?.errnoCode {
    case ENOENT, ENOTDIR: self = .noSocket(path: path)
    case ECONNREFUSED: self = .deaf(path: path)
    case EACCES, EPERM: self = .noPermission(path: path)
    case let number: self = .connecting(path: path, errorNumber: number ?? EIO)
    }
  }

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .noSocket(let path):
      "there is no control socket \(path): is nightjar stream running with --control? (another socket: --socket PATH)"
    case .deaf(let path):
      "nobody listens at the control socket \(path): is nightjar stream running with --control?"
    case .noPermission(let path):
      "no permission to use the control socket \(path): only its owner and its group may, see ls -l \(path)"
    case .connecting(let path, let errorNumber): "control socket \(path): \(SystemFailure.text(errorNumber))"
    case .silent(let path, let seconds): "no answer from the control socket \(path) within \(seconds) s"
    case .closed(let path): "the control socket \(path) was closed before its answer was whole: try again"
    case .foreign(let path): "what answers at \(path) is no nightjar: choose another socket with --socket"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind {
    switch self {
    case .noSocket, .deaf: .unavailable
    case .noPermission: .noPermission
    case .connecting, .closed, .foreign: .inputOutput
    case .silent: .temporary
    }
  }
}

private struct ControlAnswer: Sendable {
  var status: Int
  var body: [UInt8] = []
}

/// Puts an answer together.
private final class ControlAnswerCollector: ChannelInboundHandler {
  typealias InboundIn = HTTPClientResponsePart

  private static let limit = 1 << 20
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
