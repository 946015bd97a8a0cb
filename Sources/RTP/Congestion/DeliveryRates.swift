import Platform

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
    var sent = 0
  }

  /// The least time between two entries, so that the ring reaches back for long enough.
  private static let spacing = Duration.milliseconds(20)

  /// Takes the bytes that have arrived and that have left so far.
  mutating func note(_ bytes: Int, sent: Int, at now: Instant) {
    if count > 0 {
      let newest = ring[(count - 1) % ring.count]
      guard now - newest.time >= Self.spacing else { return }
      let seconds = (now - newest.time).seconds
      peak *= max(0, 1 - seconds / BandwidthEstimate.peakTime)
    }
    ring[count % ring.count] = Arrival(time: now, bytes: bytes, sent: sent)
    count += 1
    peak = max(peak, rate(over: BandwidthEstimate.rateWindow, until: now) ?? 0)
  }

  /// Returns the bits a second that have arrived within `seconds` or a little more, up to the last that did; nil where
  /// too little is known.
  func rate(over seconds: Double, until now: Instant) -> Double? {
    span(seconds).flatMap { span in
      let elapsed = (span.newest.time - span.oldest.time).seconds
      return elapsed > 0 ? max(0, Double(span.newest.bytes - span.oldest.bytes)) * 8 / elapsed : nil
    }
  }

  /// Returns the bits a second that left in the time of ``rate(over:until:)``.
  func sentRate(over seconds: Double, until now: Instant) -> Double? {
    span(seconds).flatMap { span in
      let elapsed = (span.newest.time - span.oldest.time).seconds
      return elapsed > 0 ? Double(span.newest.sent - span.oldest.sent) * 8 / elapsed : nil
    }
  }

  private func span(_ seconds: Double) -> (oldest: Arrival, newest: Arrival)? {
    var end = count - 1
    let first = max(0, count - ring.count)
    while end > first, ring[end % ring.count].bytes == ring[(end - 1) % ring.count].bytes { end -= 1 }
    guard end > first else { return nil }
    let newest = ring[end % ring.count]
    var index = end - 1
    while index > first, (newest.time - ring[index % ring.count].time).seconds < seconds { index -= 1 }
    return (ring[index % ring.count], newest)
  }
}
