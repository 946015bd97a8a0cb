import Platform
import RTP
import TestSupport
import Testing

/// The estimate on simulated links, whose capacity, queue and losses nobody tells it. The limits are the project's goals;
/// a run depends on its seed alone.
@Suite struct BandwidthEstimateTests {
  /// A way to report, and its name.
  struct Case: Sendable, CustomTestStringConvertible {
    var reports: SimulatedPath.Reports
    var testDescription: String
  }

  static let frequent = [
    Case(reports: .bytes(5600), testDescription: "a report each 5600 bytes"),
    Case(reports: .interval(0.25), testDescription: "a report each 250 ms"),
    Case(reports: .acknowledgements, testDescription: "TCP"),
  ]

  /// A link whose capacity is less from the tenth second to the thirtieth.
  private static func path(
    _ reports: SimulatedPath.Reports, usual: Double = 3_000_000, low: Double, queueBytes: Int
  ) -> SimulatedPath {
    var path = SimulatedPath()
    path.capacity = { (10..<30).contains($0) ? low : usual }
    (path.queueBytes, path.reports) = (queueBytes, reports)
    return path
  }

  private static func tell(_ name: String, _ outcome: SimulatedPath.Outcome, low: Double, wanted: Double) {
    func text(_ value: Double?) -> String { value.map { "\(($0 * 1000).rounded() / 1000)" } ?? "never" }
    print(
      "\(name): below \(text(outcome.time(from: 10) { $0 < low })) s after the fall; queue p95",
      "\(text(outcome.queue(0.95, 13..<30))) s; used \(text(outcome.use(13..<30))); 90 % back after",
      "\(text(outcome.time(from: 30) { $0 > 0.9 * wanted })) s; \(outcome.skipped) pictures skipped,",
      "\(outcome.lost) of \(outcome.sent) packets lost")
  }

  @Test(arguments: frequent) func `the estimate follows a capacity that falls from 3 to 1 Mbit per second and returns`(
    _ example: Case
  ) throws {
    let path = Self.path(example.reports, low: 1_000_000, queueBytes: 250_000)
    let outcome = path.run(seconds: 60)
    Self.tell("3 → 1 → 3 Mbit/s, \(example.testDescription)", outcome, low: 1_000_000, wanted: path.wanted)
    #expect(try #require(outcome.time(from: 10) { $0 < 1_000_000 }) <= 1)
    #expect(outcome.queue(0.95, 13..<30) <= 0.2)
    #expect(outcome.use(13..<30) >= 0.8)
    // Of all growth until the path is known to take more, and twice as fast from there on.
    #expect(try #require(outcome.time(from: 30) { $0 > 0.9 * path.wanted }) <= 6)
    #expect(outcome.mean(2..<10) > 0.8 * path.wanted)
  }

  @Test func `an open path that is bound to what it has proved grows from there, until it is open again`() throws {
    var estimate = BandwidthEstimate(wanted: 3_000_000)
    var now = Instant(seconds: 100)
    estimate.bound(to: 1_200_000, at: now)
    estimate.bound(to: 500_000, at: now)
    #expect(estimate.limit == 1_200_000 && estimate.target(at: now) == 1_200_000)
    var (delivered, opened, limits): (Int, Int?, [Double]) = (0, nil, [])
    for tick in 1...600 where opened == nil {
      now = now + .milliseconds(100)
      delivered += Int(min(estimate.limit ?? 3_000_000, 3_000_000) / 80)
      estimate.take(
        ReceptionSample(delivered: delivered, age: .milliseconds(20), waiting: .zero, outstanding: 0), at: now)
      if let limit = estimate.limit { limits.append(limit) } else { opened = tick }
    }
    #expect(limits[9] < 1_600_000 && limits[199] > 2_900_000, "\(limits.prefix(200))")
    let tenths = try #require(opened)
    #expect((301...320).contains(tenths))
    // A viewer of small pictures, whose stream has little: the decrease of long ago does not open the path.
    estimate.wanted = 1_000_000
    estimate.bound(to: 1_200_000, at: now)
    for _ in 0..<50 {
      now = now + .milliseconds(100)
      delivered += 12_500
      estimate.take(
        ReceptionSample(delivered: delivered, age: .milliseconds(20), waiting: .zero, outstanding: 0), at: now)
    }
    let bound = try #require(estimate.limit)
    #expect(bound >= 1_200_000)
  }

