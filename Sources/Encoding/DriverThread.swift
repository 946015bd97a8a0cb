import Media
import Threading

/// An encoder on hardware, on a thread of its own: every call that a driver could hang in is made there, and whoever
/// waits for one waits no longer than a deadline.
///
/// The frame stays with the caller, which loads it into memory that the thread has mapped. The access unit is lent
/// to the caller while the thread stands still:
///
/// ```
/// caller   load ─► encode ┄┄┄┄┄┄┄┄┄┄┄┄► deliver ─► return
/// thread                └► encodeLoaded ─► (held)   └► encodeLoaded returns ─► mapInput ─► ready
/// ```
///
/// A driver that misses a deadline is abandoned: this thread never speaks to it again, and delivers nothing. Should it ever
/// come back, its encoder is stopped and the thread ends; another thread may open the driver anew. After an error a new
/// encoder is opened on the same thread, which is why there is never more than one.
final class DriverThread: @unchecked Sendable {
  // Sendable: what is mutable is touched under the monitor alone. The encoder belongs to the thread, and in state
  // `ready`, in which the thread sleeps, to the caller.
  //
  // `any`, and not generic: three calls a frame through a witness table are nothing beside two wake-ups, and the
  // selector learns only at run time what hardware there is.

  /// What the hardware is, for messages.
  let library: String
  private let makeEncoder: @Sendable () throws(EncoderError) -> any StagedVideoEncoder
  private let health: DriverHealth
  private let onRetryFailed: @Sendable (EncoderError, MediaTime) -> Void
  private let monitor = Monitor()
  private var thread: NamedThread?
  private var state = State.opening
  private var order: Order?
  private var loan: Loan?
  private var encoder: (any StagedVideoEncoder)?
  /// What became of the encoder that the caller used; the caller takes it away.
  private var failure: EncoderError?
  /// How long the thread waits before it opens another encoder, after the last failure.
  private var retry = MediaTime.zero
  private var isStopping = false
  private var isAbandoned = false
  /// The number that ``DriverHealth`` has given to that.
  private var abandonment: Int?
  /// The hangs of the driver when the present encoder was opened.
  private var opening = 0
  /// When the driver did what it was asked to do last.
  private var lastAnswer = MediaTime.zero
  private var wish: Wish?
  private var backOff = RetryBackOff()
  /// Whether an encoder was opened, or is to be although the first attempt failed.
  private var wasOpened = false
  private let outlivesFirstFailure: Bool
  /// What the present encoder is, told by it before the caller may use it.
  private var description: Description?
  /// Since when the thread has been in the driver's hands to end a failed encoder or to open the next one.
  private var reopeningSince: MediaTime?
  /// Since when the present encoder has delivered pictures.
  private var workingSince: MediaTime?
  private var nextAttempt = MediaTime.zero
  private var counters = EncoderCounters()
  private var formerCounters = EncoderCounters()

  /// How long `stop` waits for a driver that is at work.
  private static let patience = MediaTime(nanoseconds: 2_000_000_000)

  /// Starts the thread, which begins to open an encoder.
  ///
  /// - Parameters:
  ///   - library: what the hardware is, for messages.
  ///   - health: what all encoders on the same driver know of it.
  ///   - outlivesFirstFailure: whether it is tried again where the first attempt fails by what may pass.
  ///   - isReplacement: whether it follows a thread that was abandoned, so that nobody waits for the first attempt.
  ///   - onRetryFailed: told on the thread of a later attempt that failed, and how long it is to the next.
  ///   - makeEncoder: opens an encoder; called on the thread.
  /// - Throws: ``SystemFailure`` where the system has no thread left.
  init(
    library: String, health: DriverHealth, outlivesFirstFailure: Bool = false, isReplacement: Bool = false,
    onRetryFailed: @escaping @Sendable (EncoderError, MediaTime) -> Void,
    makeEncoder: @escaping @Sendable () throws(EncoderError) -> any StagedVideoEncoder
  ) throws(SystemFailure) {
    self.library = library
    self.health = health
    self.outlivesFirstFailure = outlivesFirstFailure
    self.onRetryFailed = onRetryFailed
    self.makeEncoder = makeEncoder
    wasOpened = isReplacement
    let thread = try NamedThread("nj-driver") { [self] in run() }
    self.thread = consume thread
  }

