package import Platform

/// Puts the samples of a sound card on a ``SoundTimeline``.
///
/// The card's clock drifts against `CLOCK_MONOTONIC`, so the resampler's ratio follows the card's measured rate, and
/// takes the rest of the error away within some seconds. Where samples are missing, silence takes their place; samples
/// that come too late for their place are left out.
package final class SoundAligner {
  /// The card's format.
  package let input: SoundFormat
  /// The number of times that samples were placed anew, because their time was off: the card lost samples, or its rate
  /// is wrong.
  package private(set) var jumps = 0
  private let timeline: SoundTimeline
  private var clock: SampleClock
  private var resampler: Resampler
  private let mix: ChannelMix
  /// The number of samples of each channel that came from the card since its clock was restarted.
  private var received: Int64 = 0
  /// `true` places the next samples by their time stamp.
  private var isLoose = true
  private let mixed: UnsafeMutableBufferPointer<Int16>
  private let resampled: UnsafeMutableBufferPointer<Int16>

  /// The error after which samples are moved instead of stretched.
  static let jumpLimit = 0.05
  /// The time within which the rest of the error is stretched away, in seconds.
  private static let settlingTime = 8.0
  /// The most samples of each channel in one call of ``take(_:first:)``: a quarter of a second.
  package let blockLimit: Int

  /// Creates an aligner of samples in `input` format.
  ///
  /// - Throws: ``SystemFailure`` where memory is short.
  package init(from input: SoundFormat, onto timeline: SoundTimeline) throws(SystemFailure) {
    self.input = input
    self.timeline = timeline
    clock = SampleClock(rate: input.rate)
    resampler = try Resampler(from: input.rate, to: SoundFormat.trackRate, channels: timeline.channels)
    mix = ChannelMix(input: input.channels, output: timeline.channels)
    blockLimit = input.rate / 4
    mixed = .allocate(capacity: blockLimit * timeline.channels)
    resampled = .allocate(capacity: SoundFormat.trackRate / 2 * timeline.channels)
  }

  deinit {
    mixed.deallocate()
    resampled.deallocate()
  }

  /// The deviation of the card's clock in ppm, positive for a fast one; zero until it is known, after ten seconds.
  package var drift: Double { clock.deviation }

  /// Notes that the card has lost samples: the next ones find their place by their time.
  package func noteLoss() {
    clock.restart()
    (received, isLoose) = (0, true)
    jumps += 1
  }

  /// Takes samples of the card, at most ``blockLimit`` of each channel, of which the first was recorded at `first`.
  package func take(_ samples: UnsafeBufferPointer<Int16>, first: Instant) {
    let count = samples.count / input.channels
    guard count > 0, count <= blockLimit else { return }
    clock.note(sample: received, at: first)
    var start = 0
    if isLoose { start = place(first, count) }
    if start < count { steer() }
    received += Int64(count)
    guard start < count else { return }
    let written = mix.apply(
      UnsafeBufferPointer(rebasing: samples[(start * input.channels)...]), into: mixed)
    resample(UnsafeBufferPointer(rebasing: mixed[..<written]))
  }

  /// Places the first samples after a gap: fills the gap with silence, or drops samples whose time has passed.
  ///
  /// - Returns: The number of the card's samples to leave out.
  private func place(_ first: Instant, _ count: Int) -> Int {
    let gap = timeline.samples(until: first)
    if gap >= 0 {
      timeline.appendSilence(until: first)
      isLoose = false
      return 0
    }
    let late = Int((Double(-gap) * Double(input.rate) / Double(SoundFormat.trackRate)).rounded())
    guard late < count else { return count }
    isLoose = false
    return late
  }

  /// Sets the resampler's ratio by the card's rate and the present error; or lets the next samples find their place,
  /// where the error is too large.
  private func steer() {
    guard let time = clock.time(ofSample: Double(received - Int64(resampler.latency))) else { return }
    let nominal = Double(input.rate) / Double(SoundFormat.trackRate)
    guard !isLoose else { return }
    // Positive where the timeline has less samples than it should.
    let error = (time - timeline.end).seconds
    guard abs(error) <= Self.jumpLimit else { return noteLoss() }
    let measured = 1 / (clock.slope * Double(SoundFormat.trackRate))
    let limit = nominal * SampleClock.deviationLimit
    let ratio = measured * (1 - error / Self.settlingTime)
    resampler.setRatio(min(max(ratio, nominal - limit), nominal + limit))
  }

  private func resample(_ samples: UnsafeBufferPointer<Int16>) {
    var rest = samples
    while !rest.isEmpty {
      let (read, written) = resampler.process(rest, into: resampled)
      guard read > 0 || written > 0 else { return }
      timeline.append(UnsafeBufferPointer(rebasing: resampled[..<(written * timeline.channels)]))
      rest = UnsafeBufferPointer(rebasing: rest[(read * timeline.channels)...])
    }
  }
}
