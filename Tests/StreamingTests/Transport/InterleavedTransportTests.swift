import Glibc
import Platform
import Streaming
import TestSupport
import Testing

/// The frames that count as on their way within a byte stream.
@Suite struct InterleavedTransportTests {
  @Test func `frames that wait for a thread of this host count half a second later, or once it has them`() throws {
    let frame = try FrameMaker().frame(packets: 3)
    let given = 8
    var transport = try InterleavedTransport(media: 0, control: 1) { _ in }
    func give() { for _ in 0..<given { _ = transport.send(frame, 0..<frame.count) } }
    /// The frames that count with all given ones waiting, with half of them taken, and with all; in less than half a second. A host may
    /// take longer, and then all of them count: another try.
    func counts() throws -> [Int] {
      for _ in 0..<100 {
        transport = try InterleavedTransport(media: 0, control: 1) { _ in }
        // The time of former frames is over.
        give()
        usleep(UInt32(Viewer.patience.nanoseconds / 1000))
        for _ in 0..<given { transport.frameWasTaken() }
        for _ in 0..<given { transport.frameHasLeft() }
        let begun = Instant.now()
        give()
        var counts = [transport.framesInFlight]
        for _ in 0..<2 {
          for _ in 0..<given / 2 { transport.frameWasTaken() }
          counts.append(transport.framesInFlight)
        }
        if Instant.now() - begun < Viewer.patience { return counts }
      }
      Issue.record("frames were never given within \(Viewer.patience)")
      return []
    }
    #expect(try counts() == [0, given / 2, given])
    for _ in 0..<given - 2 { transport.frameHasLeft() }
    #expect(transport.framesInFlight == 2)
    _ = transport.send(frame, 0..<frame.count)
    #expect(eventually { transport.framesInFlight == 3 })
  }
}
