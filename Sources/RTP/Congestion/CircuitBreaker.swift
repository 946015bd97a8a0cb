import Glibc
package import Platform

/// The circuit breaker of one RTP stream to one receiver (RFC 8083): it stops a stream that a path cannot take, whatever
/// else has failed to slow the stream down.
///
/// A stream that was stopped begins again after a pause, which doubles each time: the RFC (section 4.5) allows that where
/// the congestion may be gone by then. The value has no clock, and allocates nothing.
package struct CircuitBreaker: Sendable {
  /// The causes of a stop.
  package enum Cause: String, CaseIterable, Sendable {
    /// The receiver no longer reports: section 4.1.
    case silence
    /// The receiver reports, and nothing arrives: section 4.2.
    case mediaTimeout = "media_timeout"
    /// The stream takes more than ten times what TCP would, and so it does after it was to become slower: section 4.3.
    case congestion
  }

  /// The packets and bytes that have left so far.
  package struct Sent: Hashable, Sendable {
    /// The packets.
    package var packets: Int
    /// Their bytes, with the headers of IP and UDP.
    package var bytes: Int
    /// The bytes of packets that were sent again, beside these.
    package var repeated: Int
    /// Creates the counts.
    package init(packets: Int, bytes: Int, repeated: Int = 0) {
      (self.packets, self.bytes, self.repeated) = (packets, bytes, repeated)
    }
  }

  /// A report, and what was sent by then.
  private struct Entry {
    var time = Instant.zero
    var expected = 0
    var lost = 0
    var sent = Sent(packets: 0, bytes: 0)
  }

  /// The number of stops so far, by cause.
  package struct Counts: Hashable, Sendable {
    /// The stops by ``Cause/silence``.
    package var silence = 0
    /// The stops by ``Cause/mediaTimeout``.
    package var mediaTimeout = 0
    /// The stops by ``Cause/congestion``.
    package var congestion = 0

    /// Creates counts of 0.
    package init() {}

    /// The number of stops by a cause.
    package subscript(_ cause: Cause) -> Int {
      switch cause {
      case .silence: silence
      case .mediaTimeout: mediaTimeout
      case .congestion: congestion
      }
    }

    /// Returns the sums of both.
    package static func + (left: Counts, right: Counts) -> Counts {
      var sum = left
      sum.silence &+= right.silence
      sum.mediaTimeout &+= right.mediaTimeout
      sum.congestion &+= right.congestion
      return sum
    }
  }

  /// The bits a second that the stream may have after it took more than ten times what TCP would, as long as packets are
  /// lost; nil where it did not. Only if it goes on to take as much for the time that showed it, though it should have
  /// become slower, it is stopped: a viewer whose network loses some packets by chance gets a softer picture, not none.
  package private(set) var allowance: Double?
  /// `true` if the stream was last found to take too much, and should have become slower.
  private var isWarned = false
  /// The number of stops so far.
  package private(set) var counts = Counts()
  /// The cause of the last stop.
  package private(set) var lastCause: Cause?

  /// The time between two frames.
  private let frameInterval: Double
  /// The time between two key frames: a group of pictures, of which none can be decoded without those before.
  private let groupInterval: Double
  /// `true` if the receiver, once it has reported, must go on to.
  private let expectsReports: Bool
  /// The reports so far, since the stream began again.
  private var reports = 0
  /// The time at which the stream may begin again; nil while it is not stopped.
  private var stoppedUntil: Instant?
  /// The time at which the stream began, or began again.
  private var began: Instant?
  /// The time since which frames come without a gap, and the last of them.
  private var flow: (since: Instant, last: Instant)?
  private var pause = CircuitBreaker.firstPause
  /// The last report.
  private var last: Entry?
  /// The time between two reports: the RFC's Tdr, measured.
  private var interval: Double?
  /// The most bytes that have left between two reports; they are forgotten slowly.
  private var largestStep = 0
  /// The bytes that had left at the last report, or when the silence began to count.
  private var sentBefore = 0
  /// The reports in a row that tell of no further packet, and the time of the first of them.
  private var idle: (reports: Int, since: Instant)?
  private var roundTrip: Double?
  /// Reports of the last while, in a ring.
  private var ring: InlineArray<16, Entry> = .init(repeating: Entry())
  private var count = 0

  /// The least time without a report that is a timeout: section 4.1.
  static let leastSilence = 15.0
  /// The reports that a timeout takes, in intervals: section 4.1.
  static let silentIntervals = 3.0
  /// The bytes that leave without a report in a timeout, in steps from one report to the next, and at least. Some players
  /// report each so many bytes: ffmpeg's each 280 kB, which are more than 15 s of a still picture.
  static let silentBytes = (steps: 3, least: 1_000_000)
  /// The share of the most bytes that a report leaves.
  static let remembered = 0.95
  /// The reports after which further ones are awaited: one alone may be anybody's.
  static let leastReports = 3
  /// The reports that tell of no packet, as a multiple of the longest of three intervals: section 4.2.
  static let idleIntervals = 5.0
  /// The least time during which nothing arrives. Some players report with each packet that they get, and by the RFC's
  /// rule alone, a wireless network that pauses for 0.2 s would stop their stream.
  static let leastIdle = 2.0
  /// The time without frames after which a receiver that reports of packets alone may be silent, as when a camera is lost.
  static let frameGap = (seconds: 2.0, frames: 4.0)
  /// The multiple of TCP's throughput: section 4.3, an order of magnitude.
  static let excess = 10.0
  /// The share of that which a stream may have before it is stopped.
  static let allowedShare = 0.6
  /// The first pause, and the longest. No pause is shorter than the time that showed the congestion: section 4.5.
  static let firstPause = 10.0
  static let longestPause = 320.0
  /// The time after which a stream that was not stopped again is as good as new.
  static let recovery = 120.0

  /// Creates the breaker of a stream that begins.
  ///
  /// - Parameters:
  ///   - frameInterval: the time between two frames.
  ///   - groupInterval: the time between two key frames.
  ///   - expectsReports: `true` if the receiver, once it has reported, must go on to. At an address without a session,
  ///     another receiver may take its place, which does not report.
  package init(frameInterval: Duration, groupInterval: Duration, expectsReports: Bool) {
    self.frameInterval = frameInterval.seconds
    self.groupInterval = max(frameInterval, groupInterval).seconds
    self.expectsReports = expectsReports
  }

  /// The cause for which the stream is stopped; nil where it is not.
  package var stopped: Cause? { stoppedUntil == nil ? nil : lastCause }

  /// Returns the bits a second that TCP would achieve, by the simplified equation of section 4.3 (from RFC 5348 section
  /// 3.1, with one acknowledgement a packet); infinity where nothing is lost.
  ///
  /// - Parameters:
  ///   - packetBytes: the average size of a packet.
  ///   - loss: the share of packets lost, 0…1.
  package static func throughput(packetBytes: Double, roundTrip: Double, loss: Double) -> Double {
    guard loss > 0, roundTrip > 0 else { return .infinity }
    return packetBytes * 8 / (roundTrip * (2 * loss / 3).squareRoot())
  }

  // MARK: Events

  /// Returns `true` if the stream is stopped at `now`. Called before each frame.
  ///
  /// - Parameters:
  ///   - sent: what has left by now.
  ///   - isGroup: `true` if several receivers share the address: their reports are not taken, and so none is awaited.
  package mutating func isStopped(sent: Sent, isGroup: Bool = false, at now: Instant) -> Bool {
    if let stoppedUntil {
      guard now >= stoppedUntil else { return true }
      restart(at: now)
    }
    if began == nil { began = now }
    let gap = max(Self.frameGap.seconds, Self.frameGap.frames * frameInterval)
    let former = flow.flatMap { isGroup || (now - $0.last).seconds > gap ? nil : $0.since }
    if former == nil { sentBefore = sent.bytes }
    let since = former ?? now
    flow = (since, now)
    let silence = (now - max(last?.time ?? since, since)).seconds
    if expectsReports, reports >= Self.leastReports,
      silence > max(Self.leastSilence, Self.silentIntervals * (interval ?? 0)),
      sent.bytes - sentBefore >= max(Self.silentBytes.least, Self.silentBytes.steps * largestStep)
    {
      stop(by: .silence, after: silence, at: now)
    }
    return stoppedUntil != nil
  }

  /// Takes a receiver's report.
  ///
  /// - Parameter sent: what has left by now.
  package mutating func take(_ sample: ReceptionSample, sent: Sent, at now: Instant) {
    reports += 1
    guard stoppedUntil == nil else { return }
    let entry = Entry(time: now, expected: sample.expected, lost: sample.lost, sent: sent)
    defer { (last, sentBefore) = (entry, sent.bytes) }
    // The round trip is by the wall clock, which may be set meanwhile, and the receiver's word; the age is neither.
    if let time = sample.roundTrip.map({ min($0, sample.age ?? $0) })?.seconds {
      roundTrip = roundTrip.map { $0 + (time - $0) / 8 } ?? time
    }
    guard let last else { return note(entry, window: 0) }
    largestStep = max(sent.bytes - last.sent.bytes, Int(Double(largestStep) * Self.remembered))
    let elapsed = (now - last.time).seconds
    let interval = interval.map { $0 + (elapsed - $0) / 8 } ?? elapsed
    self.interval = interval
    if sample.expected > last.expected || sent.packets == sample.expected {
      idle = nil
    } else if sent.packets > last.sent.packets {
      // Only where packets were sent: a stream that rests arrives nowhere, and its last packet may be lost.
      let before = idle ?? (0, last.time)
      idle = (before.reports + 1, before.since)
      let longest = max(frameInterval, roundTrip ?? 0, interval)
      let most = (Self.idleIntervals * longest / max(interval, 0.001)).rounded(.up)
      if Double(before.reports + 1) >= most, (now - before.since).seconds >= Self.leastIdle {
        return stop(by: .mediaTimeout, after: (now - before.since).seconds, at: now)
      }
    }
    let window = congestionWindow(interval: interval)
    judgeCongestion(entry, window: window)
    note(entry, window: window)
  }

  /// Returns the time over which loss and rate are measured: CB_INTERVAL of section 4.3, in seconds instead of reports.
  private func congestionWindow(interval: Double) -> Double {
    let media = max(10 * groupInterval, 10 * (roundTrip ?? 0), 3 * interval)
    return (min(media, max(Self.leastSilence, Self.silentIntervals * interval)) / interval).rounded(.up) * interval
  }

  private mutating func judgeCongestion(_ entry: Entry, window: Double) {
    guard let roundTrip, count > 0 else { return }
    // The newest entry that is at least as old as the window.
    var index = count - 1
    while index >= 0, index > count - 1 - ring.count, (entry.time - ring[index % ring.count].time).seconds < window {
      index -= 1
    }
    guard index >= 0, index > count - 1 - ring.count else { return }
    let begin = ring[index % ring.count]
    let (expected, packets) = (entry.expected - begin.expected, entry.sent.packets - begin.sent.packets)
    guard expected > 0, packets > 0 else { return }
    let loss = min(1, max(0, Double(entry.lost - begin.lost) / Double(expected)))
    let bytes = Double(entry.sent.bytes - begin.sent.bytes)
    let repeated = Double(entry.sent.repeated - begin.sent.repeated)
    let rate = (bytes + repeated) * 8 / (entry.time - begin.time).seconds
    let most = Self.excess * Self.throughput(packetBytes: bytes / Double(packets), roundTrip: roundTrip, loss: loss)
    guard rate > most else {
      isWarned = false
      if allowance != nil { allowance = most.isFinite ? most * Self.allowedShare : nil }
      return
    }
    if isWarned { stop(by: .congestion, after: (entry.time - begin.time).seconds, at: entry.time) }
    // Measured anew from here on, with the lesser rate.
    (isWarned, allowance, count) = (true, most * Self.allowedShare, 0)
  }

  private mutating func note(_ entry: Entry, window: Double) {
    // The ring reaches back for the whole window, and a little more.
    let newest = ring[(count + ring.count - 1) % ring.count].time
    if count > 0, (entry.time - newest).seconds < window / Double(ring.count - 3) { return }
    ring[count % ring.count] = entry
    count += 1
  }

  /// Stops the stream for a cause that took so many seconds to show.
  private mutating func stop(by cause: Cause, after seconds: Double, at now: Instant) {
    guard stoppedUntil == nil else { return }
    switch cause {
    case .silence: counts.silence &+= 1
    case .mediaTimeout: counts.mediaTimeout &+= 1
    case .congestion: counts.congestion &+= 1
    }
    lastCause = cause
    if let began, (now - began).seconds > Self.recovery { pause = Self.firstPause }
    pause = min(max(pause, seconds), Self.longestPause)
    stoppedUntil = now + Duration(seconds: pause)
    pause = min(pause * 2, Self.longestPause)
  }

  private mutating func restart(at now: Instant) {
    // The receiver may be another one by now, or none: it must report anew before its silence counts.
    (stoppedUntil, began, reports) = (nil, now, 0)
    forget()
  }

  /// Forgets what was sent and reported: another source begins, and counts anew.
  package mutating func forget() {
    (last, interval, roundTrip, idle, count, flow, sentBefore) = (nil, nil, nil, nil, 0, nil, 0)
  }
}