  // MARK: the caller's side

  /// Waits for the first encoder; what it is.
  ///
  /// - Throws: ``EncoderError``: why there is none. The thread is at its end then, abandoned, or going to try again.
  func waitUntilOpen(within limit: MediaTime) throws(EncoderError) -> Description {
    _ = try waitUntilReady(deadline: .now() + limit, limit: limit)
    guard let description = ready else { throw .stopped }
    return description
  }

  /// What the encoder is that is ready for a frame; nil where none is.
  var ready: Description? { monitor.locked { state == .ready && !isAbandoned ? description : nil } }

  /// Whether there will be no encoder any more: another thread is needed.
  var isOver: Bool { monitor.locked { isAbandoned || state == .ended } }

  /// Whether the encoder is ready, and a thread hangs in the driver that got there since it was opened.
  var isStale: Bool {
    guard health.hangs > 0, let opening = monitor.locked({ state == .ready ? opening : nil }) else { return false }
    return health.isStale(since: opening)
  }

  /// Gives a driver up that has been busy with the end of a failed encoder, or the opening of another, for longer than
  /// `limit`; whether it was given up now.
  func abandonReopening(after limit: MediaTime) -> Bool {
    monitor.locked {
      guard !isAbandoned, let reopeningSince, MediaTime.now() - reopeningSince > limit else { return false }
      abandon(.hung(library: library, after: limit))
      return true
    }
  }

  /// Leaves the driver alone, under the monitor.
  private func abandon(_ reason: EncoderError) {
    guard !isAbandoned else { return }
    isAbandoned = true
    let now = MediaTime.now()
    abandonment = health.abandon(reason, after: workingSince.map { now - $0 } ?? .zero)
    monitor.signal()
  }

  /// Encodes `frame` and lends the access unit to `deliver`, on the caller's thread.
  ///
  /// - Throws: ``EncoderError``; then `deliver` was not called. With ``EncoderError/hung(library:after:)`` the driver was
  ///   abandoned; with ``EncoderError/notTurned(_:reason:)`` the encoder goes on with another frame; with any other the
  ///   thread opens another encoder after ``retryDelay``.
  func encode(
    _ frame: borrowing Frame, keyFrame: Bool, within patience: DriverPatience, deliver: (borrowing AccessUnit) -> Void
  ) throws(EncoderError) {
    let now = MediaTime.now()
    let limit = patience.limit(after: now - monitor.locked { lastAnswer })
    let deadline = now + limit
    let encoder = try waitUntilReady(deadline: deadline, limit: limit)
    var loan: Loan?
    while loan == nil {
      do throws(EncoderError) {
        try encoder.load(frame)
      } catch {
        if case .notTurned = error {
          // Nothing was loaded, and the input is mapped still: the next frame may come.
          monitor.locked { state = .ready }
          throw error
        }
        submit(.fail(error))
        _ = try waitForLoan(deadline: deadline, limit: limit)
        throw error
      }
      submit(.encode(keyFrame: keyFrame))
      loan = try waitForLoan(deadline: deadline, limit: limit)
    }
    guard let loan else { throw .stopped }
    deliver(
      AccessUnit(
        nalUnits: loan.nalUnits, isKeyFrame: loan.isKeyFrame, timestamp: loan.timestamp, captured: loan.captured))
    monitor.locked {
      self.loan = nil
      state = .working
      monitor.signal()
    }
  }

  /// From the next frame on `bitrate` bits a second at `frameRate`, which are possible ones.
  func change(bitrate: Int, frameRate: FrameRate) {
    monitor.locked { wish = Wish(bitrate: bitrate, frameRate: frameRate) }
  }

