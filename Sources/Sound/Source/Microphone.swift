package import Platform
import Synchronization

/// A sound card's microphone, which may come and go. While the card is away, the microphone delivers silence, and a
/// thread of its own searches for the card. Another thread reads the card: a driver that hangs is left behind.
package final class Microphone: SoundSource, @unchecked Sendable {
  // Sendable: what is neither constant nor under the mutex belongs to the one thread that calls `fill` and `end`.

  /// A device to open.
  package enum Selection: Hashable, Sendable {
    /// A device by its name.
    case device(SoundDeviceName)
    /// A card that was found: the same card again after it was unplugged, by its USB port or its short name, whatever its
    /// number is then.
    case card(SoundCard)
  }

  /// Returns the device to open; nil while there is none to choose. `former` is the choice whose device was opened last;
  /// nil before the first one.
  package typealias Choice = @Sendable (_ former: Selection?) -> Selection?

  private let search: MicrophoneSearch
  private let events = EventQueue<SoundEvent>()
  private let shared = Mutex(SoundCondition())
  private var urgency = NamedThread.Urgency.ordinary
  private var reader: CardReader?
  private var aligner: SoundAligner?
  /// The readers that were given up and have not closed their card yet.
  private var leaving: [CardReader] = []
  private var lostAt = Instant.zero
  /// The number of the driver's answers when the last one came, and the time that has passed since.
  private var (answers, unanswered) = (0, Duration.zero)
  /// `true` if the open card has delivered samples.
  private var hasDelivered = false
  /// `true` if the clock paces the readings of the open card.
  private var isPaced = false
  /// The last failure of a card that had delivered nothing; nil once a card delivers.
  private var toldFailure: SoundError?

  /// The time after which a driver that does not answer is left behind.
  package static let hangLimit = Duration(nanoseconds: 3_000_000_000)
  /// The time that a driver has to close a card before the card is searched for again, and when the program ends.
  package static let closingTime = Duration(nanoseconds: 1_000_000_000)
  /// The most drivers that may hang at a time; a microphone with more of them is not searched for.
  private static let leavingLimit = 3
  /// Returns the longest permitted delay of the timeline, for a card that delivers once a `period`.
  package static func lagLimit(period: Duration) -> Duration { max(Duration(nanoseconds: 100_000_000), period * 2) }

  /// Creates a microphone that is opened by the first call of ``fill(_:patience:)``.
  ///
  /// - Throws: ``SystemFailure`` where the process has no descriptor left.
  package convenience init(_ selection: Selection, channels: Int) throws(SystemFailure) {
    try self.init(channels: channels) { _ in selection }
  }

  /// Creates a microphone that is chosen later. While `choose` returns nil, the microphone delivers silence, and
  /// reports no event.
  ///
  /// - Parameter choose: called on a thread of its own, once a second, until a device is open.
  /// - Throws: ``SystemFailure`` where the process has no descriptor left.
  package convenience init(channels: Int, choosing choose: @escaping Choice) throws(SystemFailure) {
    try self.init(channels: channels, choosing: choose) { selection throws(SoundError) in
      try MicrophoneSearch.open(selection, channels: channels)
    }
  }

  /// Creates a microphone whose devices are opened by `open`.
  package init(
    channels: Int, choosing choose: @escaping Choice, opening open: @escaping MicrophoneSearch.Opening
  ) throws(SystemFailure) {
    search = try MicrophoneSearch(events: events, choosing: choose, opening: open)
  }

  deinit {
    reader?.stop()
    search.stop()
  }

  /// `true` while the card is open. The thread that calls ``fill(_:patience:)`` may ask.
  package var hasOpenCard: Bool { reader != nil }

  /// The source's state.
  package var condition: SoundCondition { shared.withLock { $0 } }

  /// Returns the events since the last call, oldest first.
  package func takeEvents() -> [SoundEvent] { events.take() }

  /// Gives the thread that reads the card real-time priority as the value says. To be called before the first call of
  /// ``fill(_:patience:)``.
  package func setPriority(_ priority: RealTimePriority) { urgency = .realTime(priority) }

  /// Ends the search, and the wait of ``fill(_:patience:)``: at once while the card is away, else after its patience at
  /// the latest. Any thread may call it.
  package func stop() { search.stop() }

  /// Closes the card. A driver that takes longer than ``closingTime`` for it is left behind.
  package func end() {
    stop()
    if let card = search.take() { leave(card) }
    let last = reader.take()
    aligner = nil
    last?.stop()
    let deadline = Instant.now() + Self.closingTime
    for reader in leaving + (last.map { [$0] } ?? []) { _ = reader.waitUntilOver(by: deadline) }
    leaving = []
    shared.withLock { $0.isPresent = false }
  }

  /// Waits for samples and appends them, or silence; see ``SoundSource``.
  package func fill(_ timeline: SoundTimeline, patience: Duration) -> Bool {
    guard !search.isStopped else { return false }
    if reader == nil { takeFound(onto: timeline) }
    guard let reader, let aligner else {
      if maySearch { search.begin(isAfterLoss: shared.withLock { $0.losses > 0 }) }
      if search.findsNothing { shared.withLock { $0.isHung = false } }
      search.sleep(until: .now() + min(patience, Duration(nanoseconds: 20_000_000)))
      timeline.appendSilence(until: .now())
      publish(timeline)
      return true
    }
    let begin = Instant.now()
    switch reader.next(until: begin + patience) {
    case .samples(let samples, let first, let times):
      noteAnswer(of: reader)
      if !hasDelivered { tellFound(reader, times) }
      if times == .clock, !isPaced { tellPaced(reader, aligner) }
      aligner.take(samples, first: first)
      if times != .driver { shared.withLock { $0.unstampedBlocks += 1 } }
    case .overrun:
      noteAnswer(of: reader)
      shared.withLock { $0.overruns += 1 }
      aligner.noteLoss()
    case .failed(let error): lose(error)
    case nil: noteNothing(of: reader, for: min(Instant.now() - begin, patience))
    }
    let now = Instant.now()
    let lagLimit = Self.lagLimit(period: reader.period)
    if now - timeline.end > lagLimit {
      // The line goes on; what comes late is left out.
      timeline.appendSilence(until: now - lagLimit)
      self.aligner?.noteLoss()
    }
    publish(timeline)
    return true
  }

  private func noteAnswer(of reader: CardReader) { (answers, unanswered) = (reader.answers, .zero) }

  /// Notes that nothing came for `time`, and leaves a driver behind that does not answer at all. A card whose driver
  /// answers that there is nothing is the reader's to judge.
  private func noteNothing(of reader: CardReader, for time: Duration) {
    let count = reader.answers
    guard count == answers else { return noteAnswer(of: reader) }
    unanswered = unanswered + time
    guard unanswered >= Self.hangLimit else { return }
    lose(.hung(reader.device.text, milliseconds: Int(unanswered.milliseconds)))
  }

  private func publish(_ timeline: SoundTimeline) {
    let drift = aligner?.drift ?? 0
    let silentSamples = timeline.silentSamples
    shared.withLock {
      $0.drift = drift
      $0.silentSamples = silentSamples
    }
  }

  // MARK: Loss and return

  private func lose(_ error: SoundError) {
    if let reader = reader.take() {
      reader.stop()
      leaving.append(reader)
    }
    (aligner, lostAt) = (nil, .now())
    shared.withLock { $0.isHung = error.isStandstill }
    guard hasDelivered else {
      // A card that opens and delivers nothing, again and again, is told once.
      if toldFailure?.isLike(error) != true { events.add(.lost(error)) }
      toldFailure = error
      return
    }
    hasDelivered = false
    shared.withLock {
      $0.isPresent = false
      $0.losses += 1
    }
    events.add(.lost(error))
  }

  /// `true` if the card that was lost is closed, or its driver has had its time: an open card is busy.
  private var maySearch: Bool {
    leaving.removeAll(where: \.isOver)
    return leaving.isEmpty || leaving.count < Self.leavingLimit && Instant.now() - lostAt >= Self.closingTime
  }

  private func takeFound(onto timeline: SoundTimeline) {
    guard let found = search.take() else { return }
    guard let made = try? SoundAligner(from: found.format, onto: timeline),
      let begun = try? CardReader(found, blockLimit: made.blockLimit, urgency: urgency)
    else { return leave(found) }
    (reader, aligner, isPaced) = (begun, made, false)
    (answers, unanswered) = (0, .zero)
  }

  /// Closes a card that nothing reads.
  private func leave(_ card: any CardInput) {
    // Without a thread for it, this one closes the card.
    if (try? NamedThread("nj-card") { card.close() }.detach()) == nil { card.close() }
  }

  /// Notes the first samples of a card. Before these, an open card may be one that delivers none.
  private func tellFound(_ card: CardReader, _ times: SampleTimes) {
    (hasDelivered, toldFailure) = (true, nil)
    shared.withLock {
      ($0.isPresent, $0.isHung, $0.name) = (true, false, card.name)
      ($0.period, $0.times) = (card.period, times)
    }
    events.add(.found(name: card.name, format: card.format, period: card.period, times: times))
  }

  /// Notes that the clock paces the card. The times of the samples so far were not true.
  private func tellPaced(_ card: CardReader, _ aligner: SoundAligner) {
    isPaced = true
    aligner.noteLoss()
    shared.withLock { $0.times = .clock }
    events.add(.paced(name: card.name, rate: card.format.rate))
  }
}
