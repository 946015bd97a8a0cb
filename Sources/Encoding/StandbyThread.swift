import Media
import Threading

/// Readies the encoder of the other orientation, on a thread of its own, and ends the ones that are not used any more.
///
/// There is never more than one encoder here: who wants one while it is being made waits for that one, and what is to
/// be ended is ended before the next is made.
final class StandbyThread: @unchecked Sendable {
  // Sendable: what is mutable is touched under the monitor alone. The encoder belongs to the thread while it works, and
  // to whoever took it afterwards.

  private enum State {
    case empty
    /// The thread is at work since then.
    case preparing(since: MediaTime)
    /// It was there before, or it was made anew.
    case ready(any VideoEncoder, isFormer: Bool)
    case failed
    case ended
  }

  private enum Order {
    case make(EncoderConfiguration)
    /// Warms up one that was flushed; where that fails, makes another.
    case warm(any VideoEncoder, EncoderConfiguration)
    case end
  }

  /// What it answers where there is no encoder.
  private var failure: EncoderError?
  private var state = State.empty
  private var order: Order?
  /// What is to be ended before anything else is done.
  private var retired: [any VideoEncoder] = []
  private var isStopping = false
  private var memory: Int?
  private var thread: NamedThread?
  private let monitor = Monitor()
  private let makeEncoder: OrientedEncoder.MakeEncoder
  private let onFailed: @Sendable (PictureSize, EncoderError) -> Void

  /// How long `stop` waits for what the thread is at.
  private static let patience = MediaTime(nanoseconds: 2_000_000_000)

  /// Starts the thread, which sleeps.
  ///
  /// - Parameters:
  ///   - makeEncoder: opens an encoder; called on the thread.
  ///   - onFailed: told on the thread where none can be had, once until one could be.
  /// - Throws: ``SystemFailure`` where the system has no thread left.
  init(
    makeEncoder: @escaping OrientedEncoder.MakeEncoder,
    onFailed: @escaping @Sendable (PictureSize, EncoderError) -> Void
  ) throws(SystemFailure) {
    self.makeEncoder = makeEncoder
    self.onFailed = onFailed
    let thread = try NamedThread("nj-standby") { [self] in run() }
    self.thread = consume thread
  }

  // MARK: the caller's side

  /// By how much the process's resident memory grew, in bytes, while the last encoder was made; nil before that.
  var residentGrowth: Int? { monitor.locked { memory } }

  /// Whether an encoder is there that can be taken without a wait.
  var isReady: Bool {
    monitor.locked {
      if case .ready = state { true } else { false }
    }
  }

  /// Whether that one is as `configuration` has it.
  func isReady(for configuration: EncoderConfiguration) -> Bool {
    monitor.locked {
      if case .ready(let encoder, _) = state { encoder.isMade(for: configuration) } else { false }
    }
  }

  /// Whether the last one could not be made.
  var hasFailed: Bool {
    monitor.locked {
      if case .failed = state { true } else { false }
    }
  }

  /// Begins to make an encoder, after it has ended the one that is here.
  func make(_ configuration: EncoderConfiguration) {
    monitor.locked {
      if case .ready(let encoder, _) = state { retired.append(encoder) }
      begin(.make(configuration))
    }
  }

  /// Has the one that is here, or is being made, be one of `configuration`; makes one where it cannot be changed.
  func adopt(_ configuration: EncoderConfiguration) {
    let isChanged = monitor.locked { () -> Bool in
      guard case .ready(let encoder, _) = state, encoder.configuration.size == configuration.size else { return false }
      // Whatever the reason, another is made instead, and why that fails is told.
      return (try? encoder.change(x264Preset: configuration.x264Preset)) ?? false
    }
    if !isChanged { make(configuration) }
  }

  /// Ends the one that is here.
  func clear() {
    monitor.locked {
      if case .ready(let encoder, _) = state { retired.append(encoder) }
      begin(.end)
    }
  }

  /// Keeps `encoder`, which is warm.
  func keep(_ encoder: any VideoEncoder) {
    monitor.locked { state = .ready(encoder, isFormer: true) }
  }

  /// Keeps `encoder`, which was flushed, and begins to warm it up. Where that fails, one of `configuration` is made.
  func warm(_ encoder: any VideoEncoder, _ configuration: EncoderConfiguration) {
    monitor.locked { begin(.warm(encoder, configuration)) }
  }

  /// Ends `encoder`, and then makes one of `configuration` where that is wanted.
  func retire(_ encoder: any VideoEncoder, thenMake configuration: EncoderConfiguration?) {
    monitor.locked {
      retired.append(encoder)
      if let configuration {
        begin(.make(configuration))
      } else {
        begin(.end)
      }
    }
  }

