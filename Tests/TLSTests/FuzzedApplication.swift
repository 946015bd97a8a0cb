import Glibc
import NIOCore
import Serving
import TestSupport

/// The reader and writer above the handler. It answers within the handler's own calls, too.
final class FuzzedApplication: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private(set) var received: [UInt8] = []
  /// The number of bytes that the handler has accepted.
  private(set) var written = 0
  /// The bytes of the handshake, which the kernel had before the first of plaintext, as far as they are known.
  var overhead = 0
  private(set) var errors: [any Error] = []
  private(set) var faults: [String] = []
  /// The number of times that the channel became inactive.
  private(set) var ends = 0
  private(set) var openPromises = 0
  /// The number of failed promises of accepted writes, and of first closes.
  private(set) var brokenPromises = 0
  private var isInputClosed = false
  private var (hasClosedOutput, hasClosedAll) = (false, false)
  private var answers = 8
  private let handler: TLSHandler
  private let socket: SimulatedSocket
  private var random: SeededGenerator
  private var context: ChannelHandlerContext?

  init(_ handler: TLSHandler, _ socket: SimulatedSocket, seed: UInt64) {
    (self.handler, self.socket, random) = (handler, socket, SeededGenerator(seed: seed))
  }

  private func isChance(of count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

  // MARK: Writing and closing

  /// Writes the next bytes, with a promise if `isAwaited` is set.
  func write(_ count: Int, isAwaited: Bool) {
    guard let context, ends == 0 else { return }
    let next = FuzzedText.server[written...].prefix(count)
    let (before, end) = (handler.waitingBytes, written + next.count)
    let promise = isAwaited ? observed(context, behind: next.isEmpty ? nil : end) : nil
    context.write(wrapOutboundOut(ByteBuffer(bytes: next)), promise: promise)
    if handler.waitingBytes == before + next.count { written = end }
  }

  func flush() {
    if ends == 0 { context?.flush() }
  }

  func close(_ mode: CloseMode) {
    guard let context, ends == 0 else { return }
    let isFirst = mode == .output ? !hasClosedOutput && !hasClosedAll : !hasClosedAll
    if mode == .output { hasClosedOutput = true } else { hasClosedAll = true }
    context.close(mode: mode, promise: observed(context, behind: isFirst ? 0 : nil))
  }

  /// Returns a promise that must be kept once the kernel has so many bytes of plaintext at least; nil for one that may
  /// be broken.
  private func observed(_ context: ChannelHandlerContext, behind end: Int?) -> EventLoopPromise<Void> {
    let promise = context.eventLoop.makePromise(of: Void.self)
    openPromises += 1
    promise.futureResult.assumeIsolated().whenComplete { [unowned self] result in
      openPromises -= 1
      guard let end else { return }
      switch result {
      case .success:
        if socket.takenBytes - overhead < end { faults.append("a promise is kept before its bytes have left") }
        answer()
      // That of a refused write.
      case .failure where end > written: break
      case .failure: brokenPromises += 1
      }
    }
    return promise
  }

  /// Writes something now and then, in the middle of the handler's work.
  private func answer() {
    guard answers > 0, isChance(of: 4) else { return }
    answers -= 1
    write(Int.random(in: 0...2000, using: &random), isAwaited: isChance(of: 2))
    flush()
  }

  // MARK: Reading

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if isInputClosed || hasClosedAll || ends > 0 { faults.append("bytes after the end") }
    var bytes = unwrapInboundIn(data)
    if bytes.readableBytes == 0 { faults.append("a read of nothing") }
    received += bytes.readBytes(length: bytes.readableBytes) ?? []
    answer()
  }

  func channelReadComplete(context: ChannelHandlerContext) { answer() }

  func channelWritabilityChanged(context: ChannelHandlerContext) { answer() }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard case ChannelEvent.inputClosed? = event as? ChannelEvent else { return }
    if isInputClosed { faults.append("the input ends twice") }
    isInputClosed = true
    answer()
    if isChance(of: 3) { close(isChance(of: 2) ? .output : .all) }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    errors.append(error)
    if isChance(of: 2) { close(.all) }
  }

  func channelInactive(context: ChannelHandlerContext) { ends += 1 }
}

/// The bytes that both sides write.
enum FuzzedText {
  static let client = text(seed: 1)
  static let server = text(seed: 2)

  /// Returns as many bytes as the handler takes before there are keys.
  private static func text(seed: UInt64) -> [UInt8] {
    var random = SeededGenerator(seed: seed)
    return (0..<TLSHandler.earlyWriteLimit / 8).map { _ in random.next() }.withUnsafeBytes { Array($0) }
  }

  /// Returns `true` if `bytes` are the first ones of `text`.
  static func begins(_ text: [UInt8], with bytes: [UInt8]) -> Bool {
    bytes.count <= text.count && memcmp(text, bytes, bytes.count) == 0
  }
}
