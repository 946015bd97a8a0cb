import RTP
import Streaming
import Testing

/// Packets for byte streams, whose memory comes again.
@Suite struct InterleavedBytesTests {
  @Test func `memory that nobody holds comes again, and what is held stays as it is`() throws {
    let frames = try FrameMaker()
    let frame = try frames.frame(packets: 3)
    func ask(_ packets: Range<Int>) -> InterleavedBytes { frame.interleaved(packets, channel: 2) }
    // Two viewers on the same channel get the same.
    let first = ask(0..<3)
    #expect(first === ask(0..<3) && first.isFrame)
    let content = Array(first.bytes)
    #expect(
      content[0] == 0x24 && content[1] == 2 && content.count == (0..<3).reduce(0) { $0 + frame.batch[$1].count + 4 })
    // Another is asked for while the first is held.
    var second: InterleavedBytes? = ask(0..<1)
    #expect(second !== first && second?.isFrame == false)
    #expect(Array(first.bytes) == content)
    let place = try #require(second?.bytes.baseAddress)
    second = nil
    let third = ask(1..<2)
    #expect(third.bytes.baseAddress == place && third.bytes.count == frame.batch[1].count + 4)
    // A longer one in the same object has room.
    let held = ask(0..<2)
    #expect(Array(held.bytes) == Array(content[..<held.bytes.count]))
    #expect(Array(first.bytes) == content)
    // As many as are held are there, each with its own bytes.
    let many = (0..<8).map { ask($0 % 3..<$0 % 3 + 1) }
    for (index, bytes) in many.enumerated() {
      let packet = frame.batch[index % 3]
      #expect(Array(bytes.bytes)[4..<4 + packet.header.count] == Array(packet.header)[...], "\(index)")
    }
  }
}