  @Test(arguments: frequent, [(2e6, 64_000), (1e6, 250_000), (4e5, 64_000), (2e6, 1_000_000)])
  func `any queue drains, and the capacity is used`(_ example: Case, _ link: (low: Double, queueBytes: Int)) throws {
    let path = Self.path(example.reports, usual: 3_300_000, low: link.low, queueBytes: link.queueBytes)
    let outcome = path.run(seconds: 60)
    let name = "\(link.low / 1e6) Mbit/s, \(link.queueBytes / 1000) kB, \(example.testDescription)"
    Self.tell(name, outcome, low: link.low, wanted: path.wanted)
    #expect(outcome.queue(0.95, 13..<30) <= 0.2)
    #expect(outcome.use(13..<30) >= 0.8)
    #expect(try #require(outcome.time(from: 30) { $0 > 0.9 * path.wanted }) <= 9)
  }

  @Test(arguments: frequent) func `random loss of 2 percent costs less than a fifth of the bitrate`(_ example: Case) {
    var path = SimulatedPath()
    (path.reports, path.loss, path.capacity) = (example.reports, 0.02, { _ in 4_000_000 })
    let open = path.run(seconds: 60)
    print("2 % loss, \(example.testDescription):", open.mean(0..<60) / path.wanted, "of the bitrate")
    #expect(open.mean(0..<60) >= 0.8 * path.wanted)
    // The same beside a capacity that is less than the bitrate.
    path.capacity = { _ in 2_000_000 }
    let limited = path.run(seconds: 60)
    #expect(limited.use(5..<60) >= 0.8)
    #expect(limited.queue(0.95, 5..<60) <= 0.2)
  }

  @Test(arguments: frequent) func `at 300 kbit per second pictures stop until the old ones have left`(_ example: Case) {
    let path = Self.path(example.reports, usual: 3_300_000, low: 300_000, queueBytes: 250_000)
    let outcome = path.run(seconds: 60)
    Self.tell("0.3 Mbit/s, 250 kB, \(example.testDescription)", outcome, low: 300_000, wanted: path.wanted)
    // What was on its way takes seconds at this rate, whatever is done.
    #expect(outcome.queue(0.95, 17..<30) <= 0.25)
    #expect(outcome.use(13..<30) >= 0.8)
    #expect(outcome.skipped < 200)
  }

  @Test(arguments: [(1e6, 250_000), (4e5, 64_000)])
  func `a player that reports each 280 kB, as ffmpeg's do, shows by its silence that the capacity has fallen`(
    _ low: Double, _ queueBytes: Int
  ) throws {
    let path = Self.path(.bytes(280_000), usual: 3_300_000, low: low, queueBytes: queueBytes)
    let outcome = path.run(seconds: 60)
    Self.tell("\(low / 1e6) Mbit/s, a report each 280 kB", outcome, low: low, wanted: path.wanted)
    // The next report takes 2.2 s at 1 Mbit/s, and 5.6 s at 0.4 Mbit/s.
    #expect(try #require(outcome.time(from: 10) { $0 < low }) <= 1.6)
    #expect(outcome.queue(0.95, 17..<30) <= 0.3)
    #expect(outcome.use(13..<30) >= 0.6)
    #expect(outcome.skipped < 150)
    #expect(outcome.mean(2..<10) > 0.8 * path.wanted)
    #expect(outcome.mean(50..<60) > 0.6 * path.wanted)
  }

  @Test func `a viewer that reports by the clock, or that losses delay, is not taken for silent`() {
    for loss in [0, 0.03] {
      var path = SimulatedPath()
      (path.reports, path.capacity, path.loss) = (.bytes(280_000), { _ in 4_000_000 }, loss)
      // Random loss of 3 % is less than what holds the estimate; a report that is late by it is no queue.
      #expect(path.run(seconds: 60).mean(0..<60) > 0.95 * path.wanted, "loss \(loss)")
      path.reports = .interval(1)
      #expect(path.run(seconds: 60).mean(0..<60) > 0.95 * path.wanted, "loss \(loss), by the clock")
    }
  }

  @Test func `a link without a queue, which loses all beyond its rate, is found by loss`() {
    var path = Self.path(.interval(0.25), usual: 3_300_000, low: 1_000_000, queueBytes: 8000)
    path.keyFrameFactor = 1
    let outcome = path.run(seconds: 60)
    #expect(outcome.mean(13..<30) < 1_150_000)
    #expect(outcome.mean(13..<30) > 600_000)
  }

