import Adaptors
import Decoding
import Media
import Platform
import RTP
import Receiving
import Synchronization

/// One viewer: the receiver, the decoder, and what becomes of the pictures.
final class Viewing: Sendable {
  private struct State {
    var verdict: Verdict
    var frameRate: FrameRate?
    var alarm: DeadLineAlarm
    var formerPictures = 0
    var formerBytes: UInt64 = 0
    /// The reasons why access units were not shown, with their numbers.
    var reasons: [String: Int] = [:]
  }

  private let receiver: StreamReceiver
  private let decoder: VideoDecoder
  private let state: Mutex<State>
  private let (png, y4m): (String?, String?)
  private let player: Player?

  /// The time without a picture from which the terminal shows an alarm, where the command line sets none.
  private static let alarm = Duration.seconds(1)
  /// The number of reasons that are told apart. A hostile stream has as many as it wants.
  private static let reasonLimit = 8

  init(
    _ receiver: StreamReceiver, limits: Verdict.Limits, png: String?, y4m: String?,
    acceleration: VideoDecoder.Configuration.Acceleration, _ player: Player?
  ) throws(DecoderError) {
    (self.receiver, self.png, self.y4m, self.player) = (receiver, png, y4m, player)
    decoder = try VideoDecoder(configuration: .init(acceleration: acceleration))
    state = Mutex(
      State(verdict: Verdict(limits, at: .now()), alarm: DeadLineAlarm(after: limits.freeze ?? Self.alarm)))
  }

  /// Watches until the receiver ends, or for `duration`. The failure is a `ReceiverError` where the stream ends by itself, and a
  /// `WatchError` where a file cannot be written.
  func outcome(for duration: Duration?) async -> Result<Void, any Error> {
    do { return .success(try await run(for: duration)) } catch { return .failure(error) }
  }

  /// The figures of what was seen.
  var verdict: Verdict { state.withLock { $0.verdict } }

  /// The lines about sound and window for the end.
  var summaries: [String] {
    let figures = receiver.statistics
    let counts = figures.counts
    let reasons = state.withLock { $0.reasons }.sorted { ($0.value, $1.key) > ($1.value, $0.key) }
    var lines = reasons.map { "not shown  \($0.value): \($0.key)" }
    lines += [
      "decoder    \(decoder.selection)",
      "network    \(figures.packets) packets, \(counts.packetsLost) lost, \(counts.packetsRecovered) recovered; "
        + "jitter \(decimal(figures.jitter.milliseconds, 1)) ms",
    ]
    if let sound = figures.sound {
      let lost = sound.counts.packetsLost
      lines.append(
        "sound      \(sound.packets) packets, \(lost) lost; jitter \(decimal(sound.jitter.milliseconds, 1)) ms")
    } else if let other = figures.otherSound {
      lines.append("sound      not received: \(other) instead of Opus")
    }
    return lines + (player?.summaries ?? [])
  }

  /// The least time that the first picture may take, however short the time to watch is: a player begins, a server may
  /// open an encoder for it, and a key frame comes.
  private static let firstPicture = Duration(seconds: 10)

  private func run(for duration: Duration?) async throws {
    let units = receiver.accessUnits(.newest(256))
    let events = Task { [events = receiver.events()] in
      for await event in events { Self.tell(event) }
    }
    let figures = Task { [weak self] in
      while !Task.isCancelled {
        try? await Task.sleep(for: .seconds(1))
        self?.tellFigures()
      }
    }
    let end = duration.map { duration in
      Task { [weak self, receiver] in
        let patience = Instant.now() + max(duration, Self.firstPicture)
        while !Task.isCancelled, self?.verdict.first == nil, .now() < patience {
          try? await Task.sleep(for: .milliseconds(50))
        }
        if let first = self?.verdict.first {
          try? await Task.sleep(for: .nanoseconds((first + duration - .now()).nanoseconds))
        }
        receiver.stop()
      }
    }
    let listening = player.map { player in
      Task { [packets = receiver.soundPackets()] in await player.play(packets) }
    }
    defer { for task in [events, figures] + [end, listening].compactMap(\.self) { task.cancel() } }
    defer { state.withLock { $0.verdict.end(at: .now()) } }
    try receiver.start()
    try await takePictures(units)
    let failure = receiver.statistics.lastFailure
    // Stopped by a signal or by --for; everything else is the stream's own end.
    if let failure, failure != .stopped { throw failure }
  }

