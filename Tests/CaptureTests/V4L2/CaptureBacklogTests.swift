import Capture
import Media
import Testing

/// A driver's buffers that wait for the capture thread: which one is kept, and what becomes of the others.
@Suite struct CaptureBacklogTests {
  /// The fate of the buffers: the number of the kept one, those that went back, and the losses.
  private struct Outcome: Equatable {
    var kept: Int?
    var recycled: [Int]
    var losses: [DropCause: Int] = [:]
  }

  private static let damaged: UInt32 = 0x40  // V4L2_BUF_FLAG_ERROR

  /// Takes buffers of the given sequence numbers, negative ones damaged, after one of the number 0.
  private static func take(_ sequence: [Int], limit: Int = 8, error: CInt = 11) -> Outcome {
    var counter = SequenceCounter()
    _ = counter.note(0)
    var waiting = sequence.enumerated().map { index, number in
      var buffer = DequeuedBuffer()
      (buffer.index, buffer.sequence) = (index, UInt32(number.magnitude))
      if number < 0 { buffer.flags = damaged }
      return buffer
    }
    var buffer = waiting.removeFirst()
    var backlog = CaptureBacklog()
    var recycled: [Int] = []
    backlog.take(
      into: &buffer, limit: limit, counter: &counter,
      dequeue: { next in
        guard !waiting.isEmpty else { return error }
        next = waiting.removeFirst()
        return 0
      }, recycle: { recycled.append($0) })
    var losses: [DropCause: Int] = [:]
    while let loss = backlog.takeLoss() { losses[loss.cause, default: 0] += loss.count }
    let isKept = backlog.takeKept()
    let isKeptAgain = backlog.takeKept()
    #expect(!isKeptAgain)
    return Outcome(kept: isKept ? buffer.index : nil, recycled: recycled, losses: losses)
  }

  @Test func `the newest of several is kept, and each other one goes back and is counted`() {
    #expect(Self.take([1]) == Outcome(kept: 0, recycled: []))
    #expect(Self.take([1, 2]) == Outcome(kept: 1, recycled: [0], losses: [.captureLate: 1]))
    #expect(Self.take([1, 2, 3, 4]) == Outcome(kept: 3, recycled: [0, 1, 2], losses: [.captureLate: 3]))
  }

  @Test func `a damaged newest gives way to the last good one`() {
    #expect(Self.take([1, -2]) == Outcome(kept: 0, recycled: [1], losses: [.driverError: 1]))
    #expect(Self.take([-1, 2]) == Outcome(kept: 1, recycled: [0], losses: [.driverError: 1]))
    #expect(
      Self.take([1, -2, 3]) == Outcome(kept: 2, recycled: [1, 0], losses: [.driverError: 1, .captureLate: 1]))
    // Of damaged ones alone, the last is delivered as damaged.
    #expect(Self.take([-1, -2]) == Outcome(kept: 1, recycled: [0], losses: [.driverError: 1]))
  }

  @Test func `gaps between the buffers are the driver's losses`() {
    #expect(
      Self.take([3, 4, 7]) == Outcome(kept: 2, recycled: [0, 1], losses: [.driver: 4, .captureLate: 2]))
  }

  @Test func `a buffer that comes after a later one goes back, and was counted as missing`() {
    #expect(Self.take([2, 1]) == Outcome(kept: 0, recycled: [1], losses: [.driver: 1]))
    #expect(Self.take([2, 1, 3]) == Outcome(kept: 2, recycled: [1, 0], losses: [.driver: 1, .captureLate: 1]))
  }

  @Test func `a picture that was waited for is taken alone, and an error ends the work`() {
    #expect(Self.take([1, 2], limit: 0) == Outcome(kept: 0, recycled: []))
    #expect(Self.take([1], error: 19) == Outcome(kept: 0, recycled: []))
  }
}