  /// Takes the encoder of `configuration`, waiting for it where it is being made, or has it made where there is none or
  /// another; and whether it is the one that was kept here last.
  ///
  /// - Parameter limit: how long the thread may be at it.
  /// - Throws: ``EncoderError`` where it cannot be had; ``EncoderError/hung(library:after:)`` where it is not there in
  ///   time, and then it is still being made.
  func take(
    or configuration: EncoderConfiguration, within limit: MediaTime
  ) throws(EncoderError) -> (encoder: any VideoEncoder, isFormer: Bool) {
    try monitor.locked { () throws(EncoderError) in
      var hasAsked = false
      while true {
        switch state {
        case .ready(let encoder, let isFormer):
          guard encoder.isMade(for: configuration) else {
            hasAsked = true
            retired.append(encoder)
            begin(.make(configuration))
            continue
          }
          state = .empty
          return (encoder, isFormer)
        case .preparing(let since):
          let deadline = since + limit
          guard MediaTime.now() < deadline else {
            throw .hung(library: "the encoder for \(configuration.size)", after: limit)
          }
          _ = monitor.wait(until: deadline)
        case .failed where hasAsked: throw failure ?? .stopped
        case .empty, .failed:
          hasAsked = true
          begin(.make(configuration))
        case .ended: throw .stopped
        }
      }
    }
  }

  /// Ends the thread and what it holds. What does not come back within two seconds is left behind.
  func stop() {
    let hasEnded = monitor.locked { () -> Bool in
      isStopping = true
      monitor.signal()
      let deadline = MediaTime.now() + Self.patience
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

  /// Gives the thread an order, under the monitor.
  private func begin(_ next: Order) {
    if case .warm(let encoder, _)? = order { retired.append(encoder) }
    order = next
    if case .end = next { state = .empty } else { state = .preparing(since: .now()) }
    monitor.signal()
  }

  // MARK: the thread's side

  private func run() {
    while let (order, retired) = nextOrder() {
      for encoder in retired { encoder.stop() }
      switch order {
      case .make(let configuration): make(configuration, insteadOf: nil)
      case .warm(let encoder, let configuration): make(configuration, insteadOf: encoder)
      case .end: break
      }
    }
    let rest = monitor.locked { () -> [any VideoEncoder] in
      var rest = retired
      if case .ready(let encoder, _) = state { rest.append(encoder) }
      if case .warm(let encoder, _)? = order { rest.append(encoder) }
      (retired, order) = ([], nil)
      state = .empty
      return rest
    }
    for encoder in rest { encoder.stop() }
    monitor.locked {
      state = .ended
      monitor.signal()
    }
  }

  /// What is to be done, and what is to be ended before; nil at the end.
  private func nextOrder() -> (Order, [any VideoEncoder])? {
    monitor.locked {
      while order == nil, !isStopping { monitor.wait() }
      guard !isStopping, let next = order else { return nil }
      defer { (order, retired) = (nil, []) }
      return (next, retired)
    }
  }

  /// Readies `former`, or an encoder of `configuration`.
  private func make(_ configuration: EncoderConfiguration, insteadOf former: (any VideoEncoder)?) {
    if let former {
      do throws(EncoderError) {
        try former.prepare()
        return publish(former, isFormer: true)
      } catch {
        former.stop()
      }
    }
    let before = ResidentMemory.bytes
    do throws(EncoderError) {
      let encoder = try makeEncoder(configuration)
      do throws(EncoderError) {
        try encoder.prepare()
      } catch {
        encoder.stop()
        throw error
      }
      let growth = max(0, ResidentMemory.bytes - before)
      monitor.locked { memory = growth }
      publish(encoder, isFormer: false)
    } catch {
      let isNew = monitor.locked { failure == nil }
      if isNew { onFailed(configuration.size, error) }
      monitor.locked {
        failure = error
        // Whoever wants another by now waits for that one.
        if order == nil { state = .failed }
        monitor.signal()
      }
    }
  }

  private func publish(_ encoder: any VideoEncoder, isFormer: Bool) {
    monitor.locked {
      failure = nil
      if order == nil {
        state = .ready(encoder, isFormer: isFormer)
      } else {
        // Another is wanted by now.
        retired.append(encoder)
      }
      monitor.signal()
    }
  }
}

extension VideoEncoder {
  /// Whether it encodes what `configuration` has it encode, but for what changes while it runs.
  func isMade(for configuration: EncoderConfiguration) -> Bool {
    self.configuration.size == configuration.size && self.configuration.x264Preset == configuration.x264Preset
  }
}
