package import Platform
package import RTP

/// The bandwidth of the path to one viewer: what has left, what has arrived, and what may leave now. Used by the send
/// thread alone.
///
/// A class, because its rings are kilobytes: a value would be copied each time that somebody looks at it. What is asked for each
/// frame is stored beside them. No method is called while another one runs, so that nothing checks for that with each packet.
package final class ViewerBandwidth {
  @exclusivity(unchecked) package private(set) var estimate: BandwidthEstimate
  /// The breaker of a stream over UDP; nil where the transport has a rule of its own: TCP, and a browser's consent.
  @exclusivity(unchecked) package private(set) var breaker: CircuitBreaker?
  /// `true` if there is a breaker.
  let hasBreaker: Bool
  /// `true` if the breaker has stopped the stream: nothing may leave.
  @exclusivity(unchecked) package private(set) var isStopped = false
  /// `true` once the viewer, or its connection, has told anything. Before that, the path is open, and nobody is late.
  @exclusivity(unchecked) private(set) var isHeard = false
  @exclusivity(unchecked) private var log = SentLog()
  @exclusivity(unchecked) private var budget = SendingBudget()
  /// The bytes of packets that were sent again.
  @exclusivity(unchecked) private var repeated = 0
  /// The bytes that had left when the viewer was last heard.
  @exclusivity(unchecked) private var heard = 0
  /// The sequence number of the last packet that has left, and its place in the log.
  @exclusivity(unchecked) private var last: (number: UInt16, position: Int64)?
  /// The last report; nil before the first.
  @exclusivity(unchecked) private var reported: Reported?
  /// `true` if a browser's limit (REMB) counts. Elsewhere nobody offers it, and a datagram with another's address may bring it.
  private let takesReceiverLimit: Bool
  /// `true` if the transport itself tells what has arrived. It knows sooner than the viewer's reports.
  @exclusivity(unchecked) private var isTold = false
  /// `true` if pictures are left out up to a key frame, because the path cannot take them.
  @exclusivity(unchecked) package private(set) var isPaused = false
  /// The number of times that pictures were left out.
  @exclusivity(unchecked) package private(set) var pauses = 0

  /// The counts of the last report, and the losses since the first.
  private struct Reported {
    var reporter: UInt32
    /// The highest sequence number. The cycles are counted here: some receivers do not, and others begin anew.
    var highest: Int
    /// The difference between the packets that have left and those that are reported, without losses.
    var missing: Int
    var expected: Int
    var lost: Int
    /// The packets that were sent again by then.
    var repeated: UInt64
  }

  /// The bytes of the headers of UDP and IPv4, which count on the path like a packet's own.
  static let headerBytes = 28

  /// Creates the bandwidth of a path that is open.
  ///
  /// - Parameter wanted: the bits a second of the stream.
  package init(wanted: Double, breaker: CircuitBreaker? = nil, takesReceiverLimit: Bool = false) {
    estimate = BandwidthEstimate(wanted: wanted)
    self.breaker = breaker
    hasBreaker = breaker != nil
    self.takesReceiverLimit = takesReceiverLimit
  }

  /// The bits a second that may be sent now; nil where the path is open, nothing is known of it any more, or nothing is
  /// sent.
  package func target(at now: Instant) -> Double? {
    guard isLimited, !isStopped, !isSilent(at: now) else { return nil }
    return estimate.target(at: now)
  }

  /// Returns `true` if the viewer has told what arrives, and no longer does: nothing is known of its path.
  package func isSilent(at now: Instant) -> Bool {
    estimate.isForgotten(at: now) || estimate.isSilent(sent: log.bytes - heard, at: now)
  }

  /// `true` if the viewer, or its connection, has told what arrives.
  var isKnown: Bool { isTold || reported != nil }

  /// `true` if the path has a limit.
  package var isLimited: Bool { estimate.limit != nil }

  /// Sets the bits a second of the stream.
  func setWanted(_ bits: Double) { estimate.wanted = bits }

  /// Raises the limit of the path to `bits` a second, until the path shows that it takes less.
  func tryRate(_ bits: Double, at now: Instant) { estimate.raise(to: bits, at: now) }

  /// Sets the limit of a path that has none to `bits` a second, until the path has shown that it takes more.
  func bound(to bits: Double, at now: Instant) { estimate.bound(to: bits, at: now) }

  /// The packets and bytes that have left so far.
  private var sent: CircuitBreaker.Sent { .init(packets: log.packets, bytes: log.bytes, repeated: repeated) }

  // MARK: Sending

  /// Adds what may leave by now, and decides whether the path can take pictures.
  ///
  /// - Parameter isGroup: `true` if several receivers share the address: their reports are not taken, and none is late.
  package func refill(isGroup: Bool, at now: Instant) {
    guard isHeard else { return }
    if hasBreaker {
      let sent = sent
      isStopped = breaker?.isStopped(sent: sent, isGroup: isGroup, at: now) == true
    }
    estimate.expire(sent: log.bytes - heard, at: now)
    if !isTold, !isStopped, !isGroup { estimate.takeSilence(after: log, at: now) }
    guard let limit = estimate.limit else {
      budget = SendingBudget()
      isPaused = isStopped
      return
    }
    budget.refill(limit: limit, at: now)
    let mustPause = estimate.isPaused(at: now) || budget.isOverdrawn
    if mustPause, !isPaused { pauses += 1 }
    isPaused = mustPause || isStopped
  }

  /// Returns the end of the packets from `first` on that may leave now.
  func end(from first: Int, to limit: Int, of frame: OutgoingFrame) -> Int {
    guard isLimited else { return limit }
    return budget.end(from: first, to: limit) { frame.batch[$0].count + Self.headerBytes }
  }

  /// Notes packets that have left.
  ///
  /// - Parameters:
  ///   - number: the sequence number of the last one.
  ///   - bytes: their bytes, without the headers of UDP and IP.
  package func noteSent(number: UInt16, packets: Int, bytes: Int, at now: Instant) {
    let position = last.map { $0.position + Int64(number &- $0.number) } ?? Int64(number)
    last = (number, position)
    let bytes = bytes + packets * Self.headerBytes
    log.note(position: position, packets: packets, bytes: bytes, at: now)
    if isLimited { budget.noteSent(bytes: bytes) }
  }

  /// Notes a packet that was sent again, and is in no log: the viewer's reports do not tell when that has arrived.
  func noteRepeated(bytes: Int) {
    repeated += bytes + Self.headerBytes
    if isLimited { budget.noteSent(bytes: bytes + Self.headerBytes) }
  }

  /// Forgets what has left: another source begins, and the path is the same.
  func restart() {
    log.reset()
    (last, reported, repeated, heard) = (nil, nil, 0, 0)
    estimate.forgetCounts()
    breaker?.forget()
  }

  // MARK: Arrival

  /// Takes a receiver report.
  ///
  /// - Parameters:
  ///   - reporter: the receiver that reports.
  ///   - repeated: the packets that were sent again unchanged so far, which the viewer counts as received.
  ///   - offset: the amount by which the stream's sequence numbers exceed the viewer's.
  package func take(
    _ report: ReportedReception, of reporter: UInt32, repeated: UInt64, offset: UInt16, at now: Instant
  ) {
    guard !isTold, let last else { return }
    let number = UInt16(truncatingIfNeeded: report.highestSequenceNumber)
    let position = last.position - Int64(Int16(bitPattern: last.number &- (number &+ offset)))
    guard let place = log.place(of: position, at: now) else { return }
    let before = reported
    let advance = before.map { Int(Int16(bitPattern: number &- UInt16(truncatingIfNeeded: $0.highest))) } ?? 0
    let highest = (before?.highest ?? Int(number)) + advance
    // The viewer counts the numbers that were left out as lost, too.
    let missing = place.packets - (highest - Int(report.cumulativeLost)) + Int(clamping: repeated)
    let expected = place.packets - (before?.expected ?? place.packets)
    var base = before?.missing ?? missing
    if let before {
      let excess = missing - base - before.lost - max(0, expected)
      if before.reporter != reporter || excess > Int(clamping: repeated - min(repeated, before.repeated)) {
        // Another receiver, or one that has begun anew, does not count on from these losses.
        base = missing - before.lost
      } else if excess > 0 {
        // What was sent again has not arrived either, and no more than all is lost.
        base += excess
      }
    }
    // Packets that were sent again count before the viewer has got them.
    base = min(base, missing)
    let lost = max(0, missing - base)
    reported = Reported(
      reporter: reporter, highest: highest, missing: base, expected: place.packets, lost: lost, repeated: repeated)
    (heard, isHeard) = (log.bytes, true)
    let sample = ReceptionSample(
      delivered: place.arrivedBytes(lost: lost), reached: place.bytes, age: place.age, waiting: place.waiting,
      outstanding: log.bytes - place.bytes, roundTrip: report.roundTrip, expected: place.packets, lost: lost,
      jitter: report.jitter)
    estimate.take(sample, at: now)
    guard hasBreaker else { return }
    let sent = sent
    breaker?.take(sample, sent: sent, at: now)
    isStopped = breaker?.stopped != nil
    if let breaker { estimate.take(allowance: breaker.allowance, at: now) }
  }

  /// Takes the limit that a browser has estimated.
  func take(receiverLimit bits: UInt64, at now: Instant) {
    guard takesReceiverLimit else { return }
    (heard, isHeard) = (log.bytes, true)
    // It counts no headers of UDP and IP.
    let plain = log.bytes - log.packets * Self.headerBytes
    let share = plain > 0 ? Double(log.bytes) / Double(plain) : 1
    estimate.take(receiverLimit: Double(bits) * share, sent: log.rate(over: 1, until: now), at: now)
  }

  /// Takes the state of the viewer's connection.
  func take(_ sample: ReceptionSample, at now: Instant) {
    isTold = true
    (heard, isHeard) = (log.bytes, true)
    estimate.take(sample, at: now)
  }
}
