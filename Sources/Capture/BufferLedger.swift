/// Whose each buffer is, one bit each, and when their memory may go.
///
/// A buffer that is neither queued nor held lies idle: before the start, after the end, or because the driver
/// refused it.
struct BufferLedger {
  /// Whether the driver fills buffers.
  var isStreaming = false
  /// Those that the driver has.
  private(set) var queued: UInt64 = 0
  /// Those that the camera looks at, or frames lie in.
  private(set) var held: UInt64 = 0
  /// Whether the memory shall go as soon as no buffer is held.
  private(set) var isEnding = false

  /// Whether buffer `index` can be given to the driver.
  func isIdle(_ index: Int) -> Bool { (queued | held) & (1 << UInt64(index)) == 0 }

  /// Whether the driver has enough buffers to go on with, so that a frame may lie in the one just dequeued.
  var mayLend: Bool { queued.nonzeroBitCount >= V4L2BufferQueue.driverShare }

  /// Whether nobody looks at the memory any more, nor ever will.
  var mayRelease: Bool { isEnding && held == 0 }

  /// The driver took buffer `index`.
  mutating func noteQueued(_ index: Int) { queued |= 1 << UInt64(index) }

  /// The driver handed out buffer `index`.
  mutating func noteDequeued(_ index: Int) {
    queued &= ~(1 << UInt64(index))
    held |= 1 << UInt64(index)
  }

  /// The holder of buffer `index` is done with it.
  mutating func noteReturned(_ index: Int) { held &= ~(1 << UInt64(index)) }

  /// The stream was stopped: the driver let go of everything.
  mutating func notePaused() {
    isStreaming = false
    queued = 0
  }

  /// The memory shall go, or shall stay after all.
  mutating func setEnding(_ isEnding: Bool) { self.isEnding = isEnding }
}
