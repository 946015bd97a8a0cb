package import Platform

/// The samples of a track of sound on the timeline of the pictures: 48 kHz by `CLOCK_MONOTONIC`. One thread at a time
/// uses it.
///
/// Sample number n belongs to the time `start` + n / 48 kHz. `start` moves on where the timeline passes over a gap. Samples
/// wait here until a whole frame is there.
package final class SoundTimeline {
  /// The number of channels.
  package let channels: Int
  private var start: Instant
  /// The start that counts for samples before that number: the timeline has passed over a gap since.
  private var former: (start: Instant, end: Int64)?
  /// The number of samples of each channel that were appended since `start`, and of those that were taken.
  private var (appended, taken): (Int64, Int64) = (0, 0)
  /// A ring of samples; the channels of one instant lie side by side.
  private let ring: UnsafeMutableBufferPointer<Int16>
  /// The samples of silence in the place of samples that no card delivered.
  package private(set) var silentSamples: Int64 = 0

  /// The longest silence that takes the place of missing samples at once, in samples of each channel: 200 ms, as much as
  /// a card's memory holds. Of a longer gap, as after a pause of the machine, the silence would come late, and a player
  /// that plays all of it stays late: docs/decisions.md.
  static let silenceLimit = Int64(SoundFormat.trackRate / 5)
  /// The samples of each channel that the ring holds: a second.
  static let capacity = SoundFormat.trackRate

  /// Creates an empty timeline whose first sample belongs to `start`.
  package init(channels: Int, start: Instant) {
    self.channels = channels
    self.start = start
    ring = .allocate(capacity: Self.capacity * channels)
    ring.initialize(repeating: 0)
  }

  deinit { ring.deallocate() }

  /// The time to which the next appended sample belongs.
  package var end: Instant { time(ofSample: appended) }

  private func time(ofSample number: Int64) -> Instant {
    // Seconds and the rest apart, so that nothing overflows in any number of months.
    let (seconds, rest) = number.quotientAndRemainder(dividingBy: Int64(SoundFormat.trackRate))
    let fraction = rest * 1_000_000_000 / Int64(SoundFormat.trackRate)
    let origin = former.map { number < $0.end ? $0.start : start } ?? start
    return origin + Duration(nanoseconds: seconds * 1_000_000_000 + fraction)
  }

  /// Returns the number of samples between the end and `time`; negative where `time` is earlier.
  func samples(until time: Instant) -> Int64 {
    Int64(((time - end).seconds * Double(SoundFormat.trackRate)).rounded())
  }

  /// Appends samples of all channels. The oldest ones are lost where the ring is full.
  package func append(_ samples: UnsafeBufferPointer<Int16>) {
    var rest = UnsafeBufferPointer(rebasing: samples[..<(samples.count / channels * channels)])
    while let source = rest.baseAddress, !rest.isEmpty {
      let room = space(upTo: rest.count)
      room.baseAddress?.update(from: source, count: room.count)
      advance(by: room.count)
      rest = UnsafeBufferPointer(rebasing: rest[room.count...])
    }
  }

  /// Appends silence up to `time`. Of a gap longer than ``silenceLimit`` the timeline passes over whole frames, so that
  /// the time of the next frame is a step later.
  package func appendSilence(until time: Instant) {
    let count = samples(until: time)
    guard count > 0 else { return }
    silentSamples += count
    appendSilence(count <= Self.silenceLimit ? count : passOver(count))
  }

  /// Completes the last frame with silence, and passes over the whole frames of a gap of `count` samples.
  ///
  /// - Returns: The samples that are left of the gap.
  private func passOver(_ count: Int64) -> Int64 {
    let frame = Int64(OpusEncoder.frameSamples)
    let missing = (frame - (appended - taken) % frame) % frame
    appendSilence(missing)
    let (frames, rest) = (count - missing).quotientAndRemainder(dividingBy: frame)
    // Frames between two gaps, of which none was taken, belong to the later one.
    if former.map({ $0.end <= taken }) ?? true { former = (start, appended) }
    start = start + Duration(nanoseconds: frames * (frame * 1_000_000_000 / Int64(SoundFormat.trackRate)))
    return rest
  }

  private func appendSilence(_ count: Int64) {
    var rest = Int(count) * channels
    while rest > 0 {
      let room = space(upTo: rest)
      room.update(repeating: 0)
      advance(by: room.count)
      rest -= room.count
    }
  }

  /// The next piece of the ring in one run, for at most `count` samples of all channels together.
  private func space(upTo count: Int) -> UnsafeMutableBufferPointer<Int16> {
    let first = index(appended)
    return UnsafeMutableBufferPointer(rebasing: ring[first..<min(first + count, ring.count)])
  }

  private func advance(by count: Int) {
    appended += Int64(count / channels)
    taken = max(taken, appended - Int64(Self.capacity))
  }

  private func index(_ number: Int64) -> Int { Int(number % Int64(Self.capacity)) * channels }

  /// Takes `frame.count` samples of all channels, where there are so many.
  ///
  /// - Returns: The time of the first one; nil where there are too few.
  package func take(_ frame: UnsafeMutableBufferPointer<Int16>) -> Instant? {
    let count = Int64(frame.count / channels)
    guard appended - taken >= count else { return nil }
    let time = time(ofSample: taken)
    var position = 0
    while position < Int(count) * channels, let target = frame.baseAddress {
      let first = index(taken)
      let run = min(Int(count) * channels - position, ring.count - first)
      if let source = ring.baseAddress { (target + position).update(from: source + first, count: run) }
      taken += Int64(run / channels)
      position += run
    }
    return time
  }
}
