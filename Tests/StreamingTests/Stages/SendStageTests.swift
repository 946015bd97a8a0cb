import Encoding
import Foundation
import Media
import Platform
import RTP
import Streaming
import Synchronization
import TestSupport
import Testing

/// The send stage on its own thread, with ways out that do what the test says.
@Suite(.serialized) struct SendStageTests {
  /// A way out that another thread may open and close.
  private final class Gate: PacketTransport, @unchecked Sendable {
    // Sendable: all is under the mutex.
    struct State {
      /// The number of packets that may pass; nil for any.
      var room: Int?
      /// The number of attempts that each frame needs before all of it passes at once, in place of `room`.
      var delays = 0
      var attempts = 0
      var packets: [Data] = []
      var control: [[UInt8]] = []
    }
    let state: Mutex<State>

    init(room: Int? = nil, delays: Int = 0) { state = Mutex(State(room: room, delays: delays)) }

    func send(_ frame: OutgoingFrame, _ packets: Range<Int>) -> SendProgress {
      state.withLock { state in
        var progress = SendProgress(next: packets.lowerBound)
        state.attempts += 1
        if state.delays > 0, state.attempts % (state.delays + 1) != 0 {
          progress.end = .full
          return progress
        }
        while progress.next < packets.upperBound {
          guard state.room != 0 else {
            progress.end = .full
            return progress
          }
          if let room = state.room { state.room = room - 1 }
          let packet = frame.batch[progress.next]
          state.packets.append(Data(packet.header) + Data(packet.payload))
          progress.next += 1
          progress.packets += 1
          progress.bytes += packet.count
        }
        return progress
      }
    }

    func send(header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer) -> Bool { true }
    func send(control bytes: UnsafeRawBufferPointer) { state.withLock { $0.control.append(Array(bytes)) } }
    func receiveControl(into memory: UnsafeMutableRawBufferPointer, hasMore: inout Bool) -> Int { 0 }
    func willContinue() {}
    func notePart(isFirst: Bool, isLast: Bool) {}
    func isReachable() -> Bool { true }
    var losesBursts: Bool { true }
    var framesInFlight: Int { 0 }
    var descriptors: (output: CInt?, input: CInt?) { (nil, nil) }

    /// The number of packets of each frame that have passed, in order.
    var packetsPerFrame: [Int] {
      let packets = state.withLock { $0.packets }
      var counts: [(timestamp: Data, count: Int)] = []
      for packet in packets {
        let timestamp = packet[4..<8]
        if counts.last?.timestamp == timestamp {
          counts[counts.count - 1].count += 1
        } else {
          counts.append((timestamp, 1))
        }
      }
      return counts.map(\.count)
    }
  }

