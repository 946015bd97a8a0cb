import Glibc
import NIOCore
import NIOEmbedded

/// A socket as NIO treats it, below the handler: flushed writes are taken while the kernel has room, the channel is not
/// writable while many bytes wait, and one side can close alone. `EmbeddedChannel` has none of that.
final class SimulatedSocket: ChannelOutboundHandler {
  typealias OutboundIn = ByteBuffer

  /// The bytes on their way to the client; whoever carries them takes them away.
  var taken: [UInt8] = []
  /// The number of all bytes that the kernel has taken.
  private(set) var takenBytes = 0
  /// The most bytes that have waited for the kernel.
  private(set) var mostWaiting = 0
  /// The number of waiting bytes above which the channel is not writable.
  let mark: Int
  private(set) var isClosed = false
  private var room: Int
  private var waiting = 0
  private var pending = MarkedCircularBuffer<(bytes: ByteBuffer, promise: EventLoopPromise<Void>?)>(initialCapacity: 4)
  private var isTaking = false
  private var isInputClosed = false
  private var isOutputClosed = false
  private var wantsOutputClosed = false
  private var outputPromise: EventLoopPromise<Void>?
  private var context: ChannelHandlerContext?

  /// - Parameter room: The bytes that the kernel takes before it is given more room.
  init(mark: Int, room: Int) { (self.mark, self.room) = (mark, room) }

  /// `true` while flushed writes wait for the kernel.
  var isWaiting: Bool { pending.hasMark }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  // MARK: The network

  /// Gives the kernel room for so many bytes more.
  func grant(_ bytes: Int) {
    room = min(room, .max - bytes) + bytes
    if let context { take(context) }
  }

  /// Takes the kernel's room away.
  func fill() { room = 0 }

  /// Reads `pieces`, each at once, and says that it has read after some of them.
  func receive(_ pieces: [(bytes: ArraySlice<UInt8>, isLast: Bool)]) {
    for piece in pieces {
      guard let context, !isClosed, !isInputClosed else { return }
      context.fireChannelRead(NIOAny(ByteBuffer(bytes: piece.bytes)))
      if piece.isLast { self.context?.fireChannelReadComplete() }
    }
  }

  /// Reads the end of the stream.
  func endInput() {
    guard let context, !isClosed, !isInputClosed else { return }
    isInputClosed = true
    let isHalf = (try? context.channel.syncOptions?.getOption(.allowRemoteHalfClosure)) == true && !isOutputClosed
    guard isHalf else { return closeBoth(context, nil) }
    context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
  }

  /// Is reset by the client.
  func reset() {
    guard let context, !isClosed else { return }
    context.fireErrorCaught(IOError(errnoCode: ECONNRESET, reason: "read"))
    closeBoth(context, nil)
  }

  // MARK: The channel

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard !isClosed, !isOutputClosed else {
      promise?.fail(isClosed ? ChannelError.ioOnClosedChannel : ChannelError.outputClosed)
      return
    }
    let bytes = unwrapOutboundIn(data)
    pending.append((bytes, promise))
    waiting += bytes.readableBytes
    mostWaiting = max(mostWaiting, waiting)
    tellWritability(context)
  }

  func flush(context: ChannelHandlerContext) {
    pending.mark()
    take(context)
  }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    // Of a client that has closed its side, NIO closes both.
    guard mode == .output, !isClosed, !isInputClosed else { return closeBoth(context, promise) }
    guard !isOutputClosed else {
      promise?.fail(ChannelError.outputClosed)
      return
    }
    wantsOutputClosed = true
    outputPromise.setOrCascade(to: promise)
    closeOutputIfTaken(context)
  }

  private func take(_ context: ChannelHandlerContext) {
    // The calls below may flush again.
    guard !isTaking else { return }
    isTaking = true
    defer { isTaking = false }
    while !isClosed, pending.hasMark, var write = pending.first {
      let count = min(room, write.bytes.readableBytes)
      taken += write.bytes.readBytes(length: count) ?? []
      room -= count
      takenBytes += count
      waiting -= count
      guard write.bytes.readableBytes == 0 else {
        pending[pending.startIndex] = write
        break
      }
      _ = pending.popFirst()
      write.promise?.succeed()
      tellWritability(context)
    }
    tellWritability(context)
    closeOutputIfTaken(context)
  }

  /// Tells the handlers of a change, at once, as NIO does.
  private func tellWritability(_ context: ChannelHandlerContext) {
    guard !isClosed, let channel = context.channel as? EmbeddedChannel else { return }
    let isWritable = channel.isWritable ? waiting <= mark : waiting < max(1, mark / 2)
    guard isWritable != channel.isWritable else { return }
    channel.isWritable = isWritable
    context.fireChannelWritabilityChanged()
  }

  private func closeOutputIfTaken(_ context: ChannelHandlerContext) {
    guard wantsOutputClosed, !isOutputClosed, !isClosed, pending.isEmpty else { return }
    let promise = outputPromise
    outputPromise = nil
    guard !isInputClosed else { return closeBoth(context, promise) }
    isOutputClosed = true
    promise?.succeed()
    context.fireUserInboundEventTriggered(ChannelEvent.outputClosed)
  }

  /// Closes both sides at once: what waits is lost.
  private func closeBoth(_ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?) {
    guard !isClosed else { return context.close(promise: promise) }
    isClosed = true
    waiting = 0
    outputPromise?.fail(ChannelError.ioOnClosedChannel)
    outputPromise = nil
    while let write = pending.popFirst() { write.promise?.fail(ChannelError.ioOnClosedChannel) }
    context.close(promise: promise)
  }
}
