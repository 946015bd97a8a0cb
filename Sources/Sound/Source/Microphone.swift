package import Platform
import Synchronization

/// A sound card's microphone, which may come and go. While the card is away, the microphone delivers silence, and a
/// thread of its own searches for the card.
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
  private let events = SoundEventLog()
  private let shared = Mutex(SoundCondition())
  private var capture: MicrophoneSearch.OpenedCard?
  private var aligner: SoundAligner?
  /// The time since which the card delivers nothing.
  private var quietSince: Instant?
  /// The overruns since samples last came.
  private var overrunsInARow = 0
  /// `true` if the open card has delivered samples.
  private var hasDelivered = false
  /// The last failure of a card that had delivered nothing; nil once a card delivers.
  private var toldFailure: SoundError?
  private let memory: UnsafeMutableBufferPointer<Int16>

  /// The time after which a card that delivers nothing is opened again.
  static let stallLimit = Duration(nanoseconds: 2_000_000_000)
  /// Returns the longest permitted delay of the timeline, for a card that delivers once a `period`.
  static func lagLimit(period: Duration) -> Duration { max(Duration(nanoseconds: 100_000_000), period * 2) }
  /// The overruns in a row after which the card is opened again.
  static let overrunLimit = 20

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
  package init(channels: Int, choosing choose: @escaping Choice) throws(SystemFailure) {
    search = try MicrophoneSearch(channels: channels, events: events, choosing: choose)
    memory = .allocate(capacity: SoundFormat.trackRate * PCMCapture.channelLimit)
  }

  deinit {
    search.stop()
    memory.deallocate()
  }

  /// `true` while the card is open. The thread that calls ``fill(_:patience:)`` may ask.
  var hasOpenCard: Bool { capture != nil }

  /// The source's state.
  package var condition: SoundCondition { shared.withLock { $0 } }

  /// Returns the events since the last call, oldest first.
  package func takeEvents() -> [SoundEvent] { events.takeAll() }

  /// Ends the search, and the wait of ``fill(_:patience:)``: at once while the card is away, else after its patience at
  /// the latest. Any thread may call it.
  package func stop() { search.stop() }

  /// Closes the card. A driver may take its time for it.
  package func end() {
    stop()
    (capture, aligner) = (nil, nil)
    _ = search.take()
    shared.withLock { $0.isPresent = false }
  }

  /// Waits for samples and appends them, or silence; see ``SoundSource``.
  package func fill(_ timeline: SoundTimeline, patience: Duration) -> Bool {
    guard !search.isStopped else { return false }
    if capture == nil { takeFound(onto: timeline) }
    guard let capture, let aligner else {
      search.begin(isAfterLoss: shared.withLock { $0.losses > 0 })
      search.sleep(until: .now() + min(patience, Duration(nanoseconds: 20_000_000)))
      timeline.appendSilence(until: .now())
      publish(timeline)
      return true
    }
    let block = UnsafeMutableBufferPointer(rebasing: memory[..<(aligner.blockLimit * capture.pcm.format.channels)])
    do throws(SoundError) {
      switch try capture.pcm.read(into: block, patience: patience) {
      case .samples(let count, let first):
        (quietSince, overrunsInARow) = (nil, 0)
        if !hasDelivered { tellFound(capture) }
        aligner.take(UnsafeBufferPointer(rebasing: block[..<(count * capture.pcm.format.channels)]), first: first)
      case .nothing: try noteQuiet(capture)
      case .overrun:
        overrunsInARow += 1
        shared.withLock { $0.overruns += 1 }
        guard overrunsInARow <= Self.overrunLimit else {
          throw SoundError.overruns(capture.pcm.device.text, count: overrunsInARow)
        }
        aligner.noteLoss()
      }
    } catch {
      lose(error)
    }
    let now = Instant.now()
    let lagLimit = Self.lagLimit(period: capture.pcm.period)
    if now - timeline.end > lagLimit {
      // The line goes on; what comes late is left out.
      timeline.appendSilence(until: now - lagLimit)
      self.aligner?.noteLoss()
    }
    publish(timeline)
    return true
  }

  private func noteQuiet(_ card: MicrophoneSearch.OpenedCard) throws(SoundError) {
    let now = Instant.now()
    let since = quietSince ?? now
    quietSince = since
    guard now - since < Self.stallLimit else {
      throw .stalled(card.pcm.device.text, milliseconds: Int((now - since).milliseconds))
    }
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
    (capture, aligner, quietSince, overrunsInARow) = (nil, nil, nil, 0)
    guard hasDelivered else {
      // A card that opens and delivers nothing, again and again, is told once.
      if toldFailure?.isLike(error) != true { events.note(.lost(error)) }
      toldFailure = error
      return
    }
    hasDelivered = false
    shared.withLock {
      $0.isPresent = false
      $0.losses += 1
    }
    events.note(.lost(error))
  }

  private func takeFound(onto timeline: SoundTimeline) {
    guard let found = search.take() else { return }
    guard let made = try? SoundAligner(from: found.pcm.format, onto: timeline) else { return }
    (capture, aligner) = (found, made)
  }

  /// Notes the first samples of a card. Before these, an open card may be one that delivers none.
  private func tellFound(_ card: MicrophoneSearch.OpenedCard) {
    (hasDelivered, toldFailure) = (true, nil)
    shared.withLock { ($0.isPresent, $0.name) = (true, card.name) }
    events.note(.found(name: card.name, format: card.pcm.format))
  }
}
