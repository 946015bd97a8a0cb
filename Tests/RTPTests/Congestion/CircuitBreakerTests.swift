import Platform
import RTP
import TestSupport
import Testing

/// The stops of a stream by the rules of RFC 8083.
@Suite struct CircuitBreakerTests {
  /// A stream of 30 frames and 100 packets of 1200 bytes a second, with a key frame each second, and its receiver.
  private struct Stream {
    var breaker = CircuitBreaker(frameInterval: .milliseconds(33), groupInterval: .seconds(1), expectsReports: true)
    var packets = 0
    var sample = ReceptionSample(delivered: 0, age: nil, waiting: .zero, outstanding: 0)
    var milliseconds = 0
    var bytes = 0
    var packetBytes = 1200
    var isGroup = false
    /// `true` if nothing is sent.
    var rests = false
    /// `true` if each packet is sent twice.
    var repeats = false
    /// `true` if no more is sent than the breaker allows.
    var obeys = false
    private var budget = 0.0
    /// The time of the stop, in seconds from the beginning.
    var stop: Double?

    var now: Instant { Instant(seconds: 100) + .milliseconds(Int64(milliseconds)) }

    /// Sends for so long, with a report each `interval` unless that is nil. Of the packets, `arrival` tells which part has
    /// reached the receiver or was lost on the way, and `loss` how many of these are lost.
    mutating func run(
      seconds: Double, interval: Double? = 1, arrival: Double = 1, loss: Double = 0, roundTrip: Double? = 0.1
    ) {
      for _ in 0..<Int(seconds * 100) {
        milliseconds += 10
        if breaker.isStopped(sent: .init(packets: packets, bytes: bytes), isGroup: isGroup, at: now) {
          if stop == nil { stop = Double(milliseconds) / 1000 }
          continue
        }
        if obeys, let allowance = breaker.allowance { budget += allowance / 800 } else { budget = Double(packetBytes) }
        if !rests, budget >= Double(packetBytes) {
          budget -= Double(packetBytes)
          if repeats { repeated += packetBytes }
          packets += 1
          bytes += packetBytes
        }
        guard let interval, milliseconds.isMultiple(of: Int(interval * 1000)) else { continue }
        let expected = sample.expected + Int(Double(packets - known) * arrival)
        sample.lost += Int((Double(expected - sample.expected) * loss).rounded())
        sample.expected = expected
        known = packets
        sample.roundTrip = roundTrip.map { Duration(seconds: $0) }
        breaker.take(sample, sent: .init(packets: packets, bytes: bytes, repeated: repeated), at: now)
      }
    }

    private var known = 0
    private var repeated = 0

    mutating func changeSource() {
      breaker.forget()
      (packets, bytes, known, sample.expected, sample.lost) = (0, 0, 0, 0, 0)
    }
  }

  @Test func `TCP's throughput is that of the RFC's equation`() {
    // s / (Tr * sqrt(2 * p / 3)): 1200 bytes, 0.1 s and 6 % give 480 kbit/s.
    #expect(abs(CircuitBreaker.throughput(packetBytes: 1200, roundTrip: 0.1, loss: 0.06) - 480_000) < 1)
    // A quarter of the loss, or half of the round trip: twice as much.
    #expect(abs(CircuitBreaker.throughput(packetBytes: 1200, roundTrip: 0.1, loss: 0.015) - 960_000) < 1)
    #expect(abs(CircuitBreaker.throughput(packetBytes: 1200, roundTrip: 0.05, loss: 0.06) - 960_000) < 1)
    #expect(CircuitBreaker.throughput(packetBytes: 1200, roundTrip: 0.1, loss: 0) == .infinity)
    #expect(CircuitBreaker.throughput(packetBytes: 1200, roundTrip: 0, loss: 0.1) == .infinity)
  }

  @Test func `a stream whose receiver reports without losses is never stopped`() {
    var stream = Stream()
    stream.run(seconds: 600)
    #expect(stream.stop == nil && stream.breaker.stopped == nil && stream.breaker.counts == .init())
  }

  @Test func `a receiver that no longer reports stops the stream after 15 s`() {
    var stream = Stream()
    stream.run(seconds: 30)
    stream.run(seconds: 14.9, interval: nil)
    #expect(stream.stop == nil)
    stream.run(seconds: 0.2, interval: nil)
    #expect(stream.breaker.stopped == .silence && stream.breaker.counts.silence == 1)
  }

  @Test func `a receiver that reports each eight seconds has three of these`() {
    var stream = Stream()
    stream.run(seconds: 240, interval: 8)
    stream.run(seconds: 23.9, interval: nil)
    #expect(stream.stop == nil)
    stream.run(seconds: 0.2, interval: nil)
    #expect(stream.breaker.stopped == .silence)
  }

  @Test func `a receiver that has never reported stops nothing, nor does one of no session`() {
    var stream = Stream()
    stream.run(seconds: 120, interval: nil)
    #expect(stream.stop == nil)
    stream = Stream()
    stream.breaker = CircuitBreaker(frameInterval: .milliseconds(33), groupInterval: .seconds(1), expectsReports: false)
    stream.run(seconds: 30)
    stream.run(seconds: 120, interval: nil)
    #expect(stream.stop == nil)
  }