  /// The wait between the last failure and the next attempt.
  var retryDelay: MediaTime { monitor.locked { retry } }

  /// What happened within, over all encoders that there have been.
  var totals: EncoderCounters { monitor.locked { formerCounters + counters } }

  /// Ends the encoder and the thread. A driver that does not come back within two seconds is left behind.
  func stop() {
    let hasEnded = monitor.locked { () -> Bool in
      isStopping = true
      monitor.signal()
      let deadline = MediaTime.now() + Self.patience
      while state != .ended, !isAbandoned {
        if !monitor.wait(until: deadline), state != .ended {
          abandon(.hung(library: library, after: Self.patience))
          return false
        }
      }
      return state == .ended
    }
    guard let thread = thread.take() else { return }
    if hasEnded {
      _ = consume thread
    } else {
      thread.detach()
    }
  }

  private func submit(_ order: Order) {
    monitor.locked {
      self.order = order
      state = .working
      monitor.signal()
    }
  }

  private func waitUntilReady(deadline: MediaTime, limit: MediaTime) throws(EncoderError) -> any StagedVideoEncoder {
    try monitor.locked { () throws(EncoderError) -> any StagedVideoEncoder in
      try wait(for: .ready, or: .ready, deadline: deadline, limit: limit)
      guard let encoder else { throw .stopped }
      return encoder
    }
  }

  /// The access unit; nil where the frame is to be loaded once more.
  private func waitForLoan(deadline: MediaTime, limit: MediaTime) throws(EncoderError) -> Loan? {
    try monitor.locked { () throws(EncoderError) -> Loan? in
      try wait(for: .lending, or: .refused, deadline: deadline, limit: limit)
      return loan
    }
  }

  /// Waits, under the monitor, for `wanted` or `other`, a failure or the deadline.
  private func wait(for wanted: State, or other: State, deadline: MediaTime, limit: MediaTime) throws(EncoderError) {
    var isLate = false
    while true {
      if isAbandoned { throw .stopped }
      if let error = failure {
        failure = nil
        throw error
      }
      if state == wanted || state == other { return }
      if state == .ended { throw .stopped }
      if isLate {
        abandon(.hung(library: library, after: limit))
        throw .hung(library: library, after: limit)
      }
      isLate = !monitor.wait(until: deadline)
    }
  }

  // MARK: the thread's side

  private func run() {
    while let encoder = open() {
      do throws(EncoderError) {
        try serve(encoder)
        end(encoder)
      } catch {
        noteFailure(error)
        // Only now: whoever waits goes on while a driver that has just failed takes its time.
        end(encoder)
      }
    }
    monitor.locked {
      if let abandonment { health.comeBack(abandonment) }
      state = .ended
      monitor.signal()
    }
  }

  private func end(_ encoder: any StagedVideoEncoder) {
    let state = monitor.locked { (opening: self.opening, own: self.abandonment) }
    health.end(encoder, since: state.opening, own: state.own)
  }

  /// The next encoder, warmed up and ready for a frame; nil where there is to be none.
  private func open() -> (any StagedVideoEncoder)? {
    while waitForTurn() {
      var opened: (any StagedVideoEncoder)?
      do throws(EncoderError) {
        let encoder = try makeEncoder()
        opened = encoder
        try encoder.prepare()
        try encoder.mapInput()
        if publish(encoder, Description(of: encoder)) { return encoder }
        end(encoder)
        return nil
      } catch {
        guard let retry = retryAfterFailedOpening() else {
          monitor.locked { wasOpened = outlivesFirstFailure && error.mayPass }
          noteFailure(error)
          if let opened { end(opened) }
          if outlivesFirstFailure && error.mayPass { continue } else { return nil }
        }
        if let opened { end(opened) }
        onRetryFailed(error, retry)
      }
    }
    return nil
  }

