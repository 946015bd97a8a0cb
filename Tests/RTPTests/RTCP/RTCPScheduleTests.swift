import Media
import Platform
import RTP
import TestSupport
import Testing

@Suite struct RTCPScheduleTests {
  static func intervals(_ schedule: inout RTCPSchedule, _ count: Int, bytes: Int, seed: UInt64) -> [Double] {
    var random = SeededGenerator(seed: seed)
    var intervals: [Double] = []
    var last = Instant.zero
    while intervals.count < count {
      let time = schedule.deadline
      guard schedule.expire(at: time, using: &random) else { continue }
      intervals.append((time - last).seconds)
      last = time
      schedule.sent(bytes: bytes, at: time, using: &random)
    }
    return intervals
  }

  @Test func `intervals lie around the reduced minimum, the first at half of it`() {
    var random = SeededGenerator(seed: 1)
    var schedule = RTCPSchedule(sessionBitsPerSecond: 2_000_000, isSender: true, at: .zero, using: &random)
    #expect(schedule.deterministicInterval.milliseconds == 90)
    let intervals = Self.intervals(&schedule, 4000, bytes: 80, seed: 2)
    #expect(schedule.deterministicInterval.milliseconds == 180)
    // 0.5 to 1.5 of it, divided by e - 1.5 (section 6.3.1).
    #expect(intervals.dropFirst().allSatisfy { (0.0738...0.2217).contains($0) })
    // Reconsideration brings the mean back to the interval that was meant.
    let mean = intervals.reduce(0, +) / Double(intervals.count)
    #expect(abs(mean - 0.18) < 0.01, "mean interval \(mean)")
  }

  @Test func `the standard minimum is 5 s, 2.5 s for the first`() {
    var random = SeededGenerator(seed: 1)
    var schedule = RTCPSchedule(
      sessionBitsPerSecond: 2_000_000, isSender: true, minimum: .standard, at: .zero, using: &random)
    #expect(schedule.deterministicInterval.seconds == 2.5)
    schedule.sent(bytes: 80, at: .zero, using: &random)
    #expect(schedule.deterministicInterval.seconds == 5)
  }

  @Test func `many members share 5 % of the bandwidth, a quarter of it for few senders`() {
    var random = SeededGenerator(seed: 1)
    var schedule = RTCPSchedule(
      sessionBitsPerSecond: 80_000, isSender: false, members: 1001, senders: 1, firstBytes: 72, at: .zero,
      using: &random)
    // 80 kbit/s: 500 bytes/s of RTCP, 375 of them for 1000 receivers of 100 bytes each.
    #expect(abs(schedule.deterministicInterval.seconds - 1000.0 * 100 / 375) < 1e-6)
    schedule.isSender = true
    #expect(abs(schedule.deterministicInterval.seconds - 4.5 / 2) < 1e-6)
    schedule.isSender = false
    schedule.senders = 500
    #expect(abs(schedule.deterministicInterval.seconds - 1001.0 * 100 / 500) < 1e-6)
  }

  @Test func `a mean size follows what is sent and received by a sixteenth`() {
    var random = SeededGenerator(seed: 1)
    var schedule = RTCPSchedule(
      sessionBitsPerSecond: 1_000_000, isSender: true, firstBytes: 72, at: .zero, using: &random)
    #expect(schedule.averageBytes == 100)
    schedule.counted(bytes: 232)
    #expect(schedule.averageBytes == 110)
  }

  @Test func `a report is put off when members came, and comes sooner when they went`() {
    var random = SeededGenerator(seed: 3)
    var schedule = RTCPSchedule(
      sessionBitsPerSecond: 80_000, isSender: false, members: 2, senders: 1, at: .zero, using: &random)
    let first = schedule.deadline
    schedule.setMembers(2000, at: .zero)
    #expect(schedule.deadline == first)
    let isDue = schedule.expire(at: first, using: &random)
    #expect(!isDue && (schedule.deadline - .zero).seconds > (first - .zero).seconds * 10)
    let late = schedule.deadline
    schedule.setMembers(200, at: .zero)
    #expect(abs((schedule.deadline - .zero).seconds - (late - .zero).seconds / 10) < 1e-6)
  }

  @Test func `a sender reports while it sends, is a receiver after two silent intervals, and says goodbye`() throws {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: SenderControl.room, alignment: 8)
    defer { memory.deallocate() }
    var control = try SenderControl(canonicalName: "abc", sessionBitsPerSecond: 2_000_000, at: .zero, seed: 1)
    var packetizer = try H264Packetizer(
      stream: RTPStream(payloadType: .h264, ssrc: 7, firstSequenceNumber: 0, timestampOffset: 100))
    let batch = PacketBatch()
    // The stream's clock may show another time, as that of a file does: what is due is not due by that.
    let lead = Duration(seconds: 3600)
    func report(_ control: inout SenderControl) throws -> [String] {
      var count = 0
      while count == 0 {
        let time = control.schedule.deadline
        count = control.writeReport(
          of: packetizer.stream, into: memory, at: time, streamTime: time + lead, ntp: NTPTimestamp(rawValue: 9))
      }
      return try read(Array(memory[..<count]), allowReducedSize: false)
    }
    #expect(try report(&control) == ["RR 7", "SDES 7 1=abc"])
    withAccessUnit([hex("65 0102")]) { packetizer.packetize($0, into: batch) }
    let deadline = control.schedule.deadline
    let early = control.writeReport(
      of: packetizer.stream, into: memory, at: .zero, streamTime: .zero + lead, ntp: NTPTimestamp(rawValue: 9))
    #expect(early == 0)
    let first = try report(&control)
    #expect(first[0].hasPrefix("SR 7 ntp 9 rtp ") && first[0].hasSuffix(" sent 1/3") && first[1] == "SDES 7 1=abc")
    // The same instant on both clocks: the report's RTP time is the deadline's by the stream's, unless it was put off.
    let ticks = try #require(first[0].split(separator: " ")[5...].first.flatMap { Int64($0) })
    #expect(ticks - 100 >= (deadline + lead).ticks(rate: 90_000))
    #expect(try report(&control)[0].hasPrefix("SR 7"))
    #expect(try report(&control)[0] == "RR 7")
    #expect(control.reports == 4)
    let count = control.writeGoodbye(
      of: packetizer.stream, reason: "done", into: memory, at: .zero, ntp: NTPTimestamp(rawValue: 9))
    #expect(try read(Array(memory[..<count])) == ["RR 7", "SDES 7 1=abc", "BYE [7] done"])
  }
}