  @Test func `a still picture's key frames are enough to find that the path takes more again`() throws {
    var path = Self.path(.bytes(5600), low: 1_000_000, queueBytes: 250_000)
    // From 28 s on, a fifth of the bitrate.
    (path.demand, path.keyFrameFactor) = ({ $0 < 28 ? 1 : 0.2 }, 20)
    let outcome = path.run(seconds: 60)
    // The encoder's limit, whether it needs that or not: 1.5 times what a key frame tries.
    #expect(try #require(outcome.time(from: 30) { $0 > 2_000_000 }) <= 25)
  }

  @Test func `a longer route is no queue for ever`() throws {
    var estimate = BandwidthEstimate(wanted: 3_000_000)
    var (bytes, seconds) = (0, 0.0)
    func step(_ roundTrip: Double) {
      seconds += 0.1
      bytes += Int((estimate.target(at: Instant(seconds: seconds)) ?? 3_000_000) / 80)
      estimate.take(
        ReceptionSample(
          delivered: bytes, age: Duration(seconds: roundTrip), waiting: Duration(seconds: roundTrip), outstanding: 5000),
        at: Instant(seconds: seconds))
    }
    for _ in 0..<100 { step(0.05) }
    #expect(estimate.limit == nil)
    // From Wi-Fi to a satellite.
    for _ in 0..<600 { step(0.35) }
    #expect(estimate.queue < Duration.milliseconds(10))
    #expect(estimate.limit ?? .infinity > 2_000_000)
  }

  @Test func `a browser's limit counts where it falls below what is sent`() {
    var estimate = BandwidthEstimate(wanted: 3_000_000)
    // A still picture: the browser has received little, and says so.
    estimate.take(receiverLimit: 600_000, sent: 400_000, at: Instant(seconds: 1))
    estimate.take(receiverLimit: 450_000, sent: 300_000, at: Instant(seconds: 2))
    #expect(estimate.limit == nil)
    estimate.take(receiverLimit: 4_400_000, sent: 3_000_000, at: Instant(seconds: 3))
    #expect(estimate.limit == nil)
    estimate.take(receiverLimit: 850_000, sent: 3_000_000, at: Instant(seconds: 4))
    #expect(estimate.limit == 850_000)
    #expect(!estimate.isSilent(sent: 0, at: Instant(seconds: 4)))
    // It rises again, and is below what was sent before.
    estimate.take(receiverLimit: 900_000, sent: 1_500_000, at: Instant(seconds: 5))
    #expect(estimate.limit == 850_000)
    estimate.take(receiverLimit: 700_000, sent: 900_000, at: Instant(seconds: 6))
    #expect(estimate.limit == 700_000)
    // It says no more.
    estimate.expire(sent: 0, at: Instant(seconds: 20))
    #expect(estimate.limit == 700_000)
    estimate.expire(sent: 0, at: Instant(seconds: 22))
    #expect(estimate.limit == nil && estimate.isSilent(sent: 0, at: Instant(seconds: 22)))
  }

  @Test func `one decrease leaves a quarter, the first one as well`() {
    var estimate = BandwidthEstimate(wanted: 3_000_000)
    estimate.take(receiverLimit: 1, sent: 3_000_000, at: Instant(seconds: 1))
    estimate.take(receiverLimit: 0, sent: 3_000_000, at: Instant(seconds: 2))
    #expect(estimate.limit == 750_000)
  }

  @Test(arguments: frequent) func `a pause of the network in a still picture leaves no low limit`(_ example: Case) {
    var path = SimulatedPath()
    path.reports = example.reports
    path.capacity = { (20..<20.3).contains($0) ? 1000 : 10_000_000 }
    (path.demand, path.keyFrameFactor) = ({ $0 < 25 ? 0.02 : 1 }, 3)
    for seed in 1...10 as ClosedRange<UInt64> {
      let outcome = path.run(seconds: 40, seed: seed)
      print("a pause, \(example.testDescription): \(outcome.target[24_900]) and \(outcome.mean(26..<40))")
      #expect(outcome.target[24_900] >= 0.25 * path.wanted)
      #expect(outcome.mean(30..<40) > 0.9 * path.wanted)
    }
  }

