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
  /// The usual time between samples in seconds; nil before the second one.
  private var interval: Double?
  private var lossBegin: (sample: ReceptionSample, time: Instant)?
  /// `true` if the sample before showed a queue.
  private var wasCongested = false
  private var lastDecrease: Instant?
  /// The rate at which the path was last full; nil once the estimate is beyond it.
  private var full: Double?
  private var vain = 0
  private var lastGrowth: Instant?
  private var lastReceiverLimit: Double?
  /// `true` while nothing is sent, until the queue is gone.
  private var isPausing = false

  /// Creates the estimate of an open path.
  package init(wanted: Double) { self.wanted = wanted }

  /// The bits a second to send now: less than ``limit`` while a queue drains. Nil while the path is open.
  package var target: Double? {
    guard let limit else { return nil }
    let excess = (queue.seconds - Self.heldQueue) / Self.drainTime
    return limit * min(1, max(Self.leastDrainShare, 1 - excess))
  }

  /// Returns `true` if so much waits on the path that nothing more is to be sent at `now`. The queue drains meanwhile,
  /// whether the viewer reports that or not.
  package mutating func isPaused(at now: Instant) -> Bool {
    guard let last, let limit else { return false }
    // The packets on their way wait long behind those before them, and no longer once those are gone.
    let left = min(queue.seconds, Double(last.sample.outstanding) * 8 / limit) - (now - last.time).seconds
    isPausing = left > (isPausing ? Self.heldQueue : Self.pausedQueue)
    return isPausing
  }

  /// Returns `true` if the viewer no longer tells what it receives, although it did.
  package func isSilent(at now: Instant) -> Bool {
    guard let last, let interval else { return false }
    return (now - last.time).seconds > max(Self.silence.seconds, Self.silence.intervals * interval)
  }

  // MARK: Samples

  /// Takes what the viewer has received by now.
  package mutating func take(_ sample: ReceptionSample, at now: Instant) {
    defer { last = (sample, now) }
    if let age = sample.age { base.note(age.seconds, at: now) }
    if let roundTrip = sample.roundTrip { base.note(roundTrip.seconds, at: now) }
    let elapsed = last.map { (now - $0.time).seconds } ?? 0
    if last != nil { interval = interval.map { $0 + (elapsed - $0) / 8 } ?? elapsed }
    deliveries.note(sample.delivered, at: now)
    let noise = min(sample.jitter.seconds, Self.jitterAllowance)
    let waiting = max(0, sample.waiting.seconds - (base.shortest ?? sample.waiting.seconds) - noise)
    queue = Duration(seconds: waiting)
    judgeQueue(sample, waiting, elapsed, at: now)
    judgeLoss(sample, at: now)
    grow(at: now)
  }

  /// Takes the limit that a browser has estimated (REMB): `bits` a second for all that it receives, of which `sent` were
  /// sent last. It counts where it falls below what is sent: then the browser has seen a queue. Otherwise it follows what
  /// is sent, and says nothing about the path.
  package mutating func take(receiverLimit bits: Double, sent: Double, at now: Instant) {
    let isFalling = lastReceiverLimit.map { bits < $0 } ?? true
    lastReceiverLimit = bits
    if isFalling, bits < sent, bits < limit ?? .infinity {
      decrease(to: bits, full: bits / Self.decrease, at: now)
    }
  }

  private mutating func judgeQueue(_ sample: ReceptionSample, _ waiting: Double, _ elapsed: Double, at now: Instant) {
    let isCongested = waiting > Self.congestedQueue
    defer { wasCongested = isCongested }
    if waiting < Self.heldQueue { vain = 0 }
    guard isCongested, wasCongested || elapsed > Self.sparseSamples else { return }
    // The oldest packet on its way was sent at the former rate: no judgement of the present one.
    if let lastDecrease, now - sample.waiting < lastDecrease + Duration(seconds: Self.reaction) { return }
    guard let rate = deliveries.rate(over: Self.rateWindow, until: now) else { return }
    vain += 1
    if vain > Self.vainDecreases {
      base.reset(to: sample.waiting.seconds, at: now)
      vain = 0
    }
    decrease(to: rate * Self.decrease, full: rate, at: now)
  }

  private mutating func judgeLoss(_ sample: ReceptionSample, at now: Instant) {
    guard let begin = lossBegin else { return lossBegin = (sample, now) }
    let seconds = (now - begin.time).seconds
    let expected = sample.expected - begin.sample.expected
    guard seconds >= Self.lossWindow.seconds, expected >= Self.lossWindow.packets else { return }
    lossBegin = (sample, now)
    lossShare = min(1, max(0, Double(sample.lost - begin.sample.lost) / Double(expected)))
    guard lossShare > Self.congestedLoss else { return }
    let arrived = Double(sample.delivered - begin.sample.delivered) * 8 / seconds
    let sent = arrived / max(0.01, 1 - lossShare)
    // GCC section 6: a loss halves the rate by its half.
    let left = lossShare > Self.heavyLoss ? arrived : sent * (1 - lossShare / 2)
    decrease(to: left, full: arrived, at: now)
  }

  private mutating func decrease(to rate: Double, full: Double, at now: Instant) {
    limit = max(Self.least, min(limit ?? .infinity, rate))
    self.full = full
    (lastDecrease, lastGrowth) = (now, now)
    decreases &+= 1
  }

  private mutating func grow(at now: Instant) {
    defer { lastGrowth = now }
    guard let limit, let lastDecrease, let lastGrowth else { return }
    guard (now - lastDecrease).seconds > Self.growthPause, queue.seconds < Self.heldQueue,
      lossShare < Self.heldLoss
    else { return }
    var growth = min(limit * Self.fastestGrowth, max(Self.rampUp, limit * Self.slowestGrowth))
    if let full {
      if limit > full * Self.nearRates.upperBound { self.full = nil }
      if Self.nearRates.contains(limit / full) { growth = limit * Self.nearGrowth }
    }
    // A viewer that reports rarely has not tried the rates between.
    let elapsed = min((now - lastGrowth).seconds, 1)
    let most = max(limit, deliveries.peak * Self.appLimit)
    self.limit = min(limit + growth * elapsed, most)
    if limit > wanted * Self.open.multiple, (now - lastDecrease).seconds > Self.open.seconds {
      (self.limit, full) = (nil, nil)
    }
  }
}

