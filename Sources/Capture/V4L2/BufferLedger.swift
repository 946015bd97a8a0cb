/// Tracks the owner of each buffer, with one bit per owner and buffer, and says when their memory may be freed.
///
/// A buffer that is neither queued nor held is idle: before the start, after the end, or because the driver refused it.
package struct BufferLedger {
  /// `true` if the driver fills buffers.
  package var isStreaming = false
  /// The buffers that the driver owns.
  package private(set) var queued: UInt64 = 0
  /// The buffers that the camera reads or that frames lie in.
  package private(set) var held: UInt64 = 0
  /// `true` if the memory shall be freed as soon as no buffer is held.
  private(set) var isEnding = false

  /// Creates a ledger of buffers that are all idle.
  package init() {}

  /// Returns `true` if buffer `index` can be queued.
  package func isIdle(_ index: Int) -> Bool { (queued | held) & (1 << UInt64(index)) == 0 }

  /// `true` if the driver has enough buffers to continue, so that a frame may lie in the buffer just dequeued.
  package var mayLend: Bool { queued.nonzeroBitCount >= V4L2BufferQueue.driverShare }

  /// `true` if no one reads the memory, now or later.
  package var mayRelease: Bool { isEnding && held == 0 }

  /// Notes that the driver took buffer `index`.
  package mutating func noteQueued(_ index: Int) { queued |= 1 << UInt64(index) }

  /// Notes that buffer `index` was dequeued from the driver.
  package mutating func noteDequeued(_ index: Int) {
    queued &= ~(1 << UInt64(index))
    held |= 1 << UInt64(index)
  }

  /// Notes that the holder of buffer `index` returned it.
  package mutating func noteReturned(_ index: Int) { held &= ~(1 << UInt64(index)) }

  /// Notes that the stream was stopped: the driver released all buffers.
  package mutating func notePaused() {
    isStreaming = false
    queued = 0
  }

  /// Sets whether the memory shall be freed once no buffer is held.
  package mutating func setEnding(_ isEnding: Bool) { self.isEnding = isEnding }
}
