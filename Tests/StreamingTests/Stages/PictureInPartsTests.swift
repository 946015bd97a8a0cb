import Capture
import Encoding
import Foundation
import Media
import Platform
import RTP
import Streaming
import Synchronization
import TestSupport
import Testing

/// Pictures that come in parts, from the queue to the viewers.
@Suite(.serialized) struct PictureInPartsTests {
  /// A way out that keeps what it is given, of another thread's asking.
  private final class Taker: PacketTransport, @unchecked Sendable {
    // Sendable: all is under the mutex.
    private let state = Mutex<(room: Int, packets: [Data], frames: Int)>((.max, [], 0))

    /// The packets that were taken, in order.
    var packets: [Data] { state.withLock { $0.packets } }
    var wholeFrames: Int { state.withLock { $0.frames } }
    /// Takes so many packets more.
    func setRoom(_ packets: Int) { state.withLock { $0.room = packets } }

    func send(_ frame: OutgoingFrame, _ packets: Range<Int>) -> SendProgress {
      state.withLock { state in
        var progress = SendProgress(next: packets.lowerBound)
        while progress.next < packets.upperBound {
          guard state.room > 0 else {
            progress.end = .full
            return progress
          }
          state.room -= 1
          let packet = frame.batch[progress.next]
          state.packets.append(Data(packet.header) + Data(packet.payload))
          progress.next += 1
          progress.packets += 1
          progress.bytes += packet.count
        }
        return progress
      }
    }

    func send(header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer) -> Bool {
      state.withLock { $0.packets.append(Data(header) + Data(payload)) }
      return true
    }

    func send(control bytes: UnsafeRawBufferPointer) {}
    func receiveControl(into memory: UnsafeMutableRawBufferPointer, hasMore: inout Bool) -> Int { 0 }
    func willContinue() {}
    func notePart(isFirst: Bool, isLast: Bool) { if isFirst { state.withLock { $0.frames += 1 } } }
    func isReachable() -> Bool { true }
    var losesBursts: Bool { true }
    var framesInFlight: Int { 0 }
    var descriptors: (output: CInt?, input: CInt?) { (nil, nil) }

    /// Each packet's marker, sequence number and timestamp.
    var headers: [(marker: Bool, number: UInt16, timestamp: UInt32)] {
      packets.compactMap { packet in
        packet.withUnsafeBytes { try? RTPPacket(parsing: $0).header }
      }.map { ($0.marker, $0.sequenceNumber, $0.timestamp) }
    }

    /// The NAL units of each picture, by our depacketizer; none may be damaged.
    func pictures() throws -> [[UInt8]] {
      var depacketizer = H264Depacketizer()
      var pictures: [[UInt8]] = []
      for packet in packets {
        try packet.withUnsafeBytes {
          try depacketizer.receive($0) { unit in
            let isDamaged = unit.isDamaged
            #expect(!isDamaged)
            pictures.append(Array(unit.annexB))
          }
        }
      }
      return pictures
    }

    /// Expects that sequence numbers have no gap, and that each timestamp has one marker, on its last packet.
    func expectWhole() {
      let headers = headers
      for (one, next) in zip(headers, headers.dropFirst()) {
        #expect(next.number == one.number &+ 1)
        #expect(one.marker == (one.timestamp != next.timestamp))
      }
      #expect(headers.last?.marker == true)
    }
  }

  @Test func `parts leave as they come, and are the packets that the whole would be`() throws {
    let bench = try SendStageBench(heldLimit: 8, pacing: 1, packetSize: 400)
    let taker = Taker()
    let figures = bench.add(taker, number: 1)
    for number in 0..<6 {
      try bench.write(slices: 4, isKeyFrame: number == 0) { index in
        // Each part has left before the next is there.
        let total = number * 4 + index + 1
        #expect(eventually { (try? Self.slices(taker.packets)) == total })
      }
    }
    // The stage counts a picture after its viewers do.
    #expect(eventually { bench.statistics.statistics(until: .now()).sent == 6 && figures.current.frames == 6 })
    taker.expectWhole()
    #expect(taker.wholeFrames == 6 && figures.current.framesDropped == 0 && figures.current.lost == 0)
    #expect(Set(taker.headers.map(\.timestamp)).count == 6)
    let pictures = try taker.pictures()
    #expect(pictures.count == 6)
    // The sets, which the encoder did not bring, are before the first slice and nowhere else.
    #expect(pictures[0].starts(with: [0, 0, 0, 1, 0x67, 66, 0xc0, 30, 1, 0, 0, 0, 1, 0x68, 1, 0, 0, 0, 1, 0x65]))
    let sets = 9 + 6
    #expect(pictures.map(\.count) == [sets + 3020] + Array(repeating: 3020, count: 5))
    let sum = bench.statistics.statistics(until: .now())
    #expect(sum.sent == 6)
    #expect(sum.latencies[.firstPacket]?.count == 6 && sum.latencies[.total]?.count == 6)
    let first = try #require(sum.latencies[.firstPacket]?.median)
    let total = try #require(sum.latencies[.total]?.median)
    #expect(first < total)
  }