  @Test func `a viewer that reports by the clock is not late when a still picture begins to move`() {
    var estimate = BandwidthEstimate(wanted: 3_000_000)
    var log = SentLog()
    var bytes = 0
    for step in 0..<4000 {
      let time = Double(step) / 100
      // 10 kB a second, and 375 kB from 30.5 s on.
      bytes += time < 30.5 ? 100 : 3750
      log.note(position: Int64(step), packets: 1, bytes: time < 30.5 ? 100 : 3750, at: Instant(seconds: time))
      estimate.takeSilence(after: log, at: Instant(seconds: time))
      guard step % 100 == 99 else { continue }
      estimate.take(
        ReceptionSample(
          delivered: bytes - 100, reached: bytes - 100, age: .milliseconds(50), waiting: .milliseconds(40),
          outstanding: 100), at: Instant(seconds: time))
    }
    #expect(estimate.limit == nil && estimate.decreases == 0)
  }

  @Test func `reports without bytes between them are those of a clock`() {
    var steps = ReportSteps()
    for _ in 0..<10 { steps.note(5000, after: 1) }
    #expect(steps.usual == nil && !steps.countsBytes)
    for index in 1..<10 { steps.note(5000 + index * 280_000, after: 1) }
    #expect(steps.usual == 280_000 && !steps.countsBytes)
    // The same bytes after another time.
    steps.note(5000 + 10 * 280_000, after: 3)
    #expect(steps.countsBytes && steps.longest == 3)
  }

  @Test func `another source counts anew, and the limit stays`() {
    var estimate = BandwidthEstimate(wanted: 3_000_000)
    func take(_ packets: Int, lost: Int, at seconds: Double) {
      estimate.take(
        ReceptionSample(
          delivered: packets * 1000, reached: packets * 1000, age: .milliseconds(50), waiting: .zero, outstanding: 0,
          expected: packets, lost: lost), at: Instant(seconds: seconds))
    }
    for step in 0..<100 { take(step * 10, lost: step * 2, at: Double(step) / 10) }
    let limit = estimate.limit
    #expect(limit != nil && estimate.lossShare > 0.15)
    estimate.forgetCounts()
    #expect(estimate.limit == limit && estimate.lossShare == 0)
    let decreases = estimate.decreases
    for step in 0..<50 { take(step * 10, lost: 0, at: 10 + Double(step) / 10) }
    #expect(estimate.decreases == decreases && estimate.lossShare == 0)
  }

  @Test(arguments: [(0.02, 0.9), (0.1, 0.75)])
  func `a lost report of a player that reports each 280 kB is no queue`(_ loss: Double, _ least: Double) {
    var skipped = 0
    for seed in 1...6 as ClosedRange<UInt64> {
      var path = SimulatedPath()
      (path.reports, path.capacity, path.reportLoss) = (.bytes(280_000), { _ in 10_000_000 }, loss)
      let outcome = path.run(seconds: 120, seed: seed)
      skipped += outcome.skipped
      print("\(loss) of the reports lost: \(outcome.mean(0..<120) / path.wanted), \(outcome.skipped) skipped")
      #expect(outcome.mean(0..<120) > least * path.wanted)
    }
    // Of 21600.
    #expect(skipped < 200)
  }

  @Test(arguments: frequent) func `jitter and lost reports hide no fall, and are none`(_ example: Case) throws {
    var path = Self.path(example.reports, low: 1_000_000, queueBytes: 250_000)
    (path.jitter, path.reportLoss) = (0.02, 0.05)
    let outcome = path.run(seconds: 60)
    Self.tell("jitter of 20 ms, \(example.testDescription)", outcome, low: 1_000_000, wanted: path.wanted)
    #expect(try #require(outcome.time(from: 10) { $0 < 1_000_000 }) <= 1.5)
    #expect(outcome.queue(0.95, 13..<30) <= 0.25)
    #expect(outcome.use(13..<30) >= 0.7)
    #expect(outcome.mean(2..<10) > 0.8 * path.wanted)
    #expect(outcome.mean(45..<60) > 0.8 * path.wanted)
  }

  @Test func `a lost report hides no bytes after which a viewer reports`() {
    var steps = ReportSteps()
    for index in 0..<8 { steps.note(index * 280_000, after: 0.75) }
    for multiple in [10, 13] { steps.note(multiple * 280_000, after: 1.5) }
    #expect(steps.usual == 280_000)
    steps.note(14 * 280_000, after: 0.75)
    #expect(steps.usual == 280_000)
    // Not a multiple.
    steps.note(14 * 280_000 + 400_000, after: 0.75)
    #expect(steps.usual == nil)
  }