  private func takePictures(_ units: AsyncStream<EncodedPicture>) async throws {
    var last: DecodedPicture?
    var clip: Y4MWriter? = if let y4m { try Y4MWriter(y4m) } else { nil }
    for await unit in units {
      let pictures: [DecodedPicture]
      do throws(DecoderError) {
        if let sets = unit.parameterSets { note(sets) }
        pictures = try decoder.decode(unit)
      } catch {
        note(error)
        if error.needsKeyFrame { receiver.requestKeyFrame() }
        continue
      }
      for picture in pictures {
        let frameRate = state.withLock { state in
          state.verdict.show(at: .now())
          return state.frameRate
        }
        player?.show(picture)
        try clip?.write(picture.frame.planes, frameRate ?? .thirty)
        last = picture
      }
    }
    // Files take a time in which nothing is watched.
    state.withLock { $0.verdict.end(at: .now()) }
    receiver.stop()
    if let png, let last { try write(PNG.bytes(last.frame.planes, last.color), to: png) }
  }

  private func note(_ error: DecoderError) {
    let reason = "\(error)"
    state.withLock { state in
      state.verdict.notShown += 1
      guard state.reasons[reason] != nil || state.reasons.count < Self.reasonLimit else { return }
      state.reasons[reason, default: 0] += 1
    }
  }

  private func note(_ sets: ParameterSets) {
    let frameRate =
      switch sets.codec {
      case .h264: (try? SequenceParameterSet(nalUnit: sets.sequence))?.frameRate
      case .hevc: (try? HEVCSequenceParameterSet(nalUnit: sets.sequence))?.frameRate
      }
    state.withLock { $0.frameRate = frameRate ?? $0.frameRate }
  }

  private static func tell(_ event: StreamReceiver.Event) {
    switch event {
    case .playing(let way): StandardError.write("playing    \(way)")
    case .lost(let reason, let retry):
      StandardError.write("lost       \(reason); again in \(decimal(retry.seconds, 0)) s")
    case .ended(let reason): if reason != .stopped { StandardError.write("ended      \(reason)") }
    }
  }

  /// Shows the figures of the last second, and sounds the alarm while the picture stands still.
  private func tellFigures() {
    let figures = receiver.statistics
    let (line, alarm, sounds) = state.withLock { state -> (String, String?, Bool) in
      let verdict = state.verdict
      let pictures = verdict.pictures - state.formerPictures
      let bits = Double(figures.bytes &- state.formerBytes) * 8
      (state.formerPictures, state.formerBytes) = (verdict.pictures, figures.bytes)
      let alarm = state.alarm.check(
        last: verdict.last ?? verdict.begun, hadPicture: verdict.last != nil, at: .now())
      let counts = figures.counts
      var line = "\(pictures) fps  \(decimal(bits / 1000, 0)) kbit/s  lost \(counts.packetsLost)"
      line += "  recovered \(counts.packetsRecovered)  jitter \(decimal(figures.jitter.milliseconds, 1)) ms"
      if let delay = figures.delay { line += "  delay \(decimal(delay.milliseconds, 1)) ms" }
      line += "  not shown \(verdict.notShown)"
      if let sound = figures.sound { line += "  sound lost \(sound.counts.packetsLost)" }
      return (line, alarm, state.alarm.sounds)
    }
    if let alarm { StandardError.write(alarm) }
    if sounds { StandardError.bell() }
    StandardError.live(line)
  }
}
