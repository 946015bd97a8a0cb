import CLinux
import Foundation
import Media
import Platform
import Streaming
import TestSupport
import Testing

@Suite struct MailboxTests {
  @Test func `the newest wins, and the one that it replaced comes back`() throws {
    let mailbox = Mailbox<Int>()
    #expect(mailbox.put(1) == nil)
    #expect(mailbox.put(2) == 1)
    #expect(mailbox.put(3) == 2)
    #expect(mailbox.take() == 3)
  }

  @Test func `a frame that is replaced goes back to its pool`() throws {
    let pool = try FramePool(size: PictureSize(width: 64, height: 64), capacity: 2)
    let mailbox = Mailbox<Frame>()
    for _ in 0..<10 {
      let displaced = mailbox.put(try pool.frame())
      _ = consume displaced
    }
    #expect(pool.available == 1)
    let last = mailbox.take()
    _ = consume last
    #expect(pool.available == 2)
  }

  @Test func `a closed mailbox gives its last element, and then nothing`() {
    let mailbox = Mailbox<Int>()
    _ = mailbox.put(7)
    mailbox.close()
    #expect(mailbox.take() == 7)
    #expect(mailbox.take() == nil)
    #expect(mailbox.putWaiting(8) == 8)
  }

  @Test func `nothing is lost or changed in order where the producer waits`() throws {
    let mailbox = Mailbox<Int>()
    let producer = try NamedThread("producer") {
      for number in 0..<10_000 { _ = mailbox.putWaiting(number) }
      mailbox.close()
    }
    var taken: [Int] = []
    while let number = mailbox.take() { taken.append(number) }
    _ = consume producer
    #expect(taken == Array(0..<10_000))
  }

  @Test func `a waiting consumer gets an element, however soon the next one comes`() throws {
    let mailbox = Mailbox<Int>(patience: Duration(seconds: 60))
    let taken = Mailbox<Int>()
    let consumer = try NamedThread("consumer") {
      while let number = mailbox.take() { _ = taken.putWaiting(number) }
    }
    defer {
      mailbox.close()
      taken.close()
    }
    for round in 0..<200 {
      #expect(eventually { mailbox.hasWaitingConsumer })
      let displaced = [mailbox.put(2 * round), mailbox.put(2 * round + 1)]
      try #require(displaced == [nil, nil], "round \(round)")
      #expect([taken.take(), taken.take()] == [2 * round, 2 * round + 1])
    }
    _ = consumer
  }
}

@Suite struct CodedPictureQueueTests {
  /// Stores a picture of one NAL unit.
  private static func store(_ bytes: [UInt8], in picture: CodedPicture) -> Bool {
    bytes.withUnsafeBytes { memory in
      guard let nalUnit = NALUnit(memory) else { return false }
      return withUnsafePointer(to: nalUnit) {
        let unit = AccessUnit(
          nalUnits: UnsafeBufferPointer(start: $0, count: 1), isKeyFrame: true, timestamp: .zero, captured: .zero)
        return picture.store(unit)
      }
    }
  }

  @Test func `pictures come out as they went in, in order, and no more than the depth wait`() throws {
    let queue = try CodedPictureQueue(capacity: 4096)
    for number in 0..<UInt8(CodedPictureQueue.depth) {
      let picture = try #require(queue.beginWrite())
      #expect(Self.store([0x65, number], in: picture))
      queue.commit(picture, encoded: .now())
    }
    for number in 0..<UInt8(CodedPictureQueue.depth) {
      guard case .picture(let picture) = queue.next(until: .now()) else {
        Issue.record("no picture")
        return
      }
      #expect(Array(picture.accessUnit.nalUnits[0].bytes) == [0x65, number])
      queue.release(picture)
    }
    guard case .timeout = queue.next(until: .now()) else {
      Issue.record("the queue should be empty")
      return
    }
    queue.close()
    guard case .closed = queue.next(until: .now() + Duration(seconds: 60)) else {
      Issue.record("the queue should be closed")
      return
    }
    #expect(queue.beginWrite() == nil)
  }

  @Test func `pictures still in use take no room from the depth, and return after their last holder`() throws {
    let queue = try CodedPictureQueue(capacity: 4096, held: 2)
    var taken: [CodedPicture] = []
    for number in 0..<UInt8(CodedPictureQueue.depth + 2) {
      let picture = try #require(queue.beginWrite())
      #expect(Self.store([0x65, number], in: picture))
      queue.commit(picture, encoded: .now())
      guard case .picture(let next) = queue.next(until: .now()) else {
        Issue.record("no picture")
        return
      }
      queue.addHolder(of: next)
      queue.release(next)
      taken.append(next)
    }
    // All are out: the next write waits for one that comes back.
    let writer = try NamedThread("writer") {
      if let picture = queue.beginWrite() { queue.commit(picture, encoded: .now()) }
    }
    guard case .timeout = queue.next(until: .now() + Duration.milliseconds(50)) else {
      Issue.record("there should be no room")
      return
    }
    for picture in taken { queue.release(picture) }
    guard case .picture = queue.next(until: .now() + Duration(seconds: 60)) else {
      Issue.record("a picture came back")
      return
    }
    _ = consume writer
  }

  @Test func `a picture that does not fit is refused`() throws {
    let picture = try CodedPicture(capacity: 4096)
    #expect(!Self.store(Array(repeating: 0x41, count: 4097), in: picture))
    #expect(Self.store(Array(repeating: 0x41, count: 4096), in: picture))
  }
}

@Suite struct LatencyHistogramTests {
  @Test func `percentiles are right within three per cent`() {
    var histogram = LatencyHistogram()
    for microseconds in 1...10_000 { histogram.record(Duration(nanoseconds: Int64(microseconds) * 1000)) }
    for (fraction, expected) in [(0.5, 5.0), (0.99, 9.9), (0.01, 0.1)] {
      let value = histogram.percentile(fraction).milliseconds
      #expect(abs(value / expected - 1) < 0.035, "\(fraction): \(value)")
    }
    #expect(histogram.maximum == Duration.milliseconds(10))
    #expect(histogram.count == 10_000)
  }

  @Test(arguments: [Int64.min, -1, 0, 1, 31, 32, 33, 1 << 39, 1 << 41, .max])
  func `no value is too small or too large`(nanoseconds: Int64) {
    var histogram = LatencyHistogram()
    histogram.record(Duration(nanoseconds: nanoseconds))
    #expect(histogram.count == 1)
    #expect(histogram.percentile(1) <= max(.zero, Duration(nanoseconds: nanoseconds)))
  }

  @Test func `an empty one knows no percentile`() {
    #expect(LatencyHistogram().percentile(0.5) == .zero)
  }
}

extension CodedPictureQueue {
  /// The result of waiting until `deadline`.
  enum Awaited {
    case picture(CodedPicture)
    case timeout
    case closed
  }

  /// Waits for the next picture as the send stage does.
  func next(until deadline: Instant) -> Awaited {
    while true {
      switch take() {
      case .picture(let picture): return .picture(picture)
      case .closed: return .closed
      case .none: break
      }
      let rest = deadline - .now()
      guard rest > .zero else { return .timeout }
      var descriptor = pollfd(fd: arrival.fileDescriptor, events: Int16(POLLIN), revents: 0)
      poll(&descriptor, 1, CInt(min(rest.nanoseconds / 1_000_000 + 1, 60_000)))
      arrival.clear()
    }
  }
}
