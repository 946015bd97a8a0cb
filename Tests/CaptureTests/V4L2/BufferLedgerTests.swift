import Capture
import Testing

@Suite struct BufferLedgerTests {
  /// A driver that fills buffers in the order in which it got them.
  private static func started(_ count: Int) -> BufferLedger {
    var ledger = BufferLedger()
    for index in 0..<count { ledger.noteQueued(index) }
    ledger.isStreaming = true
    return ledger
  }

  @Test func framesAreLentUntilTheDriverHasItsShareOnly() {
    var ledger = Self.started(6)
    for index in 0..<4 {
      ledger.noteDequeued(index)
      #expect(ledger.mayLend)
    }
    ledger.noteDequeued(4)
    #expect(!ledger.mayLend)
    // It was copied, and goes back at once; so did a frame from elsewhere.
    for index in [4, 0] {
      ledger.noteReturned(index)
      #expect(ledger.isIdle(index))
      ledger.noteQueued(index)
      #expect(!ledger.isIdle(index))
    }
    ledger.noteDequeued(5)
    #expect(ledger.mayLend)
  }

  @Test func theMemoryGoesWithTheLastFrameAfterTheEndAndNoSooner() {
    var ledger = Self.started(4)
    ledger.noteDequeued(0)
    ledger.noteDequeued(1)
    ledger.noteReturned(0)
    ledger.noteReturned(1)
    #expect(!ledger.mayRelease, "the stream goes on")
    ledger.noteDequeued(2)
    ledger.notePaused()
    #expect(!ledger.mayRelease, "it was only paused")
    ledger.setEnding(true)
    #expect(!ledger.mayRelease, "a frame is out")
    ledger.noteReturned(2)
    #expect(ledger.mayRelease)
  }

  @Test func aStartAfterTheEndKeepsTheMemoryForTheFramesThatAreOut() {
    var ledger = Self.started(4)
    ledger.noteDequeued(3)
    ledger.notePaused()
    ledger.setEnding(true)
    ledger.setEnding(false)
    #expect(ledger.isIdle(0) && !ledger.isIdle(3))
    ledger.noteReturned(3)
    #expect(!ledger.mayRelease)
  }

  @Test func allSixtyFourBuffersAreToldApart() {
    var ledger = Self.started(64)
    ledger.noteDequeued(63)
    #expect(!ledger.isIdle(63) && ledger.held == 1 << 63 && ledger.queued == UInt64.max >> 1)
    ledger.noteReturned(63)
    #expect(ledger.isIdle(63))
  }
}