  @Test func `a stream without frames awaits no reports`() {
    var stream = Stream()
    stream.run(seconds: 30)
    stream.milliseconds += 60_000
    stream.run(seconds: 14, interval: nil)
    #expect(stream.stop == nil)
    stream.run(seconds: 2, interval: nil)
    #expect(stream.breaker.stopped == .silence)
  }

  @Test func `five reports of nothing stop the stream, and four do not`() {
    // ceil(5 * max(Tf, Tr, Tdr) / Tdr) with a report each second.
    var stream = Stream()
    stream.run(seconds: 30)
    stream.run(seconds: 4.5, arrival: 0)
    #expect(stream.stop == nil)
    stream.run(seconds: 0.6, arrival: 0)
    #expect(stream.breaker.stopped == .mediaTimeout && stream.breaker.counts.mediaTimeout == 1)
    // The reports may be rarer than the round trips: then these count.
    stream = Stream()
    stream.run(seconds: 60, roundTrip: 2)
    stream.run(seconds: 9.5, arrival: 0, roundTrip: 2)
    #expect(stream.stop == nil)
    stream.run(seconds: 0.6, arrival: 0, roundTrip: 2)
    #expect(stream.breaker.stopped == .mediaTimeout)
  }

  @Test func `one packet that arrives begins the count anew, and a pause of a second is none`() {
    var stream = Stream()
    stream.run(seconds: 30)
    for _ in 0..<10 {
      stream.run(seconds: 4, arrival: 0)
      stream.run(seconds: 1, arrival: 0.01)
    }
    #expect(stream.stop == nil)
    stream = Stream()
    stream.run(seconds: 30, interval: 0.01)
    stream.run(seconds: 1.5, interval: 0.01, arrival: 0)
    #expect(stream.stop == nil)
    stream.run(seconds: 1, interval: 0.01, arrival: 0)
    #expect(stream.breaker.stopped == .mediaTimeout)
  }

  @Test(arguments: [(0.2, 0.35, false), (0.2, 0.4, true), (0.4, 0.08, false), (1, 0.01, false), (1, 0.02, true)])
  func `ten times TCP's throughput stops the stream`(_ roundTrip: Double, _ loss: Double, _ isStopped: Bool) {
    // The stream has 960 kbit/s, and goes on with that.
    let most = CircuitBreaker.throughput(packetBytes: 1200, roundTrip: roundTrip, loss: loss) * 10
    #expect((most < 960_000) == isStopped)
    var stream = Stream()
    stream.run(seconds: 60, roundTrip: roundTrip)
    stream.run(seconds: 30, loss: loss, roundTrip: roundTrip)
    #expect((stream.breaker.counts.congestion > 0) == isStopped, "\(most)")
  }

  @Test func `a viewer that loses some packets by chance is never stopped where the stream becomes slower`() {
    // LTE: 960 kbit/s, a round trip of 1 s and a loss of 2 % are more than ten times TCP's 83 kbit/s.
    var stream = Stream()
    stream.obeys = true
    stream.run(seconds: 60, roundTrip: 1)
    #expect(stream.breaker.allowance == nil)
    stream.run(seconds: 300, loss: 0.02, roundTrip: 1)
    #expect(stream.stop == nil && stream.breaker.counts == .init())
    let most = CircuitBreaker.throughput(packetBytes: 1200, roundTrip: 1, loss: 0.02) * 10
    let allowance = stream.breaker.allowance ?? 0
    #expect((most * 0.4..<most * 0.8).contains(allowance), "\(allowance) of \(most)")
    // It ends with the loss.
    stream.run(seconds: 30, roundTrip: 1)
    #expect(stream.breaker.allowance == nil)
    // One that does not become slower is stopped, and begins again with what it may have.
    stream.obeys = false
    stream.run(seconds: 20, loss: 0.05, roundTrip: 1)
    #expect(stream.breaker.stopped == .congestion)
    #expect(stream.breaker.allowance != nil)
  }

  @Test func `packets that are sent again count as sent`() {
    // 960 kbit/s, and as much again.
    for (repeats, isStopped) in [(false, false), (true, true)] {
      var stream = Stream()
      stream.run(seconds: 30, roundTrip: 0.2)
      stream.repeats = repeats
      stream.run(seconds: 60, loss: 0.25, roundTrip: 0.2)
      #expect((stream.breaker.counts.congestion > 0) == isStopped)
    }
  }

  @Test func `one report alone, or two, are followed by none for ever`() {
    var stream = Stream()
    stream.run(seconds: 2.5)
    stream.run(seconds: 60, interval: nil)
    #expect(stream.stop == nil)
    stream = Stream()
    stream.run(seconds: 3.5)
    stream.run(seconds: 16, interval: nil)
    #expect(stream.breaker.stopped == .silence)
  }

