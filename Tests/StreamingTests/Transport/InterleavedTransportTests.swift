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
    // A host may take half a second for this, too: then another try.
    let isFree = try eventually {
      transport = try InterleavedTransport(media: 0, control: 1) { _ in }
      for _ in 0..<given { _ = transport.send(frame, 0..<frame.count) }
      return transport.framesInFlight == 0
    }
    #expect(isFree)
    #expect(eventually { transport.framesInFlight == given })
    for _ in 0..<given { transport.frameWasTaken() }
    #expect(transport.framesInFlight == given)
    for _ in 0..<given - 2 { transport.frameHasLeft() }
    #expect(transport.framesInFlight == 2)
    _ = transport.send(frame, 0..<frame.count)
    #expect(eventually { transport.framesInFlight == 3 })
  }
}