  /// Sets the time of the next attempt; nil where the first one failed, after which there is none.
  private func retryAfterFailedOpening() -> MediaTime? {
    monitor.locked {
      guard wasOpened else { return nil }
      let retry = backOff.failed(after: .zero)
      nextAttempt = .now() + retry
      return retry
    }
  }

  /// Waits out the back-off; false where no encoder is wanted any more.
  private func waitForTurn() -> Bool {
    monitor.locked {
      reopeningSince = nil
      while !isStopping, !isAbandoned, MediaTime.now() < nextAttempt { _ = monitor.wait(until: nextAttempt) }
      guard !isStopping, !isAbandoned, health.reason == nil else { return false }
      if wasOpened { reopeningSince = .now() }
      opening = health.hangs
      return true
    }
  }

  /// Makes a new encoder known to the caller; false where none is wanted any more.
  private func publish(_ encoder: any StagedVideoEncoder, _ description: Description) -> Bool {
    monitor.locked {
      guard !isStopping, !isAbandoned else { return false }
      self.encoder = encoder
      self.description = description
      reopeningSince = nil
      wasOpened = true
      lastAnswer = .now()
      state = .ready
      monitor.signal()
      return true
    }
  }

  /// Makes a failure known to the caller, and sets the time of the next attempt.
  private func noteFailure(_ error: EncoderError) {
    monitor.locked {
      let now = MediaTime.now()
      retry = backOff.failed(after: workingSince.map { now - $0 } ?? .zero)
      nextAttempt = now + retry
      workingSince = nil
      if wasOpened { reopeningSince = now }
      encoder = nil
      order = nil
      formerCounters = formerCounters + counters
      counters = EncoderCounters()
      failure = error
      state = .opening
      monitor.signal()
    }
  }

  /// Carries out orders until there is an end.
  private func serve(_ encoder: any StagedVideoEncoder) throws(EncoderError) {
    var current = (bitrate: encoder.configuration.bitrate, frameRate: encoder.configuration.frameRate)
    while let (order, wish) = nextOrder() {
      if let wish, wish.bitrate != current.bitrate || wish.frameRate != current.frameRate {
        try encoder.change(bitrate: wish.bitrate, frameRate: wish.frameRate)
        current = (wish.bitrate, wish.frameRate)
      }
      switch order {
      case .fail(let error): throw error
      case .encode(let keyFrame):
        guard try encoder.encodeOne(keyFrame: keyFrame, library: library, deliver: { lend($0) }) else {
          monitor.locked {
            if !isAbandoned { state = .refused }
            monitor.signal()
          }
          continue
        }
      }
      let figures = encoder.counters
      let isWanted = monitor.locked { () -> Bool in
        counters = figures
        if workingSince == nil { workingSince = .now() }
        return !isStopping && !isAbandoned
      }
      guard isWanted else { return }
      try encoder.mapInput()
      monitor.locked {
        // A driver that comes back late must not look as if it could be used.
        if !isAbandoned { state = .ready }
        lastAnswer = .now()
        monitor.signal()
      }
    }
  }

  /// The next order, and what is wanted of the encoder; nil at the end.
  private func nextOrder() -> (Order, Wish?)? {
    monitor.locked {
      while order == nil, !isStopping, !isAbandoned { monitor.wait() }
      guard !isStopping, !isAbandoned, let next = order else { return nil }
      order = nil
      return (next, wish)
    }
  }

  /// Lends `unit` to the caller and waits until it gives it back. Nothing where nobody waits for it any more.
  private func lend(_ unit: borrowing AccessUnit) {
    let lent = Loan(
      nalUnits: unit.nalUnits, isKeyFrame: unit.isKeyFrame, timestamp: unit.timestamp, captured: unit.captured)
    monitor.locked {
      guard !isAbandoned else { return }
      loan = lent
      state = .lending
      monitor.signal()
      while state == .lending { monitor.wait() }
    }
  }
}
