package import Detection
package import Media
package import Platform
package import RTP
package import Sound
import Synchronization

/// The settings of a stream's sound. Gain and mute change while the stream goes on.
package struct SoundSettings: Hashable, Sendable {
  /// The number of channels, 1 or 2.
  package var channels = 1
  /// Bits a second of Opus.
  package var bitrate = 32_000
  /// The gain in dB.
  package var gain = 0.0
  /// `true` reduces sound below 100 Hz by a high-pass filter.
  package var usesHighPass = true
  /// The settings of the detectors of noise and crying; nil for none.
  package var detector: SoundDetector.Settings?

  /// Creates the default settings.
  package init() {}
}

/// The figures of a stream's sound.
package struct SoundFigures: Hashable, Sendable {
  /// The source's state.
  package var condition = SoundCondition()
  /// The level of the last tenth of a second, after gain and before mute.
  package var level = SoundLevel.silence
  /// The loudest level of the last second: whoever looks once a second misses nothing.
  package var loudest = SoundLevel.silence
  /// The seconds for which the microphone has recorded nothing but digital silence; zero while it records.
  package var digitalSilence = 0.0
  /// `true` while the thread of the sound stands still, so that viewers get no packets.
  package var isStuck = false
  /// `true` if viewers get silence on request.
  package var isMuted = false
  /// The gain in dB.
  package var gain = 0.0
  /// Samples that were clipped, by the card or by the gain.
  package var clipped: Int64 = 0
  /// Opus packets of 20 ms.
  package var encoded = 0
  /// Frames of 20 ms that libopus refused.
  package var failed = 0
  /// Opus packets that a stream with sound beside the pictures had no room for, because the send stage was late.
  package var dropped = 0
  /// The figures of MP3 for listeners.
  package var mp3 = MP3Statistics()
  /// The findings of the detectors; nil without detectors.
  package var finding: SoundFinding?
  /// The time of the sound that the findings are about.
  package var findingTime = Instant.zero
}

/// The sound for streams that carry it beside the pictures, on its way to the pictures' send stage.
package final class MuxedSound: CodedPictureConsumer, Sendable {
  /// The access units.
  let units: CodedPictureQueue

  /// `true` while a stream carries sound beside the pictures. Otherwise each access unit would wake the send stage for
  /// nothing.
  private let wanted = Atomic(false)
  /// Access units without room.
  private let dropped = Atomic<Int>(0)

  /// The number of access units without room.
  var droppedCount: Int { dropped.load(ordering: .relaxed) }

  /// Creates an empty queue.
  init() throws { units = try CodedPictureQueue(capacity: OpusEncoder.packetLimit) }

  /// Sets whether any stream carries sound beside the pictures. Any thread may call it.
  func setWanted(_ isWanted: Bool) { wanted.store(isWanted, ordering: .relaxed) }

  /// Copies an access unit for the send stage, if a stream carries it. Without room, the unit is dropped: late sound is
  /// useless.
  package func take(_ unit: borrowing AccessUnit) {
    guard wanted.load(ordering: .relaxed) else { return }
    guard let copy = units.beginWriteAtOnce() else { return drop() }
    guard copy.store(unit) else {
      units.abandon(copy)
      return drop()
    }
    units.commit(copy, encoded: .now())
  }

  private func drop() { dropped.wrappingAdd(1, ordering: .relaxed) }

  package func breakOff() {}
  package func close() {}
}