/// The shortest delay of the last while.
struct ShortestDelay {
  private var (present, former): (Double?, Double?) = (nil, nil)
  private var began = Instant.zero

  /// The shortest delay in seconds; nil before the first.
  var shortest: Double? {
    guard let present else { return former }
    return min(present, former ?? present)
  }

  /// Takes a delay.
  mutating func note(_ delay: Double, at now: Instant) {
    if present != nil, (now - began).seconds > BandwidthEstimate.baseLifetime { (former, present) = (present, nil) }
    if present == nil { began = now }
    present = min(present ?? delay, delay)
  }

  /// Forgets all delays but this one.
  mutating func reset(to delay: Double, at now: Instant) { (present, former, began) = (delay, nil, now) }
}

/// The rates at which a viewer's bytes have arrived.
struct DeliveryRates {
  /// The last arrivals, in a ring.
  private var ring: InlineArray<32, Arrival> = .init(repeating: Arrival())
  private var count = 0
  /// The greatest rate of late in bits a second, as of key frames in a still picture.
  private(set) var peak = 0.0

  private struct Arrival {
    var time = Instant.zero
    var bytes = 0
  }

  /// The least time between two entries, so that the ring reaches back for long enough.
  private static let spacing = Duration.milliseconds(20)

  /// Takes the bytes that have arrived so far.
  mutating func note(_ bytes: Int, at now: Instant) {
    if count > 0 {
      let newest = ring[(count - 1) % ring.count]
      guard now - newest.time >= Self.spacing else { return }
      let seconds = (now - newest.time).seconds
      peak *= max(0, 1 - seconds / BandwidthEstimate.peakTime)
    }
    ring[count % ring.count] = Arrival(time: now, bytes: bytes)
    count += 1
    peak = max(peak, rate(over: BandwidthEstimate.rateWindow, until: now) ?? 0)
  }

  /// Returns the bits a second that have arrived within `seconds` or a little more; nil where too little is known.
  func rate(over seconds: Double, until now: Instant) -> Double? {
    guard count > 1 else { return nil }
    let newest = ring[(count - 1) % ring.count]
    var index = count - 2
    while index > 0, index > count - ring.count, (newest.time - ring[index % ring.count].time).seconds < seconds {
      index -= 1
    }
    let oldest = ring[index % ring.count]
    let elapsed = (newest.time - oldest.time).seconds
    return elapsed > 0 ? Double(newest.bytes - oldest.bytes) * 8 / elapsed : nil
  }
}