  /// Returns the number of slices in these packets: those that begin, but for none that goes on.
  private static func slices(_ packets: [Data]) throws -> Int {
    packets.count { packet in
      let type = packet[12] & 0x1f
      // A fragment that ends one, or one that is whole.
      return type == 28 ? packet[13] & 0x40 != 0 : type == 1 || type == 5
    }
  }

  @Test func `a viewer that comes in the middle of a picture gets whole ones alone`() throws {
    let bench = try SendStageBench(heldLimit: 8, pacing: 1, packetSize: 400)
    let (first, second) = (Taker(), Taker())
    _ = bench.add(first, number: 1)
    try bench.write(slices: 3, isKeyFrame: true)
    try bench.write(slices: 3, isKeyFrame: false) { index in
      guard index == 0 else { return }
      #expect(eventually { (try? Self.slices(first.packets)) == 4 })
      _ = bench.add(second, number: 2)
      // It is greeted before the next part is.
      usleep(50_000)
    }
    try bench.write(slices: 3, isKeyFrame: false)
    try bench.write(slices: 3, isKeyFrame: true)
    try bench.write(slices: 3, isKeyFrame: false)
    #expect(eventually { (try? Self.slices(first.packets)) == 15 })
    bench.end()
    for taker in [first, second] { taker.expectWhole() }
    #expect(try first.pictures().count == 5)
    let pictures = try second.pictures()
    #expect(pictures.count >= 2)
    let all = try first.pictures()
    #expect(pictures[0].contains(0x65))
    #expect(pictures == Array(all.suffix(pictures.count)))
  }

  @Test func `a picture that is not ended is lost, and the next key frame is whole`() throws {
    let bench = try SendStageBench(heldLimit: 8, pacing: 1, packetSize: 400)
    let taker = Taker()
    let figures = bench.add(taker, number: 1)
    try bench.write(slices: 3, isKeyFrame: true)
    try bench.write(slices: 2, isKeyFrame: false, isEnded: false) { index in
      #expect(eventually { (try? Self.slices(taker.packets)) == 4 + index })
    }
    // It could not be decoded.
    try bench.write(slices: 3, isKeyFrame: false)
    try bench.write(slices: 3, isKeyFrame: true)
    try bench.write(slices: 1, isKeyFrame: false)
    #expect(eventually { figures.current.frames == 3 })
    #expect(figures.current.framesDropped == 2)
    let headers = taker.headers
    for (one, next) in zip(headers, headers.dropFirst()) where one.timestamp == next.timestamp {
      #expect(next.number == one.number &+ 1)
    }
    #expect(headers.count { $0.marker } == 3)
    // All memory came back.
    for _ in 0..<20 { try bench.write(slices: 2, isKeyFrame: true) }
    #expect(eventually { figures.current.frames == 23 })
  }

  @Test func `one that gives up within a picture gets no more of it`() throws {
    let bench = try SendStageBench(heldLimit: 8, pacing: 1, packetSize: 400)
    let slow = Taker()
    let figures = bench.add(slow, number: 1)
    try bench.write(slices: 2, isKeyFrame: true)
    #expect(eventually { figures.current.frames == 1 })
    let before = slow.packets.count
    slow.setRoom(1)
    try bench.write(slices: 3, isKeyFrame: false) { index in
      guard index == 1 else { return }
      // Its patience ends.
      #expect(eventually { figures.current.framesDropped == 1 })
      slow.setRoom(.max)
    }
    try bench.write(slices: 2, isKeyFrame: true)
    #expect(eventually { figures.current.frames == 2 })
    #expect(figures.current.framesDropped == 1)
    let headers = slow.headers
    #expect(headers[before].timestamp != headers[before + 1].timestamp)
    #expect(headers[before...].count { $0.marker } == 1)
  }

  @Test func `a transport stream waits for the whole picture`() throws {
    let bench = try SendStageBench(heldLimit: 8, pacing: 1, packetSize: 400)
    let (parts, whole) = (Taker(), Taker())
    let figures = [bench.add(parts, number: 1), bench.add(whole, number: 2, payload: .mp2t)]
    try bench.write(slices: 3, isKeyFrame: true) { index in
      guard index == 1 else { return }
      #expect(eventually { (try? Self.slices(parts.packets)) == 2 })
      #expect(whole.packets.isEmpty)
    }
    try bench.write(slices: 3, isKeyFrame: false)
    #expect(eventually { figures.allSatisfy { $0.current.frames == 2 } })
    bench.end()
    // 376 bytes of two transport stream packets fit 400; its own judges are RTPTests and PlayerTests.
    let stream = whole.packets.reduce(into: Data()) { $0 += $1.dropFirst(12) }
    #expect(stream.count > 3000 && stream.count.isMultiple(of: 188))
    #expect(stream.range(of: Data([0, 0, 0, 1, 0x67, 66, 0xc0, 30, 1])) != nil)
  }

