import Media
import Platform

/// A hardware encoder on its own thread. This thread makes every call that may hang in the driver, so each wait for
/// such a call has a limit.
///
/// The caller loads the frame into memory that the thread has mapped. The access unit is lent to the caller while the
/// thread is blocked:
///
/// ```
/// caller   load ─► encode ┄┄┄┄┄┄┄┄┄┄┄┄► deliver ─► return
/// thread                └► encodeLoaded ─► (held)   └► encodeLoaded returns ─► mapInput ─► ready
/// ```
///
/// A driver that misses a deadline is abandoned: this thread never calls it again and delivers nothing. If the call
/// returns later, the encoder is stopped and the thread ends; another thread may open the driver again. After an error
/// the same thread opens a new encoder, so there is never more than one.
package final class DriverThread: @unchecked Sendable {
  // Sendable: mutable state is used under the monitor only. The encoder belongs to the thread, and in state `ready`, in
  // which the thread sleeps, to the caller.
  //
  // `any` instead of a generic: three calls per frame through a witness table cost nothing beside two wake-ups, and the
  // selector learns only at run time which hardware exists.

  let makers: EncoderMakers
  let configuration: EncoderConfiguration
  let monitor = Monitor()
  private var thread: NamedThread?
  var state = State.opening
  private var order: Order?
  private var loan: Loan?
  var encoder: (any StagedVideoEncoder)?
  /// The failure of the encoder that the caller used; the caller reads and clears it.
  private var failure: EncoderError?
  /// The wait before the thread opens another encoder after the last failure.
  private var retry = Duration.zero
  var isStopping = false
  var isAbandoned = false
  /// The number that ``DriverHealth`` gave to the hang.
  private var abandonment: Int?
  /// The driver's number of hangs when the present encoder was opened.
  var opening = 0
  /// The time of the driver's last completed work.
  var lastAnswer = Instant.zero
  private var requestedRates: Rates?
  /// The requested quality level; nil for the driver's own choice.
  var quality: Int?
  var backOff = RetryBackOff()
  /// `true` if an encoder was opened, or if the thread tries again after a failed first attempt.
  var wasOpened = false
  let outlivesFirstFailure: Bool
  /// The properties of the present encoder, set before the caller may use the encoder.
  var description: Description?
  /// The time since which the thread ends a failed encoder or opens the next one.
  var reopeningSince: Instant?
  /// The time since which the present encoder has delivered pictures.
  private var workingSince: Instant?
  var nextAttempt = Instant.zero

  /// The maximum time that `stop` waits for a busy driver.
  private static let patience = Duration.seconds(2)
  /// The bounds of a single wait for the driver's answer.
  private static let (shortestWait, longestWait) = (Duration.milliseconds(1), Duration.milliseconds(100))

  /// Starts the thread, which opens an encoder.
  ///
  /// - Parameters:
  ///   - configuration: The encoder's configuration.
  ///   - makers: Opens the hardware; called on the thread.
  ///   - outlivesFirstFailure: `true` tries again if the first attempt fails for a reason that may pass.
  ///   - isReplacement: `true` if the thread replaces an abandoned one, so that no caller waits for the first attempt.
  /// - Throws: ``EncoderError/unavailable(_:)`` if the system has no thread left.
  init(
    _ configuration: EncoderConfiguration, _ makers: EncoderMakers, outlivesFirstFailure: Bool = false,
    isReplacement: Bool = false
  ) throws(EncoderError) {
    self.configuration = configuration
    self.makers = makers
    self.outlivesFirstFailure = outlivesFirstFailure
    wasOpened = isReplacement
    quality = configuration.vaapiQuality
    do throws(SystemFailure) {
      let thread = try NamedThread("nj-driver") { [self] in run() }
      self.thread = consume thread
    } catch {
      throw .unavailable("no thread for \(library): \(error)")
    }
  }

  private var library: String { makers.library }
  var health: DriverHealth { makers.health }

  // MARK: the caller's side

  /// Waits for the first encoder and returns its properties.
  ///
  /// - Throws: ``EncoderError`` with the reason if there is no encoder. The thread has then ended, was abandoned, or
  ///   will try again.
  func waitUntilOpen(within limit: Duration) throws(EncoderError) -> Description {
    var rest = limit
    _ = try waitUntilReady(rest: &rest, limit: limit)
    // The hang of another encoder ends the thread before it calls the driver.
    guard let description = ready else { throw health.reason ?? .stopped }
    return description
  }

  /// The properties of the encoder if it is ready for a frame; nil otherwise.
  package var ready: Description? { monitor.locked { state == .ready && !isAbandoned ? description : nil } }

  /// `true` if no encoder will become ready on this thread: another thread is needed.
  var isOver: Bool { monitor.locked { isAbandoned || state == .ended } }

  /// `true` if the encoder is ready, but a thread has hung in the driver since the encoder was opened.
  var isStale: Bool {
    guard health.hangs > 0, let opening = monitor.locked({ state == .ready ? opening : nil }) else { return false }
    return health.isStale(since: opening)
  }

  /// Abandons a driver that has taken longer than `limit` to end a failed encoder or to open another. Returns `true` if
  /// this call abandoned it.
  func abandonReopening(after limit: Duration) -> Bool {
    monitor.locked {
      guard !isAbandoned, let reopeningSince, Instant.now() - reopeningSince > limit else { return false }
      abandon(.hung(library: library, after: limit))
      return true
    }
  }

  /// Abandons the driver. Called under the monitor.
  private func abandon(_ reason: EncoderError) {
    guard !isAbandoned else { return }
    isAbandoned = true
    let now = Instant.now()
    abandonment = health.abandon(reason, after: workingSince.map { now - $0 } ?? .zero)
    monitor.signal()
  }

  /// Encodes `frame` and lends the access unit to `deliver`, on the caller's thread.
  ///
  /// - Throws: ``EncoderError``; `deliver` was then not called. With ``EncoderError/hung(library:after:)`` the driver
  ///   was abandoned. With ``EncoderError/notTurned(_:reason:)`` the encoder continues with another frame. With any
  ///   other error the thread opens another encoder after ``retryDelay``.
  func encode(
    _ frame: borrowing Frame, keyFrame: Bool, within patience: DriverPatience, deliver: (borrowing AccessUnit) -> Void
  ) throws(EncoderError) {
    let now = Instant.now()
    let limit = patience.limit(after: now - monitor.locked { lastAnswer })
    var rest = limit
    let encoder = try waitUntilReady(rest: &rest, limit: limit)
    var loan: Loan?
    while loan == nil {
      do throws(EncoderError) {
        try encoder.load(frame)
      } catch {
        if case .notTurned = error {
          // No frame was loaded and the input is still mapped, so the next frame may come.
          monitor.locked { state = .ready }
          throw error
        }
        submit(.fail(error))
        _ = try waitForLoan(rest: &rest, limit: limit)
        throw error
      }
      submit(.encode(keyFrame: keyFrame))
      loan = try waitForLoan(rest: &rest, limit: limit)
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

  /// Sets the bitrate, in bits per second, and the frame rate from the next frame on. Both must be valid.
  func change(bitrate: Int, frameRate: FrameRate) {
    monitor.locked { requestedRates = Rates(bitrate: bitrate, frameRate: frameRate) }
  }

  /// Requests the quality level of the hardware, this and each that is opened later; nil for the driver's own choice.
  func change(vaapiQuality level: Int?) {
    monitor.locked { quality = level }
  }

  /// The wait between the last failure and the next attempt.
  var retryDelay: Duration { monitor.locked { retry } }

  /// Ends the encoder and the thread. A driver that does not return within two seconds is abandoned.
  func stop() {
    let hasEnded = monitor.locked { () -> Bool in
      isStopping = true
      monitor.signal()
      let deadline = Instant.now() + Self.patience
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

  private func waitUntilReady(rest: inout Duration, limit: Duration) throws(EncoderError) -> any StagedVideoEncoder {
    try monitor.locked { () throws(EncoderError) -> any StagedVideoEncoder in
      try wait(for: .ready, or: .ready, rest: &rest, limit: limit)
      guard let encoder else { throw .stopped }
      return encoder
    }
  }

  /// Returns the access unit; nil if the frame must be loaded again.
  private func waitForLoan(rest: inout Duration, limit: Duration) throws(EncoderError) -> Loan? {
    try monitor.locked { () throws(EncoderError) -> Loan? in
      try wait(for: .lending, or: .refused, rest: &rest, limit: limit)
      return loan
    }
  }

  /// Waits for `wanted`, `other` or a failure, until no `rest` of `limit` is left. Called under the monitor.
  ///
  /// Only waiting counts, and of each wait no more than was wanted: a process that was stopped, or had no processor,
  /// held the driver's thread up as well.
  private func wait(for wanted: State, or other: State, rest: inout Duration, limit: Duration) throws(EncoderError) {
    // Several waits, each of which sees a driver that has answered meanwhile.
    let longest = max(min(Duration(nanoseconds: limit.nanoseconds / 4), Self.longestWait), Self.shortestWait)
    while true {
      if isAbandoned { throw .stopped }
      if let error = failure {
        failure = nil
        throw error
      }
      if state == wanted || state == other { return }
      if state == .ended { throw .stopped }
      if rest <= .zero {
        abandon(.hung(library: library, after: limit))
        throw .hung(library: library, after: limit)
      }
      let begin = Instant.now()
      _ = monitor.wait(until: begin + longest)
      rest = rest - min(.now() - begin, longest)
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
        // After the failure is published: the caller continues while a driver that has just failed takes its time.
        end(encoder)
      }
    }
    monitor.locked {
      if let abandonment { health.comeBack(abandonment) }
      state = .ended
      monitor.signal()
    }
  }

  func end(_ encoder: any StagedVideoEncoder) {
    let state = monitor.locked { (opening: self.opening, own: self.abandonment) }
    health.end(encoder, since: state.opening, own: state.own)
  }

  /// Publishes a failure to the caller and sets the time of the next attempt.
  func noteFailure(_ error: EncoderError) {
    monitor.locked {
      let now = Instant.now()
      retry = backOff.failed(after: workingSince.map { now - $0 } ?? .zero)
      nextAttempt = now + retry
      workingSince = nil
      if wasOpened { reopeningSince = now }
      encoder = nil
      order = nil
      failure = error
      state = .opening
      monitor.signal()
    }
  }

  /// Handles requests until the thread must end.
  private func serve(_ encoder: any StagedVideoEncoder) throws(EncoderError) {
    var current = (bitrate: encoder.configuration.bitrate, frameRate: encoder.configuration.frameRate)
    var level = encoder.configuration.vaapiQuality
    var counted = encoder.counters
    while let (order, requestedRates, quality) = nextOrder() {
      if let requestedRates, requestedRates.bitrate != current.bitrate || requestedRates.frameRate != current.frameRate
      {
        try encoder.change(bitrate: requestedRates.bitrate, frameRate: requestedRates.frameRate)
        current = (requestedRates.bitrate, requestedRates.frameRate)
      }
      if quality != level {
        encoder.change(vaapiQuality: quality)
        level = quality
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
      let counters = encoder.counters
      makers.ledger.add(counters, since: counted)
      makers.levels.note(encoder.qualityLevels)
      counted = counters
      let isWanted = monitor.locked { () -> Bool in
        if workingSince == nil { workingSince = .now() }
        return !isStopping && !isAbandoned
      }
      guard isWanted else { return }
      try encoder.mapInput()
      monitor.locked {
        // An abandoned driver that returns late must not appear ready.
        if !isAbandoned { state = .ready }
        lastAnswer = .now()
        monitor.signal()
      }
    }
  }

  /// Returns the next request, the requested rates and the requested quality level; nil at the end.
  private func nextOrder() -> (Order, Rates?, Int?)? {
    monitor.locked {
      while order == nil, !isStopping, !isAbandoned { monitor.wait() }
      guard !isStopping, !isAbandoned, let next = order else { return nil }
      order = nil
      return (next, requestedRates, quality)
    }
  }

  /// Lends `unit` to the caller and waits until the caller returns it. Does nothing if no caller waits.
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
