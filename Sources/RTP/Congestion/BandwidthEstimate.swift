import Glibc
package import Platform

/// The estimate of the bits a second that the path to one viewer takes: additive increase, multiplicative decrease, by
/// queueing delay and loss.
///
/// A path is open until it shows a limit: the queue on it grows, or much is lost, or a browser says so. The limit is then
/// a little less than the rate at which packets arrived, and grows again while the queue stays short. The value has no
/// clock, and allocates nothing.
package struct BandwidthEstimate: Sendable {
  /// The bits a second that the stream has at most. A path that takes clearly more is open.
  package var wanted: Double
  /// The bits a second that the path takes over time; nil while it is open.
  package private(set) var limit: Double?
  /// The queueing delay at the last sample.
  package private(set) var queue = Duration.zero
  /// The share of packets lost, 0…1, of the last ``lossWindow``.
  package private(set) var lossShare = 0.0
  /// The number of decreases so far.
  package private(set) var decreases = 0

  private var base = ShortestDelay()
  private var deliveries = DeliveryRates()
  private var last: (sample: ReceptionSample, time: Instant)?
  /// The time of the last sample, or of a browser's limit.
  private var lastHeard: Instant?
  /// The usual time between samples in seconds; nil before the second one.
  private var interval: Double?
  private var lossBegin: (sample: ReceptionSample, time: Instant)?
  /// `true` if the sample before showed a queue.
  private var wasCongested = false
  private var lastDecrease: Instant?
  /// The rate at which the path was last full; nil once clearly more has arrived.
  private var full: Double?
  /// `true` if clearly more has arrived than when the path was last full: it takes more than it did.
  private var isWider = false
  private var vain = 0
  private var lastGrowth: Instant?
  private var lastReceiverLimit: Double?
  /// The time at which ``queue`` was known.
  private var queueKnown: Instant?
  /// The bytes that were on their way then.
  private var outstanding = 0
  /// `true` if a pause has ended since the last sample, and silence begins no other: packets may be lost.
  private var hasWaited = false
  /// `true` while nothing is sent, until the queue is gone.
  private var isPausing = false
  private var wasPausing = false
  private var steps = ReportSteps()
  /// The most that the limit may be.
  private var allowance: Double?
  /// The limit before a silence lowered it, until the next sample; nil where none did.
  private var beforeSilence: (limit: Double?, full: Double?)?
  /// The time at which a report was last known to be lost.
  private var lastLostReport: Instant?

  /// Creates the estimate of an open path.
  package init(wanted: Double) { self.wanted = wanted }

  /// Returns the bits a second to send at `now`: less than ``limit`` while a queue drains. Nil while the path is open.
  package func target(at now: Instant) -> Double? {
    guard let limit else { return nil }
    let excess = excess(at: now) / Self.drainTime
    return limit * min(1, max(Self.leastDrainShare, 1 - excess))
  }

  /// The queueing delay beyond ``heldQueue`` that is left at `now`, if the path takes the limit and got the target since
  /// it was known: a viewer that reports rarely would else get too little for long.
  private func excess(at now: Instant) -> Double {
    var left = max(0, queue.seconds - Self.heldQueue)
    guard let queueKnown, left > 0 else { return left }
    var seconds = max(0, (now - queueKnown).seconds - Self.usualInterval)
    let drain = 1 - Self.leastDrainShare
    let longest = drain * Self.drainTime
    if left > longest {
      // As fast as it may be, and from there on ever slower.
      let fast = min(seconds, (left - longest) / drain)
      left -= fast * drain
      seconds -= fast
    }
    return left * exp(-seconds / Self.drainTime)
  }

  /// Returns `true` if so much waits on the path that nothing more is to be sent at `now`. The queue drains meanwhile,
  /// whether the viewer reports that or not.
  package mutating func isPaused(at now: Instant) -> Bool {
    guard let queueKnown, let limit else { return false }
    // The packets on their way wait long behind those before them, and no longer once those are gone.
    let left = min(queue.seconds, Double(outstanding) * 8 / limit) - (now - queueKnown).seconds
    isPausing = left > (isPausing ? Self.heldQueue : Self.pausedQueue)
    return isPausing
  }

  /// Returns `true` if the viewer no longer tells what it receives, although it did.
  ///
  /// - Parameter sent: the bytes that have left since it was last heard. Some viewers report each so many.
  package func isSilent(sent: Int, at now: Instant) -> Bool {
    guard let lastHeard, Double(sent) >= steps.largest * Self.silence.steps else { return false }
    return (now - lastHeard).seconds > max(Self.silence.seconds, Self.silence.intervals * (interval ?? 0))
  }

  /// Returns `true` if nothing was heard of the viewer for so long that no other viewer is to wait for it.
  package func isForgotten(at now: Instant) -> Bool {
    lastHeard.map { (now - $0).seconds > Self.longestSilence } ?? false
  }

  /// Takes the path for open where the viewer is silent: nothing is known of it any more. See ``isSilent(sent:at:)``.
  package mutating func expire(sent: Int, at now: Instant) {
    guard limit != nil, isSilent(sent: sent, at: now) else { return }
    (limit, full, isWider) = (nil, nil, false)
    (queue, queueKnown, outstanding, isPausing) = (.zero, nil, 0, false)
    if let allowance, allowance < wanted { limit = allowance }
    beforeSilence = nil
  }

  /// Forgets all counts of packets and bytes: another source begins and counts anew, and the path is the same.
  package mutating func forgetCounts() {
    (deliveries, last, lossBegin, lossShare, steps) = (DeliveryRates(), nil, nil, 0, ReportSteps())
    beforeSilence = nil
  }

  // MARK: Samples

  /// Takes what the viewer has received by now.
  package mutating func take(_ sample: ReceptionSample, at now: Instant) {
    defer { (last, lastHeard) = ((sample, now), now) }
    // Not the round trip: it is by the wall clock and the viewer's word, and one that is too short would look like a queue.
    if let age = sample.age { base.note(age.seconds, at: now) }
    let elapsed = last.map { (now - $0.time).seconds } ?? 0
    if last != nil { interval = interval.map { $0 + (elapsed - $0) / 8 } ?? elapsed }
    deliveries.note(sample.delivered, sent: max(sample.reached, sample.delivered) + sample.outstanding, at: now)
    let noise = min(sample.jitter.seconds, Self.jitterAllowance)
    let waiting = max(0, sample.waiting.seconds - (base.shortest ?? sample.waiting.seconds) - noise)
    queue = Duration(seconds: waiting)
    (queueKnown, outstanding, hasWaited) = (now, sample.outstanding, false)
    endSilence(sample, waiting, at: now)
    steps.note(sample.delivered, after: elapsed)
    judgeQueue(sample, waiting, elapsed, at: now)
    judgeLoss(sample, at: now)
    grow(at: now)
  }

  /// Takes the silence of a viewer that reports each so many bytes, as ffmpeg's players do (280 kB). On a path that takes a third,
  /// these bytes take three times as long. So a report shows by its lateness that a queue holds its bytes up, before it comes. Or the
  /// report is lost: then the limit is back with the next report, and for a while the bytes of two reports must be late.
  package mutating func takeSilence(after log: borrowing SentLog, at now: Instant) {
    guard let last, let interval, interval > Self.usualInterval, let step = steps.usual,
      // A viewer that reports by the clock is not late before its time.
      steps.countsBytes || (now - last.time).seconds > Self.lateReport * steps.longest,
      let late = lateness(behind: Self.lateSteps * Double(step), of: log, at: now),
      !isSilent(sent: log.bytes - last.sample.reached - last.sample.outstanding, at: now)
    else { return }
    let overdue = lateness(behind: Self.overdueSteps * Double(step), of: log, at: now)
    guard overdue != nil || !losesReports(at: now) else { return }
    if wasPausing, !isPausing { hasWaited = true }
    wasPausing = isPausing
    if !isPausing, !hasWaited {
      (queue, queueKnown) = (Duration(seconds: overdue ?? late), now)
      outstanding = log.bytes - last.sample.reached
    }
    let rate = Double(step) * 8 / (now - last.time).seconds
    // Late by one report: the queue itself lowers what is sent, see `target(at:)`.
    let left = rate * (overdue == nil ? Self.decrease : Self.silentDecrease)
    if left < limit ?? .infinity {
      if beforeSilence == nil { beforeSilence = (limit, full) }
      decrease(to: left, full: rate, at: now)
    }
  }

  /// Returns the seconds for which a report of `bytes` after the last one is late, where they show a queue; nil otherwise.
  private func lateness(behind bytes: Double, of log: borrowing SentLog, at now: Instant) -> Double? {
    guard let last, let shortest = base.shortest else { return nil }
    let end = last.sample.reached + Int(bytes)
    guard let age = log.age(ofByte: end, at: now) else { return nil }
    let waiting = age.seconds - shortest
    // A pause of a wireless network delays a still picture's packets as well, but they are few.
    let isMuch = Double(log.bytes - end) * 8 > (limit ?? wanted) * Self.congestedQueue
    return waiting > Self.congestedQueue + Self.jitterAllowance && isMuch ? waiting : nil
  }

  /// Returns `true` if a report was lost within ``lostReportMemory``.
  private func losesReports(at now: Instant) -> Bool {
    lastLostReport.map { (now - $0).seconds < Self.lostReportMemory } ?? false
  }

  /// Notes where a report shows that the ones before were lost: more bytes have arrived than a report takes. If nothing waits,
  /// takes back what their silence has lowered.
  private mutating func endSilence(_ sample: ReceptionSample, _ waiting: Double, at now: Instant) {
    let before = beforeSilence
    beforeSilence = nil
    guard let last, let step = steps.usual,
      Double(sample.delivered - last.sample.delivered) > Double(step) * Self.lostReports
    else { return }
    lastLostReport = now
    if let before, waiting < Self.heldQueue { (limit, full) = before }
  }

  /// Takes the limit that a browser has estimated (REMB): `bits` a second for all that it receives, of which `sent` were
  /// sent last. It counts where it falls below what is sent: then the browser has seen a queue. Otherwise it follows what
  /// is sent, and says nothing about the path.
  package mutating func take(receiverLimit bits: Double, sent: Double, at now: Instant) {
    lastHeard = now
    // The first one follows from what came while the viewer joined.
    let isFalling = lastReceiverLimit.map { bits < $0 } ?? false
    lastReceiverLimit = bits
    if isFalling, bits < sent * Self.receiverShare, bits < limit ?? .infinity {
      decrease(to: bits, full: bits / Self.decrease, at: now)
    }
  }

  /// Takes the most bits a second that the stream may have, because TCP would have much less; nil where that ends.
  package mutating func take(allowance: Double?, at now: Instant) {
    self.allowance = allowance
    guard let allowance, allowance < limit ?? wanted else { return }
    decrease(to: allowance, full: allowance, at: now)
  }

  /// Raises the limit to `bits` a second, to test whether the path takes them: the packets sent so far cannot show that.
  package mutating func raise(to bits: Double, at now: Instant) {
    guard let present = limit, present < bits else { return }
    (limit, full, isWider, lastGrowth) = (min(bits, allowance ?? .infinity), nil, false, now)
  }

  /// Sets the limit of a path that has none to `bits` a second, because the sender is about to send more than the path has proved to
  /// take. The limit then grows as after a decrease, until the path has no limit again. A path that has a limit keeps it.
  package mutating func bound(to bits: Double, at now: Instant) {
    guard limit == nil else { return }
    (limit, full, isWider, lastGrowth) = (min(bits, allowance ?? .infinity), nil, false, now)
    // A path whose last decrease is long ago would be open again with the next sample.
    lastDecrease = now
  }

  private mutating func judgeQueue(_ sample: ReceptionSample, _ waiting: Double, _ elapsed: Double, at now: Instant) {
    let isCongested = waiting > Self.congestedQueue
    defer { wasCongested = isCongested }
    if waiting < Self.heldQueue { vain = 0 }
    guard isCongested, wasCongested || elapsed > Self.sparseSamples && hasGrown(sample) else { return }
    var window = Self.rateWindow
    // The oldest packet on its way was sent at the former rate: no judgement of the present one.
    if let lastDecrease, now - sample.waiting < lastDecrease + Duration(seconds: Self.reaction) {
      // But while a queue lasts, what arrives is what the path takes.
      window = Self.steadyWindow
      guard (now - lastDecrease).seconds > window else { return }
    }
    guard var rate = deliveries.rate(over: window, until: now) else { return }
    // A key frame after little shows the path's rate only while it has a queue.
    rate = max(rate, deliveries.rate(over: Self.shortWindow, until: now) ?? 0)
    if window == Self.steadyWindow, rate > (limit ?? .infinity) * Self.steadyShare { return }
    var left = rate * Self.decrease
    // A path that takes all that is sent has shown no rate: it paused, or what waits is leaving.
    if let sent = deliveries.sentRate(over: window, until: now), sent <= rate { left = max(left, sent) }
    vain += 1
    if vain > Self.vainDecreases {
      base.reset(to: sample.waiting.seconds, at: now)
      vain = 0
    }
    decrease(to: left, full: rate, at: now)
  }

  /// Returns `true` if clearly more waits than at the sample before. A pause of a wireless network delays a still
  /// picture's packets, and they are few.
  private func hasGrown(_ sample: ReceptionSample) -> Bool {
    guard let last else { return false }
    return Double(sample.outstanding - last.sample.outstanding) * 8 > (limit ?? wanted) * Self.grownQueue
  }

  private mutating func judgeLoss(_ sample: ReceptionSample, at now: Instant) {
    guard let begin = lossBegin else { return lossBegin = (sample, now) }
    let seconds = (now - begin.time).seconds
    let expected = sample.expected - begin.sample.expected
    guard seconds >= Self.lossWindow.seconds, expected >= Self.lossWindow.packets else { return }
    lossBegin = (sample, now)
    let wasLossy = lossShare > Self.congestedLoss
    lossShare = min(1, max(0, Double(sample.lost - begin.sample.lost) / Double(expected)))
    guard lossShare > Self.congestedLoss else { return }
    let arrived = Double(sample.delivered - begin.sample.delivered) * 8 / seconds
    let sent = arrived / max(0.01, 1 - lossShare)
    let present = limit ?? wanted
    // GCC section 6: half of a loss is taken off the rate.
    if sent >= present * Self.fullShare {
      decrease(to: lossShare > Self.heavyLoss ? arrived : sent * (1 - lossShare / 2), full: arrived, at: now)
    } else if wasLossy {
      // A still picture's packets show no rate of the path, and the losses of a phone that roams are soon over.
      decrease(to: present * (1 - lossShare / 2), full: present, at: now)
    }
  }

  private mutating func decrease(to rate: Double, full: Double, at now: Instant) {
    limit = max(Self.least, (limit ?? wanted) * Self.largestDecrease, min(limit ?? .infinity, rate))
    (self.full, isWider) = (full, false)
    (lastDecrease, lastGrowth) = (now, now)
    decreases &+= 1
  }

  private mutating func grow(at now: Instant) {
    defer { lastGrowth = now }
    guard let limit, let lastDecrease, let lastGrowth else { return }
    guard (now - lastDecrease).seconds > Self.growthPause, queue.seconds < Self.heldQueue,
      lossShare < Self.heldLoss
    else { return }
    let near = full.map { $0 * Self.nearRates.lowerBound..<$0 * Self.nearRates.upperBound }
    if let full, let rate = deliveries.rate(over: Self.steadyWindow, until: now), rate > full * Self.widerShare {
      (self.full, isWider) = (nil, true)
    }
    let speed = isWider ? Self.widerSpeed : 1
    let ramp = max(Self.rampUp, wanted * Self.rampUpShare, limit * Self.slowestGrowth) * speed
    let isNear = !isWider && near?.contains(limit) == true
    let growth = isNear ? limit * Self.nearGrowth : min(limit * Self.fastestGrowth * speed, ramp)
    // A viewer that reports rarely has not tried the rates between.
    let step = min(growth * min((now - lastGrowth).seconds, Self.longestGrowth), limit * Self.largestGrowth * speed)
    var most = min(max(limit, deliveries.peak * Self.appLimit), allowance ?? .infinity)
    // It does not leap over the rates that are near: a viewer that reports rarely would tell too late.
    if let near, limit < near.lowerBound, !isWider { most = min(most, near.lowerBound) }
    self.limit = min(limit + step, most)
    if limit > wanted * Self.open.multiple, (now - lastDecrease).seconds > Self.open.seconds {
      (self.limit, full) = (nil, nil)
    }
  }
}