  /// An encoder of pictures of two parts that waits before the second until it is told to go on, or fails there.
  private final class HaltingEncoder: VideoEncoder, @unchecked Sendable {
    // Sendable: what others touch is atomic.
    let configuration = EncoderConfiguration(
      size: PictureSize(width: 64, height: 64), frameRate: .thirty, bitrate: 100_000, color: .bt709)
    let name = "halting encoder"
    let parameterSets: ParameterSets
    let mayGoOn = Atomic(false)
    let isInMiddle = Atomic(false)
    let keyFrames = Atomic(0)
    let fails: Bool
    private var count = 0

    init(fails: Bool = false) throws {
      parameterSets = try #require(ParameterSets(sequence: [0x67, 66, 0xc0, 30, 1], picture: [0x68, 1]))
      self.fails = fails
    }

    func prepare() throws(EncoderError) {}
    func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {}
    func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {}
    func stop() {}

    func encode(
      _ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
    ) throws(EncoderError) {
      count += 1
      if keyFrame { keyFrames.add(1, ordering: .relaxed) }
      let (timestamp, captured) = (frame.timestamp, frame.captured)
      for isFirst in [true, false] {
        if !isFirst {
          isInMiddle.store(true, ordering: .relaxed)
          if fails, count == 3 { throw .output(library: "halting", "as it was told") }
          while !mayGoOn.load(ordering: .relaxed) { usleep(1000) }
        }
        let slice: [UInt8] = [keyFrame ? 0x65 : 0x41, isFirst ? 1 : 2]
        slice.withUnsafeBytes { bytes in
          guard let unit = NALUnit(bytes) else { return }
          withUnsafePointer(to: unit) {
            sink.take(
              AccessUnit(
                nalUnits: UnsafeBufferPointer(start: $0, count: 1), isKeyFrame: keyFrame, timestamp: timestamp,
                captured: captured, isFirstPart: isFirst, isLastPart: !isFirst))
          }
        }
      }
    }
  }

  @Test func `the first packet is there while the encoder is still at work on the picture`() throws {
    let recorder = try DatagramRecorder()
    let encoder = try HaltingEncoder()
    let pipeline = try Pipeline(
      source: try SyntheticCamera(size: PictureSize(width: 64, height: 64), frameRate: .thirty), encoder: encoder,
      destinations: [StreamDestination(host: "127.0.0.1", port: recorder.port)],
      keyFrameInterval: Duration(seconds: 1000))
    try pipeline.start()
    #expect(eventually { encoder.isInMiddle.load(ordering: .relaxed) && recorder.count == 2 })
    // Its first call has not returned.
    #expect(pipeline.statistics.encoded == 0 && pipeline.statistics.sent == 0)
    encoder.mayGoOn.store(true, ordering: .relaxed)
    #expect(eventually { pipeline.statistics.sent > 5 })
    pipeline.stop()
    _ = pipeline.waitUntilEnd()
    let figures = pipeline.statistics
    // A camera that a busy machine keeps from its time has not captured those frames.
    #expect(figures.captured == figures.sent + figures.dropped - (figures.drops[.driver] ?? 0))
    let datagrams = recorder.finish()
    #expect(datagrams.count == figures.sent * 2 + 1)
    #expect(datagrams.count { $0[1] & 0x80 != 0 } == figures.sent)
  }

  @Test func `an encoder that fails in the middle of a picture goes on with a key frame`() throws {
    let encoder = try HaltingEncoder(fails: true)
    encoder.mayGoOn.store(true, ordering: .relaxed)
    let recorder = try DatagramRecorder()
    let pipeline = try Pipeline(
      source: try SyntheticCamera(size: PictureSize(width: 64, height: 64), frameRate: .thirty), encoder: encoder,
      destinations: [StreamDestination(host: "127.0.0.1", port: recorder.port)],
      keyFrameInterval: Duration(seconds: 1000))
    try pipeline.start()
    #expect(eventually { pipeline.statistics.sent > 8 })
    pipeline.stop()
    _ = pipeline.waitUntilEnd()
    #expect(encoder.keyFrames.load(ordering: .relaxed) == 2)
    let figures = pipeline.statistics
    #expect(figures.drops[.encoderError] == 1 && figures.drops[.network] == 0)
    // None where the send stage had not even begun.
    #expect(figures.destinations[0].framesDropped <= 1)
    #expect(recorder.finish().count { $0[1] & 0x80 != 0 } == figures.sent)
  }
}

extension SendStageBench {
  /// Queues a picture of `slices` slices, one a part, and calls `between` after each; it breaks off behind the last
  /// unless `isEnded`.
  func write(slices: Int, isKeyFrame: Bool, isEnded: Bool = true, between: (Int) -> Void = { _ in }) throws {
    let picture = try #require(pictures.beginWrite())
    let time = nextTime()
    for index in 0..<slices {
      let slice = [isKeyFrame ? 0x65 : 0x41] + [UInt8](repeating: UInt8(index + 1), count: 300 * (index + 1))
      let isLast = index == slices - 1
      try #require(
        picture.store(
          [slice], isKeyFrame: isKeyFrame, at: time, captured: .now(), isFirst: index == 0, isLast: isLast && isEnded))
      pictures.commit(picture, encoded: .now(), isEnded: isLast && isEnded)
      between(index)
    }
    if !isEnded { pictures.breakOff(picture) }
  }
}