  @Test func `a viewer that reports each 280 kB is not silent while less than three times that has left`() {
    var estimate = BandwidthEstimate(wanted: 3_000_000)
    for step in 0..<20 {
      estimate.take(
        ReceptionSample(
          delivered: step * 280_000, reached: step * 280_000, age: .milliseconds(50), waiting: .zero, outstanding: 0),
        at: Instant(seconds: Double(step)))
    }
    estimate.take(receiverLimit: 2_000_000, sent: 2_100_000, at: Instant(seconds: 19))
    estimate.take(receiverLimit: 100_000, sent: 2_100_000, at: Instant(seconds: 19))
    #expect(estimate.limit == 750_000)
    // At 100 kbit/s a report takes 22 s; one may be lost.
    estimate.expire(sent: 560_000, at: Instant(seconds: 64))
    #expect(estimate.limit == 750_000 && !estimate.isForgotten(at: Instant(seconds: 64)))
    #expect(estimate.isForgotten(at: Instant(seconds: 80)))
    estimate.expire(sent: 900_000, at: Instant(seconds: 91))
    #expect(estimate.limit == nil)
  }

  @Test func `a burst of losses in a still picture leaves no low limit`() {
    var estimate = BandwidthEstimate(wanted: 3_000_000)
    var (packets, lost) = (0, 0)
    func run(_ seconds: Double, from begin: Double, losing share: (Int) -> Bool) {
      for step in 0..<Int(seconds * 10) {
        let now = Instant(seconds: begin + Double(step) / 10)
        // 30 packets of 250 bytes a second: 60 kbit/s.
        for _ in 0..<3 {
          packets += 1
          if share(packets) { lost += 1 }
        }
        estimate.take(
          ReceptionSample(
            delivered: (packets - lost) * 250, reached: packets * 250, age: .milliseconds(50), waiting: .zero,
            outstanding: 0, expected: packets, lost: lost), at: now)
      }
    }
    run(10, from: 0) { _ in false }
    // A roaming phone: 5 of 40 packets.
    run(1.4, from: 10) { $0.isMultiple(of: 8) }
    run(5, from: 11.4) { _ in false }
    #expect(estimate.limit ?? .infinity > 2_500_000)
    // Of a loss that lasts, half is taken off what the path was thought to take.
    run(4.2, from: 16.4) { $0.isMultiple(of: 7) }
    #expect((1_000_000..<2_900_000).contains(estimate.limit ?? .infinity), "\(estimate.limit ?? 0)")
  }

  @Test func `a round trip by a wrong clock is no shortest delay`() {
    var estimate = BandwidthEstimate(wanted: 3_000_000)
    for step in 0..<600 {
      let bytes = step * 37_500
      // The wall clock has been set back by 0.3 s once, or the receiver tells a delay that is too long.
      let roundTrip = step == 100 ? Duration.milliseconds(1) : .milliseconds(250)
      estimate.take(
        ReceptionSample(
          delivered: bytes, reached: bytes, age: .milliseconds(260), waiting: .milliseconds(240), outstanding: 90_000,
          roundTrip: roundTrip), at: Instant(seconds: Double(step) / 10))
    }
    #expect(estimate.limit == nil && estimate.queue < .milliseconds(50))
  }

  @Test func `a browser's first limit shows no fall`() {
    var estimate = BandwidthEstimate(wanted: 3_000_000)
    // A key frame was sent when it joined, and it counts no headers.
    estimate.take(receiverLimit: 300_000, sent: 900_000, at: Instant(seconds: 1))
    #expect(estimate.limit == nil)
    // Less by the headers alone.
    estimate.take(receiverLimit: 290_000, sent: 310_000, at: Instant(seconds: 2))
    #expect(estimate.limit == nil)
    estimate.take(receiverLimit: 280_000, sent: 400_000, at: Instant(seconds: 3))
    #expect(estimate.limit == 750_000)
  }

  @Test func `a viewer that reported is silent after some of its intervals`() {
    var estimate = BandwidthEstimate(wanted: 3_000_000)
    let sample = ReceptionSample(delivered: 0, age: .milliseconds(50), waiting: .zero, outstanding: 0)
    #expect(!estimate.isSilent(sent: 0, at: Instant(seconds: 100)))
    for second in 0..<10 { estimate.take(sample, at: Instant(seconds: Double(second))) }
    #expect(!estimate.isSilent(sent: 0, at: Instant(seconds: 23)))
    #expect(estimate.isSilent(sent: 0, at: Instant(seconds: 25)))
    for step in 0..<5 { estimate.take(sample, at: Instant(seconds: 30 + Double(step) * 30)) }
    #expect(!estimate.isSilent(sent: 0, at: Instant(seconds: 200)))
    #expect(estimate.isSilent(sent: 0, at: Instant(seconds: 270)))
  }
}
