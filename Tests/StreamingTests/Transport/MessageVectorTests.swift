import CLinux
import Foundation
import Media
import Platform
import RTP
import Streaming
import TestSupport
import Testing

/// The grouping of packets for the kernel.
@Suite struct MessageVectorTests {
  /// The bytes that a message points at, and its segment size, 0 where it has none.
  private static func contents(_ message: nightjar_message) -> (bytes: [UInt8], segment: Int) {
    var bytes: [UInt8] = []
    for index in 0..<message.header.msg_iovlen {
      bytes += UnsafeRawBufferPointer(
        start: message.header.msg_iov[index].iov_base, count: message.header.msg_iov[index].iov_len)
    }
    guard let control = message.header.msg_control else { return (bytes, 0) }
    // A cmsghdr: length, level, type; then UDP_SEGMENT's 16 bits.
    #expect(control.load(fromByteOffset: 8, as: CInt.self) == 17)
    #expect(control.load(fromByteOffset: 12, as: CInt.self) == 103)
    return (bytes, Int(control.load(fromByteOffset: 16, as: UInt16.self)))
  }

  /// Sizes of NAL units that are one packet each.
  private static let cases: [(sizes: [Int], segments: Int, groups: [Int])] = [
    ([100], 64, [1]),
    ([100, 100, 100], 64, [3]),
    ([100, 100, 50], 64, [3]),
    // The shorter one ends a message, whatever comes next.
    ([100, 50, 50, 100], 64, [2, 1, 1]),
    ([50, 100], 64, [1, 1]),
    ([100, 100, 100, 100, 100], 2, [2, 2, 1]),
    (Array(repeating: 20, count: 64), 64, [64]),
    (Array(repeating: 20, count: 65), 64, [64, 1]),
    (Array(repeating: 20, count: 200), 64, [64, 64, 64, 8]),
    // 65,507 bytes are the most: 54 × 1212 = 65,448.
    (Array(repeating: 1200, count: 60), 64, [54, 6]),
    // 55 × 1191 = 65,505: no room for even the smallest one more.
    (Array(repeating: 1179, count: 55) + [1], 64, [55, 1]),
    ([32_741, 32_740], 64, [2]),
    ([32_742, 32_741], 64, [2]),
    ([32_742, 32_742], 64, [1, 1]),
    ([65_495], 64, [1]),
    ([65_495, 1], 64, [1, 1]),
  ]

  @Test(arguments: 0..<16)
  func `packets of one size go together, the last one shorter, up to the kernel's limits`(number: Int) throws {
    let (sizes, segments, groups) = Self.cases[number]
    try check(sizes: sizes, segments: segments, groups: groups)
  }

  @Test func `every packet is in one message, whatever the sizes`() throws {
    var generator = SeededGenerator(seed: 5)
    for _ in 0..<200 {
      let usual = Int.random(in: 10...1200, using: &generator)
      let sizes = (0..<Int.random(in: 1...150, using: &generator)).map { _ in
        Int.random(in: 0..<6, using: &generator) > 0 ? usual : Int.random(in: 1...1200, using: &generator)
      }
      try check(sizes: sizes, segments: [1, 2, 8, 64].randomElement(using: &generator) ?? 8, groups: nil)
    }
  }

