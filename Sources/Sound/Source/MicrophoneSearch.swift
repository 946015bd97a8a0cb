package import Platform
import Synchronization

/// The search for a microphone. Opening a card may take seconds, so a thread of its own does it. The thread owns the
/// search. No thread waits for it, because a driver may hang.
package final class MicrophoneSearch: Sendable {
  /// Opens the device of a selection.
  package typealias Opening = @Sendable (Microphone.Selection) throws(SoundError) -> any CardInput

  private let choose: Microphone.Choice
  private let open: Opening
  private let stopped: Interrupt
  private let events: EventQueue<SoundEvent>
  private let state = Mutex(State())

  private struct State {
    var found: (any CardInput)?
    var isRunning = false
    /// The choice whose device was opened last.
    var former: Microphone.Selection?
    /// `true` if the last attempt found no device.
    var findsNothing = false
    /// The time of the next attempt: a card that opens and fails at once is not opened again at once.
    var nextAttempt = Instant.zero
  }

  /// The shortest time between two attempts to open the card.
  package static let interval = Duration(nanoseconds: 1_000_000_000)

  /// Creates a search that does not run yet.
  ///
  /// - Parameter choose: see ``Microphone/init(channels:choosing:)``.
  /// - Throws: ``SystemFailure`` where the process has no descriptor left.
  package init(
    events: EventQueue<SoundEvent>, choosing choose: @escaping Microphone.Choice, opening open: @escaping Opening
  ) throws(SystemFailure) {
    (self.events, self.choose, self.open) = (events, choose, open)
    stopped = try Interrupt()
  }

  /// `true` once ``stop()`` was called.
  var isStopped: Bool { stopped.hasFired() }

  /// Sleeps until `time`, or until ``stop()``.
  package func sleep(until time: Instant) { _ = stopped.wait(until: time) }

  /// Ends the search for good. A card that is being opened meanwhile is closed; one that was found is left to
  /// ``take()``, because a driver may take its time to close it. Any thread may call it.
  package func stop() { stopped.fire() }

  /// `true` if no device was there at the last attempt.
  var findsNothing: Bool { state.withLock { $0.findsNothing } }

  /// Returns the card that was found, once.
  package func take() -> (any CardInput)? { state.withLock { $0.found.take() } }

  /// Starts the thread, unless it runs or has found a card.
  ///
  /// - Parameter isAfterLoss: `true` if the log already has the reason of the loss; the first failure is then not
  ///   logged.
  package func begin(isAfterLoss: Bool) {
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
          return deliver(try open(selection), selection)
        }
        state.withLock { $0.findsNothing = true }
      } catch {
        state.withLock { $0.findsNothing = error.isAbsence }
        // Each reason is told once.
        if told != error.description, !isAfterLoss || told != nil { events.add(.lost(error)) }
        told = error.description
      }
    }
    state.withLock { $0.isRunning = false }
  }

  private func deliver(_ card: any CardInput, _ selection: Microphone.Selection) {
    let isWanted = state.withLock { state in
      (state.isRunning, state.findsNothing, state.former) = (false, false, selection)
      if !isStopped { state.found = card }
      return !isStopped
    }
    if !isWanted { card.close() }
  }

  /// Opens the device of `selection` by alsa-lib.
  package static func open(_ selection: Microphone.Selection, channels: Int) throws(SoundError) -> any CardInput {
    let (device, name) = try device(of: selection)
    return OpenedCard(try PCMCapture(device, channels: channels), name: name)
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