/// Takes sound from its source, encodes it, and puts it into its track. Runs on a thread of its own.
package final class SoundStage: @unchecked Sendable {
  // Sendable: `thread` belongs to the owner. All other state is constant, under a lock, or the sound thread's own.
  private let source: any SoundSource
  private let settings: SoundSettings
  private let track: Track
  let muxed: MuxedSound?
  private let shared: Mutex<SoundFigures>
  private let events = EventQueue<SoundEvent>()
  /// The rounds of the thread so far.
  private let rounds = Atomic<Int>(0)
  private let pulse = Mutex(SoundPulse())
  private var thread: NamedThread?
  private let hasEnded = Monitor()
  /// Under ``hasEnded``: `true` once the thread does nothing more.
  private var isOver = false
  /// Encodes the sound once more, as MP3, while somebody listens by HTTP.
  let mp3: MP3Stage

  /// The channels of the sound.
  package var channels: OpusChannels { settings.channels == 2 ? .stereo : .mono }

  /// The interval between two frames, and the longest wait for samples.
  package static let interval = Duration.milliseconds(20)
  private static let patience = Duration.milliseconds(100)
  /// The longest wait for the thread's end: a sound card's driver may hang in it.
  package static let endPatience = Duration.seconds(2)

  /// The format of a track of sound.
  package static func trackFormat(_ settings: SoundSettings) -> TrackFormat {
    TrackFormat(
      payload: .opus(settings.channels == 2 ? .stereo : .mono), bitrate: settings.bitrate, interval: interval,
      unitBytes: OpusEncoder.packetLimit)
  }

  /// Creates the stage; ``start()`` starts the thread.
  ///
  /// - Parameters:
  ///   - track: a track of ``trackFormat(_:)`` with the same settings.
  ///   - muxed: the same sound for streams that carry it beside the pictures; nil where there are none.
  package init(_ source: any SoundSource, _ settings: SoundSettings, track: Track, muxed: MuxedSound?) {
    (self.source, self.settings, self.track, self.muxed) = (source, settings, track, muxed)
    var figures = SoundFigures()
    figures.gain = settings.gain
    shared = Mutex(figures)
    mp3 = MP3Stage(channels: settings.channels)
  }

  deinit {
    source.stop()
    mp3.close()
  }

  /// Starts the thread, which ends once the source was stopped or the track takes no more.
  ///
  /// - Throws: ``SystemFailure`` or ``OpusFailure`` where memory is short.
  package func start(_ realTime: RealTimePriority) throws {
    source.setPriority(realTime)
    let encoder = EncoderBox(try OpusEncoder(channels: settings.channels, bitrate: settings.bitrate))
    thread = try NamedThread("nj-audio", urgency: .realTime(realTime)) { [self] in
      run(encoder)
      hasEnded.locked {
        isOver = true
        hasEnded.signal()
      }
    }
  }

  /// Ends the source, and with it the thread: at once, or within 100 ms where a sound card is open. Ends every listener's
  /// wait, too. Any thread may call it.
  package func stop() {
    source.stop()
    mp3.close()
  }

  /// Ends the source, and waits for the thread. A thread that hangs in the driver of a sound card is left behind after
  /// ``endPatience``, so that the pictures' end does not wait for it.
  package func waitUntilEnd() {
    stop()
    guard let thread = thread.take() else { return }
    let deadline = Instant.now() + Self.endPatience
    let isOver = hasEnded.locked {
      while !self.isOver, hasEnded.wait(until: deadline) {}
      return self.isOver
    }
    if isOver {
      _ = consume thread
    } else {
      thread.detach()
    }
  }

  /// The figures so far. Any thread may call it.
  package var figures: SoundFigures {
    var figures = shared.withLock { $0 }
    figures.condition = source.condition
    figures.mp3 = mp3.statistics
    figures.dropped = muxed?.droppedCount ?? 0
    return figures
  }

  /// Returns the events since the last call: those of the source, then those of the stage.
  package func takeEvents() -> [SoundEvent] { source.takeEvents() + events.take() }

  /// Checks that the thread makes progress. One thread calls it once a second.
  package func checkProgress() {
    let count = rounds.load(ordering: .relaxed)
    guard let change = pulse.withLock({ $0.note(count) }) else { return }
    shared.withLock { $0.isStuck = change }
    events.add(change ? .stuck(seconds: SoundPulse.limit) : .unstuck)
  }

  /// Mutes the sound, or ends the mute. Any thread may call it.
  package func mute(_ isMuted: Bool) { shared.withLock { $0.isMuted = isMuted } }

  /// Sets the gain in dB. Any thread may call it.
  package func setGain(_ decibels: Double) { shared.withLock { $0.gain = decibels } }

  private final class EncoderBox: @unchecked Sendable {
    // Sendable: passes from the thread that made it to the one that uses it.
    var encoder: OpusEncoder
    let lookahead: Duration
    init(_ encoder: consuming OpusEncoder) {
      lookahead = Duration(seconds: Double(encoder.lookahead) / Double(SoundFormat.trackRate))
      self.encoder = encoder
    }
  }

  private func run(_ box: EncoderBox) {
    let timeline = SoundTimeline(channels: settings.channels, start: .now())
    var chain = SoundChain(channels: settings.channels, usesHighPass: settings.usesHighPass)
    var meter = LevelMeter(rate: SoundFormat.trackRate * settings.channels)
    var hold = LevelHold()
    var detector: SoundDetector?
    if let settings = settings.detector { detector = SoundDetector(channels: self.settings.channels, settings) }
    var silence = DigitalSilence(rate: SoundFormat.trackRate)
    let frame = UnsafeMutableBufferPointer<Int16>.allocate(capacity: OpusEncoder.frameSamples * settings.channels)
    let packet = UnsafeMutableRawBufferPointer.allocate(byteCount: OpusEncoder.packetLimit, alignment: 8)
    defer {
      frame.deallocate()
      packet.deallocate()
      // No sound comes any more.
      mp3.close()
      source.end()
    }
    var (wasHeard, wasMuted) = (false, false)
    // The track stays open for a while after the source was stopped.
    while track.isOpen, source.fill(timeline, patience: Self.patience) {
      rounds.add(1, ordering: .relaxed)
      while let time = timeline.take(frame) {
        listen(UnsafeBufferPointer(frame), &silence)
        let (gain, isMuted) = shared.withLock { ($0.gain, $0.isMuted) }
        chain.setGain(gain)
        let clipped = chain.apply(frame)
        let level = meter.note(UnsafeBufferPointer(frame))
        // Before the mute, which is for viewers.
        let finding = detector?.note(UnsafeBufferPointer(frame))
        let isHeard = track.isWatched
        shared.withLock {
          if let finding { ($0.finding, $0.findingTime) = (finding, time) }
          $0.clipped += Int64(clipped)
          if let level { ($0.level, $0.loudest) = (level, hold.note(level)) }
        }
        // The encoder's history is of a time when nobody listened, or of the other side of a mute.
        if isHeard, !wasHeard || isMuted != wasMuted { box.encoder.forget() }
        (wasHeard, wasMuted) = (isHeard, isMuted)
        guard isHeard || mp3.isWanted else { continue }
        if isMuted { frame.update(repeating: 0) }
        mp3.offer(UnsafeBufferPointer(frame))
        guard isHeard else { continue }
        guard send(UnsafeBufferPointer(frame), at: time, by: box, in: packet) else { return }
      }
    }
  }

  /// Measures digital silence before the gain, which may make every sound as soft.
  private func listen(_ frame: UnsafeBufferPointer<Int16>, _ silence: inout DigitalSilence) {
    let condition = source.condition
    let change = silence.note(frame, count: OpusEncoder.frameSamples, isPresent: condition.isPresent)
    shared.withLock { $0.digitalSilence = silence.seconds }
    switch change {
    case .began: events.add(.silent(name: condition.name, seconds: Int(DigitalSilence.limit)))
    case .ended(let seconds): events.add(.audible(name: condition.name, seconds: seconds))
    case nil: break
    }
  }

  /// Encodes a frame and puts it into the track. Returns `false` once the track takes no more.
  private func send(
    _ frame: UnsafeBufferPointer<Int16>, at time: Instant, by box: EncoderBox, in packet: UnsafeMutableRawBufferPointer
  ) -> Bool {
    // A frame that libopus refuses is a defect of ours, and the line goes on.
    guard let count = try? box.encoder.encode(frame, into: packet),
      let unit = NALUnit(UnsafeRawBufferPointer(rebasing: packet[..<count]))
    else {
      shared.withLock { $0.failed += 1 }
      return true
    }
    shared.withLock { $0.encoded += 1 }
    guard track.reserve() else { return false }
    // Decoded sound comes late by the encoder's lookahead: the packet begins with samples of the frame before.
    let time = time - box.lookahead
    withUnsafePointer(to: unit) { unit in
      _ = track.take(
        AccessUnit(
          nalUnits: UnsafeBufferPointer(start: unit, count: 1), isKeyFrame: true, timestamp: time, captured: time))
    }
    return true
  }
}
