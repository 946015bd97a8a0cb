package import Media

/// The buffers that were waiting when the capture thread came for one: the newest valid one is kept, and the others go
/// back to the driver before any work is done on them.
package struct CaptureBacklog {
  /// The number of pictures that the driver lost, by gaps in the sequence numbers.
  private(set) var missing = 0
  /// The number of buffers that the driver marked as damaged, and that a newer buffer has overtaken.
  private(set) var damaged = 0
  /// The number of good buffers that a newer buffer has overtaken.
  private(set) var overtaken = 0
  /// `true` if a buffer is kept.
  private(set) var isKept = false

  /// Creates a backlog of no buffer.
  package init() {}

  /// Takes `first`, which was just dequeued, and the buffers that `dequeue` still finds, at most `limit` of them. Leaves
  /// the kept buffer in `buffer`.
  ///
  /// - Parameters:
  ///   - dequeue: Dequeues a buffer; returns an `errno`, 0 for none. An error ends the work, and comes again later.
  ///   - recycle: Returns a buffer to the driver by its number.
  package mutating func take(
    into buffer: inout DequeuedBuffer, limit: Int, counter: inout SequenceCounter,
    dequeue: (inout DequeuedBuffer) -> CInt, recycle: (Int) -> Void
  ) {
    note(buffer, &counter, recycle)
    for _ in 0..<limit {
      var newer = DequeuedBuffer()
      guard dequeue(&newer) == 0 else { return }
      let kept = isKept ? buffer : nil
      isKept = false
      note(newer, &counter, recycle)
      guard let kept else {
        buffer = newer
        continue
      }
      if !isKept || newer.isDamaged && !kept.isDamaged {
        // The newer one is late or damaged.
        if isKept {
          recycle(newer.index)
          damaged += 1
        }
        isKept = true
      } else {
        recycle(kept.index)
        if kept.isDamaged { damaged += 1 } else { overtaken += 1 }
        buffer = newer
      }
    }
  }

  /// Counts a buffer, and keeps it unless a later one has come before it. uvcvideo copies large pictures in separate work
  /// items, and two of those may end in either order.
  private mutating func note(_ buffer: DequeuedBuffer, _ counter: inout SequenceCounter, _ recycle: (Int) -> Void) {
    switch counter.note(buffer.sequence) {
    case .next(let gap):
      missing += gap
      isKept = true
    case .late:
      // Already counted as missing.
      recycle(buffer.index)
    }
  }

  /// Returns a loss that was not reported yet, once; nil if there is none.
  package mutating func takeLoss() -> (cause: DropCause, count: Int)? {
    if missing > 0 {
      defer { missing = 0 }
      return (.driver, missing)
    }
    if damaged > 0 {
      defer { damaged = 0 }
      return (.driverError, damaged)
    }
    if overtaken > 0 {
      defer { overtaken = 0 }
      return (.captureLate, overtaken)
    }
    return nil
  }

  /// Forgets the kept buffer, and returns `true` if there was one.
  package mutating func takeKept() -> Bool {
    defer { isKept = false }
    return isKept
  }
}