  @Test func `a loss counts over CB_INTERVAL reports`() {
    // A group of a second: ceil(3 * min(max(10 * 1, 10 * 0.2, 3 * 1), 15) / (3 * 1)) = 10 reports, a second each. With a
    // round trip of 0.2 s, a loss of 37.5 % is ten times what TCP has.
    for (seconds, isTooFast) in [(3.0, false), (5.0, true)] {
      var stream = Stream()
      stream.run(seconds: 60, roundTrip: 0.2)
      stream.run(seconds: seconds, loss: 1, roundTrip: 0.2)
      stream.run(seconds: 1, roundTrip: 0.2)
      #expect((stream.breaker.allowance != nil) == isTooFast, "\(seconds) s")
      stream.run(seconds: 30, roundTrip: 0.2)
      #expect(stream.stop == nil && stream.breaker.allowance == nil)
    }
  }

  @Test func `a stopped stream begins again after a pause that doubles`() {
    var stream = Stream()
    stream.run(seconds: 30)
    var pauses: [Double] = []
    for _ in 0..<3 {
      stream.stop = nil
      stream.run(seconds: 3)
      stream.run(seconds: 16, interval: nil)
      let stopped = stream.milliseconds
      #expect(stream.breaker.stopped == .silence)
      while stream.breaker.stopped != nil, stream.milliseconds < stopped + 400_000 {
        stream.run(seconds: 0.1, interval: nil)
      }
      pauses.append((Double(stream.milliseconds) / 1000 - (stream.stop ?? 0)).rounded())
    }
    // No shorter than the silence itself.
    #expect(pauses == [15, 30, 60])
    // After two minutes without a stop it is as good as new.
    stream.run(seconds: 130)
    stream.stop = nil
    stream.run(seconds: 16, interval: nil)
    stream.run(seconds: 15, interval: nil)
    #expect(stream.breaker.stopped == nil && stream.breaker.counts.silence == 4)
    // Whoever is there now has not reported yet.
    stream.run(seconds: 60, interval: nil)
    #expect(stream.breaker.counts.silence == 4)
  }

  @Test func `a receiver that reports each 280 kB is not silent while fewer have left`() {
    // 12 kB a second: a report each 23 s.
    var stream = Stream()
    stream.packetBytes = 120
    stream.run(seconds: 20, interval: 1)
    stream.run(seconds: 300, interval: 23)
    #expect(stream.stop == nil)
    // A report after 3 s of a picture that moves, and then a still one.
    stream = Stream()
    stream.run(seconds: 30, interval: 3)
    let packets = stream.packets
    stream.packetBytes = 60
    stream.run(seconds: 60, interval: nil)
    #expect(stream.packets > packets && stream.stop == nil)
  }

  @Test func `a stream of little is stopped after three reports of bytes, and a megabyte`() {
    var stream = Stream()
    stream.packetBytes = 400
    stream.run(seconds: 64, interval: 8)
    // 40 kB a second, and 320 kB from report to report.
    stream.run(seconds: 24.9, interval: nil)
    #expect(stream.stop == nil)
    stream.run(seconds: 6, interval: nil)
    #expect(stream.breaker.stopped == .silence)
  }

  @Test func `the reports of a group are not awaited`() {
    var stream = Stream()
    stream.run(seconds: 30)
    stream.isGroup = true
    stream.run(seconds: 120, interval: nil)
    #expect(stream.stop == nil)
    stream.isGroup = false
    stream.run(seconds: 14.9, interval: nil)
    #expect(stream.stop == nil)
    stream.run(seconds: 0.3, interval: nil)
    #expect(stream.breaker.stopped == .silence)
  }

  @Test func `reports while nothing is sent are no media timeout, though the last packet was lost`() {
    var stream = Stream()
    stream.run(seconds: 30, interval: 0.25)
    // The camera is lost, and so is the last packet.
    stream.packets += 1
    stream.bytes += 1200
    stream.rests = true
    stream.run(seconds: 9, interval: 0.25, arrival: 0)
    #expect(stream.stop == nil)
    stream.rests = false
    stream.run(seconds: 30, interval: 0.25)
    #expect(stream.stop == nil)
    // A path that takes nothing is found as before.
    stream.run(seconds: 3, interval: 0.25, arrival: 0)
    #expect(stream.breaker.stopped == .mediaTimeout)
  }

  @Test(arguments: [Duration.seconds(450), .seconds(5)])
  func `a round trip by a wall clock that was set, or without the receiver's delay, is no longer than a packet's age`(
    _ roundTrip: Duration
  ) {
    var stream = Stream()
    stream.sample.age = .milliseconds(120)
    stream.run(seconds: 60, loss: 0.05, roundTrip: roundTrip.seconds)
    #expect(stream.stop == nil)
  }

  @Test func `another source counts anew`() {
    var stream = Stream()
    stream.run(seconds: 60)
    stream.changeSource()
    stream.run(seconds: 60)
    #expect(stream.stop == nil)
    stream.run(seconds: 20, interval: nil)
    #expect(stream.breaker.counts.silence == 1)
  }
}