  @Test func `an encoder is never held up by viewers that take nothing, and one that takes all gets all`() throws {
    let bench = try SendStageBench(heldLimit: 4, packetSize: 200)
    defer { bench.end() }
    let good = Gate()
    let goodFigures = bench.add(good, number: 1)
    // Each begins another picture and never ends it, so that they hold as many as they can together.
    let stuck = (0..<12).map { _ in Gate(room: 1) }
    let figures = stuck.indices.map { bench.add(stuck[$0], number: UInt64($0) + 2) }
    let written = Atomic(0)
    let writer = try NamedThread("writer") {
      for _ in 0..<200 {
        guard bench.write() else { return }
        written.add(1, ordering: .relaxed)
        usleep(2000)
      }
    }
    #expect(eventually(within: 60) { written.load(ordering: .relaxed) == 200 })
    #expect(eventually { goodFigures.current.frames == 200 })
    bench.end()
    _ = consume writer
    #expect(goodFigures.current.framesDropped == 0 && goodFigures.current.lost == 0)
    #expect(Set(good.packetsPerFrame).count == 1 && good.packetsPerFrame.count == 200)
    for item in figures { #expect(item.current.packets == 1 && item.current.framesDropped > 100) }
  }

  /// A viewer that is a little late with twenty pictures, and waits in the middle of another one while the next comes. Returns the time
  /// for which it waited, its figures, and the packets of each picture; of one of the twenty, if that was dropped.
  private static func waitWithinPicture() throws -> (waited: Duration, figures: DestinationStatistics, packets: [Int]) {
    let bench = try SendStageBench(heldLimit: 4, packetSize: 200)
    defer { bench.end() }
    let gate = Gate(delays: 2)
    let figures = bench.add(gate, number: 1)
    // Each is held for a while, and gone before the next comes.
    for count in 1...20 {
      let begin = Instant.now()
      bench.write()
      try #require(eventually { figures.current.frames + figures.current.framesDropped == count })
      // A machine that is held up makes it late by more than a little.
      guard figures.current.framesDropped == 0 else {
        return (Instant.now() - begin, figures.current, gate.packetsPerFrame)
      }
    }
    // Now one that has begun waits, while another comes.
    gate.state.withLock {
      $0.delays = 0
      $0.room = 2
    }
    let begin = Instant.now()
    bench.write()
    try #require(eventually { gate.state.withLock { $0.room } == 0 })
    bench.write(isKeyFrame: false)
    usleep(50_000)
    gate.state.withLock { $0.room = nil }
    let waited = Instant.now() - begin
    // One of which frames were dropped never gets there.
    if waited < patience { _ = eventually { figures.current.frames == 22 } }
    return (waited, figures.current, gate.packetsPerFrame)
  }

  /// Less than the time for which a viewer may wait.
  private static let patience = Duration.milliseconds(400)

  @Test func `a viewer that is a little late with every picture keeps its patience for one that takes long`() throws {
    var seen = try Self.waitWithinPicture()
    // A machine that is held up in the middle makes the viewer wait for too long.
    for _ in 0..<9 where seen.waited >= Self.patience { seen = try Self.waitWithinPicture() }
    #expect(seen.waited < Self.patience, "\(seen.waited)")
    #expect(seen.figures.frames == 22 && seen.figures.lost == 0 && seen.figures.framesDropped == 0, "\(seen.figures)")
    let perFrame = seen.packets
    #expect(perFrame.count == 22 && Set(perFrame.dropLast()).count == 1, "half a frame: \(perFrame)")
  }

  @Test func `a viewer that is added hears who sends, and one that leaves hears BYE if it heard anything`() throws {
    let bench = try SendStageBench(heldLimit: 4, packetSize: 200)
    defer { bench.end() }
    let early = Gate()
    _ = bench.add(early, number: 1)
    bench.stage.remove(ViewerID(number: 1), goodbye: true)
    let (second, third) = (Gate(), Gate())
    let figures = bench.add(second, number: 2)
    bench.write()
    try #require(eventually { figures.current.frames == 1 })
    _ = bench.add(third, number: 3)
    func heard(_ gate: Gate) -> [[UInt8]] { gate.state.withLock { $0.control }.map(Self.packetTypes) }
    #expect(eventually { !heard(third).isEmpty })
    bench.stage.remove(ViewerID(number: 2), goodbye: true)
    #expect(eventually { heard(second).last == [200, 202, 203] })
    bench.end()
    // RFC 3550 section 6.3.7: no BYE from one that has never sent anything.
    #expect(heard(early).isEmpty)
    for gate in [second, third] {
      let types = heard(gate)
      #expect(types.count >= 2 && types.last == [200, 202, 203], "\(types)")
      // One report. Another is due after a second or more, which a machine that is held up may need.
      #expect(types.dropLast().allSatisfy { $0 == [200, 202] }, "\(types)")
    }
  }

  /// The types of the packets in a compound one (RFC 3550 section 6.1).
  private static func packetTypes(_ bytes: [UInt8]) -> [UInt8] {
    var types: [UInt8] = []
    var index = 0
    while index + 4 <= bytes.count {
      types.append(bytes[index + 1])
      index += 4 * (Int(bytes[index + 2]) << 8 + Int(bytes[index + 3]) + 1)
    }
    return types
  }

  /// The end of a stage with a frame under way to two viewers: one that takes it at the fifth attempt, and one that
  /// never takes all of it. The frames of the former, and the attempts with the latter.
  private static func endWithFrameUnderWay() throws -> (frames: Int, attempts: Int) {
    let bench = try SendStageBench(heldLimit: 4, packetSize: 200)
    let (slow, stuck) = (Gate(delays: 4), Gate(room: 1))
    let slowFigures = bench.add(slow, number: 1)
    _ = bench.add(stuck, number: 2)
    bench.write()
    let begin = Instant.now()
    bench.end()
    #expect(Instant.now() - begin < Duration(seconds: 20))
    #expect(stuck.packetsPerFrame == [1])
    return (slowFigures.current.frames, stuck.state.withLock { $0.attempts })
  }

  @Test func `frames under way are sent at the end, and the end does not wait forever`() throws {
    var end = try Self.endWithFrameUnderWay()
    // A machine that is held up meanwhile makes fewer attempts within a viewer's patience.
    for _ in 0..<9 where end.frames == 0 && end.attempts < 6 { end = try Self.endWithFrameUnderWay() }
    #expect(end.frames == 1, "\(end.attempts) attempts")
  }
}

extension SendStageBench {
  /// Queues a picture of about `packets` packets, which waits where there is no room; false once the queue is closed.
  @discardableResult
  func write(packets: Int = 5, isKeyFrame: Bool = true) -> Bool {
    guard let picture = pictures.beginWrite() else { return false }
    let nalUnit: [UInt8] = [isKeyFrame ? 0x65 : 0x41] + [UInt8](repeating: 7, count: packets * 184)
    guard picture.store([nalUnit], isKeyFrame: isKeyFrame, at: nextTime()) else { return false }
    pictures.commit(picture, encoded: .now())
    return true
  }
}
