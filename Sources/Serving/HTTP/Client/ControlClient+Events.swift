package import Alerts
import NIOCore
import NIOHTTP1
import NIOPosix
import Platform

extension ControlClient {
  /// Returns the newest events, at most `limit`, oldest first.
  package func events(limit: Int) throws -> Answer<EventsAnswer> { try ask(.GET, "/v1/events/history?limit=\(limit)") }

  /// Acknowledges the alert that began with the event `id`; nil means all that are open. Returns the new events.
  package func acknowledge(_ id: UInt64?) throws -> Answer<EventsAnswer> {
    try ask(.POST, "/v1/events/ack", AcknowledgementRequest(id: id))
  }

  /// One message of the stream of events.
  package enum EventMessage: Sendable {
    /// An event, and its JSON.
    case alert(Alert, json: [UInt8])
    /// Events that are not in the history any more.
    case dropped(Int)
  }

  /// Follows the events, and calls `show` for each message until the server ends the stream or `show` returns `false`.
  ///
  /// - Parameter after: the number of the last event that the caller has; nil for new events only.
  package func followEvents(after: UInt64?, _ show: @escaping @Sendable (EventMessage) -> Bool) throws {
    let threads = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    // The shutdown fails only after an earlier one, and nothing else could have done that.
    defer { try? threads.syncShutdownGracefully() }
    let end = threads.next().makePromise(of: Void.self)
    let channel = try openChannel(threads, end) { [path] in EventStreamReader(end, path: path, show) }
    defer { channel.close(promise: nil) }
    var head = HTTPRequestHead(
      version: .http1_1, method: .GET, uri: "/v1/events\(after.map { "?after=\($0)" } ?? "")")
    head.headers.add(name: "host", value: "localhost")
    channel.write(HTTPClientRequestPart.head(head), promise: nil)
    channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
    try end.futureResult.wait()
  }
}

/// Reads a stream of events.
private final class EventStreamReader: ChannelInboundHandler {
  typealias InboundIn = HTTPClientResponsePart

  private let end: EventLoopPromise<Void>
  private let path: String
  private let show: (ControlClient.EventMessage) -> Bool
  private var parser = EventStreamParser()
  private var failure: [UInt8]?

  init(_ end: EventLoopPromise<Void>, path: String, _ show: @escaping (ControlClient.EventMessage) -> Bool) {
    (self.end, self.path, self.show) = (end, path, show)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): if head.status != .ok { failure = [] }
    case .body(let buffer):
      if let former = failure {
        if former.count < EventStreamParser.limit { failure = former + buffer.readableBytesView }
        return
      }
      guard let messages = parser.read(buffer.readableBytesView) else {
        end.fail(ControlClientError.foreign(path: path))
        return context.close(promise: nil)
      }
      for message in messages where !show(message) {
        end.succeed()
        return context.close(promise: nil)
      }
    case .end:
      if let failure {
        end.fail(
          (try? ControlJSON.decode(ControlFailure.self, from: failure)) ?? ControlClientError.foreign(path: path))
      } else {
        end.succeed()
      }
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    end.fail(ControlClientError.closed(path: path))
    context.fireChannelInactive()
  }
}

/// The lines of a stream of events, cut into messages.
struct EventStreamParser {
  /// The longest message in bytes.
  static let limit = 65_536

  private var waiting: [UInt8] = []

  /// Takes bytes of the stream; returns the messages that they complete, and nil for a message that is too long.
  mutating func read(_ bytes: some Sequence<UInt8>) -> [ControlClient.EventMessage]? {
    var messages: [ControlClient.EventMessage] = []
    for byte in bytes {
      waiting.append(byte)
      guard waiting.count <= Self.limit else { return nil }
      // An empty line ends a message.
      guard byte == 0x0a, waiting.count == 1 || waiting[waiting.count - 2] == 0x0a else { continue }
      if let message = Self.message(waiting) { messages.append(message) }
      waiting.removeAll(keepingCapacity: true)
    }
    return messages
  }

  private static func message(_ text: [UInt8]) -> ControlClient.EventMessage? {
    struct Dropped: Decodable { let count: Int }
    for line in text.split(separator: 0x0a) where line.starts(with: Array("data: ".utf8)) {
      let json = Array(line.dropFirst(6))
      if let alert = try? ControlJSON.decode(Alert.self, from: json) { return .alert(alert, json: json) }
      if let dropped = try? ControlJSON.decode(Dropped.self, from: json) { return .dropped(dropped.count) }
    }
    return nil
  }
}
