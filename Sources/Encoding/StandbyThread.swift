import Media
import Platform

/// The thread that prepares the standby slots and ends slots that are no longer used.
///
/// The thread holds at most one pair of slots. A caller that needs slots in preparation waits for them. Unused slots
/// are ended before the next are made.
final class StandbyThread: @unchecked Sendable {
  // Sendable: mutable state is used under the monitor only. The slots belong to the thread while it works, and to the
  // caller that took them afterwards.

  private enum State {
    case empty
    /// The thread has worked since this time.
    case preparing(since: Instant)
    case ready(EncoderSlots)
    case failed
    case ended
  }

  /// The slots to make, instead of former slots if those cannot be prepared again. Without a configuration the thread
  /// only ends retired slots.
  private struct Order {
    var configuration: EncoderConfiguration?
    var former: EncoderSlots?
  }

  /// The error that callers get if there are no slots.
  private var failure: EncoderError?
  private var state = State.empty
  private var order: Order?
  /// The slots to end before any other work.
  private var retired: [EncoderSlots] = []
  private var isStopping = false
  private var memory: Int?
  private var thread: NamedThread?
  private let monitor = Monitor()
  private let makers: EncoderMakers

  /// The maximum time that `stop` waits for the thread's current work.
  private static let patience = Duration.seconds(2)

  /// Starts the thread, which sleeps.
  ///
  /// - Throws: ``SystemFailure`` if the system has no thread left.
  init(_ makers: EncoderMakers) throws(SystemFailure) {
    self.makers = makers
    let thread = try NamedThread("nj-standby") { [self] in run() }
    self.thread = consume thread
  }

  // MARK: the caller's side

  /// The growth of the process's resident memory, in bytes, during the creation of the last slots; nil before that.
  var residentGrowth: Int? { monitor.locked { memory } }

  /// `true` if slots can be taken without a wait.
  var isReady: Bool { monitor.locked { ready != nil } }

  /// Returns `true` if the ready slots match `configuration`.
  ///
  /// - Parameter needsHardware: `true` if slots whose hardware could not be opened do not count.
  func isReady(for configuration: EncoderConfiguration, needsHardware: Bool = false) -> Bool {
    monitor.locked {
      guard let ready, !needsHardware || ready.live == .hardware else { return false }
      return ready.configuration.isMade(for: configuration)
    }
  }

  /// `true` if the last slots could not be made.
  var hasFailed: Bool {
    monitor.locked {
      if case .failed = state { true } else { false }
    }
  }

  /// The ready slots. Read under the monitor.
  private var ready: EncoderSlots? {
    if case .ready(let slots) = state { slots } else { nil }
  }

  /// Starts `task`, with the slots that were live before.
  func perform(_ task: LineupState.Standby, _ former: EncoderSlots? = nil) {
    monitor.locked {
      switch task {
      case .keep:
        if let former { state = .ready(former) }
        return
      case .adopt(let configuration):
        if let ready, ready.configuration.size == configuration.size, ready.configuration.color == configuration.color,
          ready.change(
            effort: configuration.effort, vaapiQuality: configuration.vaapiQuality, threads: configuration.threads)
        {
          return
        }
      case .warm, .make, .end: break
      }
      if let ready { retired.append(ready) }
      switch task {
      case .warm(let configuration): return begin(Order(configuration: configuration, former: former))
      case .make(let configuration), .adopt(let configuration): begin(Order(configuration: configuration))
      case .keep, .end: begin(Order())
      }
      if let former { retired.append(former) }
    }
  }

