import Foundation
import NIOCore
import NIOPosix
import Serving
import Synchronization
import TLS
import TestSupport
import Testing

/// A server of TLS on this machine whose connections do what a test wants, and tell what happened.
final class SecureServer: Sendable {
  /// The manner of a connection.
  enum Manner: Sendable {
    /// Sends back what it gets.
    case echo
    /// Sends so many bytes once it is asked for them, and closes behind them.
    case send(Int)
    /// Sends so many bytes once the client has said that it is done, and closes behind them.
    case sendAtEnd(Int)
    /// Sends so many bytes once the client has said that it is done, and ends its output at once so often.
    case finishAtEnd(Int, closes: Int)
    /// Reads what it gets, once ``SecureServer/readOn()`` was called.
    case swallow
    /// Answers any request with a page.
    case page(String)
  }

  /// The events on all connections.
  struct Report: Sendable {
    var errors: [TLSConnectionError] = []
    var bytes = 0
    var halfClosures = 0
    var closures = 0
    var sent = 0
    /// The most bytes of ciphertext that waited in a channel after a write, and whether it was writable then.
    var mostWaiting = 0
    var isWritable = true
    var channels: [any Channel] = []
  }

  let port: Int
  private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
  private let listener: any Channel
  let report: Reporter
  private let directory: TemporaryDirectory

  final class Reporter: Sendable {
    private let value = Mutex(Report())
    var now: Report { value.withLock { $0 } }
    func note(_ change: (inout Report) -> Void) { value.withLock { change(&$0) } }
  }

  /// A context with a certificate made for the test.
  static func context(protocols: [String] = []) throws -> ServerContext {
    let key = try PrivateKey()
    return try ServerContext(chain: [certificate(key)], key: key, protocols: protocols)
  }

  /// A context with a key of RSA, made by openssl in `directory`.
  static func rsaContext(in directory: TemporaryDirectory) throws -> ServerContext {
    let paths = (key: directory.path("rsa-key.pem"), certificate: directory.path("rsa.pem"))
    let made = try Subprocess.run(
      [
        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", paths.key,
        "-out", paths.certificate,
      ], in: directory)
    try #require(made.status == 0, "\(made.error)")
    func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
    return try ServerContext(
      chain: Certificate.all(pem: bytes(paths.certificate)), key: PrivateKey(pem: bytes(paths.key)))
  }

  static func certificate(_ key: PrivateKey) throws -> Certificate {
    try .server(
      .init(
        commonName: "localhost", names: ["localhost"], addresses: [[127, 0, 0, 1]],
        validity: 1_700_000_000...4_000_000_000), key: key)
  }

  /// Starts one whose certificate is made for the test, unless `context` is given.
  init(
    _ manner: Manner, protocols: [String] = [], context: ServerContext? = nil, halfClosure: Bool = true,
    handshakeTime: TimeAmount = TLSHandler.handshakeTime
  ) throws {
    let context = try context ?? Self.context(protocols: protocols)
    let report = Reporter()
    self.report = report
    directory = try TemporaryDirectory()
    listener = try ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: 512)
      .childChannelOption(.allowRemoteHalfClosure, value: halfClosure)
      .childChannelOption(.maxMessagesPerRead, value: 1)
      .childChannelOption(.socketOption(.so_sndbuf), value: 1 << 16)
      .childChannelInitializer { channel in
        report.note { $0.channels.append(channel) }
        return channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandlers(
            TLSHandler(context, handshakeTime: handshakeTime), Talker(manner, report))
        }
      }
      .bind(host: "127.0.0.1", port: 0).wait()
    port = listener.localAddress?.port ?? 0
  }

  /// Lets connections read that have stopped it.
  func readOn() throws {
    for channel in report.now.channels { try channel.setOption(.autoRead, value: true).wait() }
  }

  /// Runs client.py to its end.
  func client(_ what: String, _ number: Int = 0, limit: Double = 60) throws -> Subprocess.Result {
    try start(what, number).wait(limit: limit)
  }

  /// Starts client.py.
  func start(_ what: String, _ number: Int = 0) throws -> Subprocess {
    try Subprocess(Self.client + [what, "\(port)", "\(number)"], in: directory)
  }

  static let client = [
    "python3", URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/Clients/client.py",
  ]

  deinit {
    try? listener.close().wait()
    try? group.syncShutdownGracefully()
  }
}

/// One connection of a ``SecureServer``.
private final class Talker: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer
  private let manner: SecureServer.Manner
  private let report: SecureServer.Reporter

  init(_ manner: SecureServer.Manner, _ report: SecureServer.Reporter) {
    (self.manner, self.report) = (manner, report)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let bytes = unwrapInboundIn(data)
    report.note { $0.bytes += bytes.readableBytes }
    switch manner {
    case .send(let count): send(count, context)
    case .echo: context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
    case .swallow where report.now.bytes == bytes.readableBytes:
      context.channel.setOption(.autoRead, value: false).whenFailure { _ in }
    case .page(let text):
      let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)"
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
    default: break
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard case ChannelEvent.inputClosed? = event as? ChannelEvent else { return }
    report.note { $0.halfClosures += 1 }
    switch manner {
    case .sendAtEnd(let count): send(count, context)
    case .finishAtEnd(let count, let closes):
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(repeating: 0x5A, count: count)), promise: nil)
      for _ in 0..<closes { context.close(mode: .output, promise: nil) }
    default: context.close(promise: nil)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    report.note { $0.errors += [error as? TLSConnectionError].compactMap(\.self) }
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    report.note { $0.closures += 1 }
    context.fireChannelInactive()
  }

  /// Writes all of it at once, and closes behind it.
  private func send(_ count: Int, _ context: ChannelHandlerContext) {
    let (channel, report) = (context.channel, report)
    let promise = context.eventLoop.makePromise(of: Void.self)
    promise.futureResult.whenSuccess {
      report.note { $0.sent += count }
      channel.close(promise: nil)
    }
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(repeating: 0x5A, count: count)), promise: promise)
    let waiting = (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    let isWritable = channel.isWritable
    report.note {
      $0.mostWaiting = max($0.mostWaiting, waiting)
      $0.isWritable = isWritable
    }
  }
}