  private func check(sizes: [Int], segments: Int, groups expected: [Int]?) throws {
    let maker = try BigPacketMaker()
    let batch = maker.batch(sizes: sizes)
    try #require(batch.count == sizes.count)
    let packets = (0..<batch.count).map { Array(batch[$0].header) + Array(batch[$0].payload) }
    var vector = MessageVector(capacity: 16)
    // Twice, since a vector is used again.
    vector.fill(from: batch, segments: 64)
    vector.fill(from: batch, segments: segments)
    let (count, groupCount) = (vector.count, vector.groups)
    #expect(count == packets.count)
    let plain = vector.plain(0..<count).map(Self.contents)
    #expect(plain.map(\.bytes) == packets && plain.allSatisfy { $0.segment == 0 })

    let grouped = vector.grouped(0..<count).map(Self.contents)
    #expect(grouped.count == groupCount)
    let lengths = (0..<groupCount).map { vector.packets(inGroup: $0, from: 0) }
    #expect(lengths.reduce(0, +) == count)
    if let expected { #expect(lengths == expected) }
    var first = 0
    for (group, length) in zip(grouped, lengths) {
      let members = packets[first..<first + length]
      #expect(group.bytes == Array(members.joined()))
      #expect(length <= segments && group.bytes.count <= 65_507)
      #expect(group.segment == (length > 1 ? members[first].count : 0))
      // What the kernel makes of it.
      if length > 1 {
        let cut = stride(from: 0, to: group.bytes.count, by: group.segment).map {
          Array(group.bytes[$0..<min($0 + group.segment, group.bytes.count)])
        }
        #expect(cut == Array(members))
      }
      for packet in first..<first + length {
        let isFirst = vector.isBoundary(packet)
        #expect(isFirst == (packet == first))
        let next = vector.boundary(from: packet)
        #expect(next == (packet == first ? first : first + length))
      }
      let rest = vector.grouped(first..<count).count
      #expect(rest == groupCount - lengths[..<(groupCount - rest)].count)
      first += length
    }
    let end = vector.boundary(from: count)
    #expect(end == count)
  }
}

/// Packets of any size, a NAL unit each.
private final class BigPacketMaker {
  private var packetizer: H264Packetizer
  private var memory: [UnsafeMutableRawBufferPointer] = []

  init() throws { packetizer = try H264Packetizer(maximumPacketSize: 65_507) }
  deinit { for bytes in memory { bytes.deallocate() } }

  func batch(sizes: [Int]) -> PacketBatch {
    let batch = PacketBatch()
    var units: [NALUnit] = []
    for (number, size) in sizes.enumerated() {
      let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 1)
      for index in bytes.indices { bytes[index] = index == 0 ? 0x41 : UInt8(truncatingIfNeeded: index &* 7 &+ number) }
      memory.append(bytes)
      if let unit = NALUnit(UnsafeRawBufferPointer(bytes)) { units.append(unit) }
    }
    units.withUnsafeBufferPointer {
      let unit = AccessUnit(nalUnits: $0, isKeyFrame: false, timestamp: .zero, captured: .zero)
      packetizer.packetize(unit, into: batch)
    }
    return batch
  }
}

@Suite struct PacedFrameTests {
  @Test func `a frame of more than twice the usual packets is spread, a small one never`() {
    let plan = PacedFrame.Plan(spread: .milliseconds(16), usual: 20)
    #expect(!plan.spreads(packets: 40) && plan.spreads(packets: 41))
    let small = PacedFrame.Plan(spread: .milliseconds(16), usual: 1)
    #expect(!small.spreads(packets: 16) && small.spreads(packets: 17))
    #expect(!PacedFrame.Plan(spread: .zero, usual: 1).spreads(packets: 1000))
    #expect(!PacedFrame.Plan(spread: .milliseconds(1), usual: 1).spreads(packets: 1000))
  }

  @Test func `packets are let go evenly, all of them by the end, at message boundaries`() throws {
    let frame = try FrameMaker().frame(packets: 100, isKeyFrame: true, isPaced: true)
    let begin = Instant(seconds: 10)
    var paced = PacedFrame(frame: frame, begin: begin, spread: .milliseconds(20))
    var released = [frame.released]
    for millisecond in Int64(1)...20 {
      #expect(paced.deadline == begin + .milliseconds(millisecond))
      let early = paced.release(at: begin + .milliseconds(millisecond) - Duration(nanoseconds: 1))
      #expect(!early)
      _ = paced.release(at: begin + .milliseconds(millisecond))
      released.append(frame.released)
      // In front by a message at most, and behind by a rounding.
      let due = Int(millisecond) * 5
      #expect((due - 1..<due + 8).contains(frame.released) || frame.released == 100)
      let boundary = frame.messages.isBoundary(frame.released)
      #expect(boundary)
    }
    #expect(released.first == 8 && released == released.sorted())
    #expect(paced.isOver && frame.released == 100)
  }

  @Test func `a late call lets go of all that is due`() throws {
    let frame = try FrameMaker().frame(packets: 100, isKeyFrame: true, isPaced: true)
    var paced = PacedFrame(frame: frame, begin: .zero, spread: .milliseconds(20))
    let isReleased = paced.release(at: Instant(seconds: 5))
    #expect(isReleased && paced.isOver)
  }
}