  /// Takes the slots of `configuration`. Waits for them if they are in preparation; requests them and waits if there
  /// are none or others.
  ///
  /// - Parameter limit: The maximum time that the thread may work on the slots.
  /// - Throws: ``EncoderError`` if the slots cannot be made. ``EncoderError/hung(library:after:)`` if they are not
  ///   ready in time; the thread then continues to make them.
  func take(
    or configuration: EncoderConfiguration, within limit: Duration
  ) throws(EncoderError) -> EncoderSlots {
    try monitor.locked { () throws(EncoderError) -> EncoderSlots in
      var hasAsked = false
      while true {
        switch state {
        case .ready(let slots):
          guard slots.configuration.isMade(for: configuration) else {
            hasAsked = true
            retired.append(slots)
            begin(Order(configuration: configuration))
            continue
          }
          state = .empty
          return slots
        case .preparing(let since):
          let deadline = since + limit
          guard Instant.now() < deadline else {
            throw .hung(library: "the encoder for \(configuration.size)", after: limit)
          }
          _ = monitor.wait(until: deadline)
        case .failed where hasAsked: throw failure ?? .stopped
        case .empty, .failed:
          hasAsked = true
          begin(Order(configuration: configuration))
        case .ended: throw .stopped
        }
      }
    }
  }

  /// Ends the thread and the slots that it holds. Work that does not end within two seconds is abandoned.
  func stop() {
    let hasEnded = monitor.locked { () -> Bool in
      isStopping = true
      monitor.signal()
      let deadline = Instant.now() + Self.patience
      while true {
        if case .ended = state { return true }
        if !monitor.wait(until: deadline) { break }
      }
      if case .ended = state { return true }
      return false
    }
    guard let thread = thread.take() else { return }
    if hasEnded {
      _ = consume thread
    } else {
      thread.detach()
    }
  }

  /// Gives the thread a request. Called under the monitor.
  private func begin(_ next: Order) {
    if let former = order?.former { retired.append(former) }
    order = next
    state = next.configuration == nil ? .empty : .preparing(since: .now())
    monitor.signal()
  }

  // MARK: the thread's side

  private func run() {
    while let (order, retired) = nextOrder() {
      for slots in retired { slots.stop() }
      if let configuration = order.configuration { make(configuration, insteadOf: order.former) }
    }
    let rest = monitor.locked { () -> [EncoderSlots] in
      let rest = retired + [ready, order?.former].compactMap { $0 }
      (retired, order) = ([], nil)
      state = .empty
      return rest
    }
    for slots in rest { slots.stop() }
    monitor.locked {
      state = .ended
      monitor.signal()
    }
  }

  /// Returns the next request and the slots to end before it; nil at the end.
  private func nextOrder() -> (Order, [EncoderSlots])? {
    monitor.locked {
      while order == nil, !isStopping { monitor.wait() }
      guard !isStopping, let next = order else { return nil }
      defer { (order, retired) = (nil, []) }
      return (next, retired)
    }
  }

  /// Prepares `former`, or makes slots of `configuration`.
  private func make(_ configuration: EncoderConfiguration, insteadOf former: EncoderSlots?) {
    if let former {
      do throws(EncoderError) {
        try former.prepare()
        return publish(former)
      } catch {
        former.stop()
      }
    }
    let before = ResidentMemory.bytes
    do throws(EncoderError) {
      let slots = try EncoderSlots.open(configuration, makers, isStandby: true)
      do throws(EncoderError) {
        try slots.prepare()
      } catch {
        slots.stop()
        throw error
      }
      let growth = max(0, ResidentMemory.bytes - before)
      monitor.locked { memory = growth }
      publish(slots)
    } catch {
      let isNew = monitor.locked { failure == nil }
      // Reported once, until slots could be made again.
      if isNew { makers.events.add(.standbyFailed(size: configuration.size, reason: error)) }
      monitor.locked {
        failure = error
        // If other slots were requested meanwhile, callers wait for those.
        if order == nil { state = .failed }
        monitor.signal()
      }
    }
  }

  private func publish(_ slots: EncoderSlots) {
    monitor.locked {
      failure = nil
      if order == nil {
        state = .ready(slots)
      } else {
        // Other slots were requested meanwhile.
        retired.append(slots)
      }
      monitor.signal()
    }
  }
}
