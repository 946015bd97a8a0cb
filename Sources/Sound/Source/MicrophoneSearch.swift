import Platform
import Synchronization

/// The search for a microphone. Opening a card may take seconds, so a thread of its own does it. The thread owns the
/// search. No thread waits for it, because a driver may hang.
final class MicrophoneSearch: Sendable {
  private let choose: Microphone.Choice
  private let channels: Int
  private let stopped: Interrupt
  private let events: SoundEventLog
  private let state = Mutex(State())

  private struct State {
    var found: OpenedCard?
    var isRunning = false
    /// The choice whose device was opened last.
    var former: Microphone.Selection?
    /// The time of the next attempt: a card that opens and fails at once is not opened again at once.
    var nextAttempt = Instant.zero
  }

  /// An open card, which passes from the thread that searches to the one that reads.
  final class OpenedCard: @unchecked Sendable {
    // Sendable: one thread has it at a time; the mutex stands between them.
    let pcm: PCMCapture
    let name: String
    init(_ pcm: consuming PCMCapture, name: String) {
      self.pcm = pcm
      self.name = name
    }
  }

  /// The shortest time between two attempts to open the card.
  static let interval = Duration(nanoseconds: 1_000_000_000)

  /// Creates a search that does not run yet.
  ///
  /// - Parameter choose: see ``Microphone/init(channels:choosing:)``.
  /// - Throws: ``SystemFailure`` where the process has no descriptor left.
  init(
    channels: Int, events: SoundEventLog, choosing choose: @escaping Microphone.Choice
  ) throws(SystemFailure) {
    (self.channels, self.events, self.choose) = (channels, events, choose)
    stopped = try Interrupt()
  }

  /// `true` once ``stop()`` was called.
  var isStopped: Bool { stopped.hasFired() }

  /// Sleeps until `time`, or until ``stop()``.
  func sleep(until time: Instant) { _ = stopped.wait(until: time) }

  /// Ends the search for good. A card that is being opened meanwhile is closed; one that was found is left to
  /// ``take()``, because a driver may take its time to close it. Any thread may call it.
  func stop() { stopped.fire() }

  /// Returns the card that was found, once.
  func take() -> OpenedCard? { state.withLock { $0.found.take() } }

  /// Starts the thread, unless it runs or has found a card.
  ///
  /// - Parameter isAfterLoss: `true` if the log already has the reason of the loss; the first failure is then not
  ///   logged.
  func begin(isAfterLoss: Bool) {
    let begins = state.withLock { state in
      guard !isStopped, !state.isRunning, state.found == nil else { return false }
      state.isRunning = true
      return true
    }
    guard begins else { return }
    do throws(SystemFailure) {
      try NamedThread("nj-mic") { [self] in run(isAfterLoss: isAfterLoss) }.detach()
    } catch {
      // The next call tries again.
      state.withLock { $0.isRunning = false }
    }
  }

  private func run(isAfterLoss: Bool) {
    var told: String?
    while true {
      sleep(until: state.withLock { $0.nextAttempt })
      guard !isStopped else { break }
      state.withLock { $0.nextAttempt = .now() + Self.interval }
      do throws(SoundError) {
        if let selection = choose(state.withLock { $0.former }) {
          let (device, name) = try Self.device(of: selection)
          return deliver(OpenedCard(try PCMCapture(device, channels: channels), name: name), selection)
        }
      } catch {
        // Each reason is told once.
        if told != error.description, !isAfterLoss || told != nil { events.note(.lost(error)) }
        told = error.description
      }
    }
    state.withLock { $0.isRunning = false }
  }

  private func deliver(_ card: OpenedCard, _ selection: Microphone.Selection) {
    state.withLock { state in
      (state.isRunning, state.former) = (false, selection)
      // After `stop()` the card is closed instead.
      if !isStopped { state.found = card }
    }
  }

  /// Returns the device of a selection now, and its name for people.
  private static func device(of selection: Microphone.Selection) throws(SoundError) -> (SoundDeviceName, String) {
    switch selection {
    case .device(let name): return (name, name.text)
    case .card(let card):
      guard let same = SoundCard.all().same(as: card) else { throw .noDevice(card.stableName) }
      return (same.device, "\(same.name) (\(same.stableName))")
    }
  }
}
