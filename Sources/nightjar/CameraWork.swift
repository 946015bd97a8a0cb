import Capture
import Encoding
import Media
import Streaming
import Synchronization
import Threading

/// What is done about one camera on a thread of its own, because a driver may take its time, and the others are not to
/// wait for it.
final class CameraWork: Sendable {
  /// What came of it.
  enum Outcome: Sendable {
    /// A camera is open, and nothing of its pipeline runs yet.
    case opened(OpenedCamera)
    /// The pipeline goes on; what could not be done, a line each.
    case changed(complaints: [String])
    /// No camera was opened.
    case failed(any Error)
  }

  /// What it has to tell, at any time.
  let notes = Notes()
  private let result = Mutex<Outcome?>(nil)

  /// What came of it, once.
  func take() -> Outcome? { result.withLock { $0.take() } }

  private func begin(_ wake: WakeUp, _ body: @escaping @Sendable (Notes) -> Outcome) throws(SystemFailure) {
    // Nobody waits for it: it may be stuck in a driver.
    try NamedThread("nj-camera") { [self] in
      let outcome = body(notes)
      result.withLock { $0 = outcome }
      wake.fire()
    }.detach()
  }

  /// How long a driver may take to let go of a camera that another is to follow.
  private static let patience = MediaTime(seconds: 15)

  /// Opens the camera that `command` asks for, once those of `former`, which have been stopped, have let go of theirs.
  static func open(
    _ command: StreamCommand, in place: OpenedCamera.Place, _ controls: CameraControls?, after former: [Pipeline],
    _ wake: WakeUp
  ) throws(SystemFailure) -> CameraWork {
    let work = CameraWork()
    try work.begin(wake) { notes in
      let deadline = MediaTime.now() + Self.patience
      for pipeline in former where !pipeline.hasEnded(by: deadline) {
        return .failed(
          CommandFailure(
            kind: .unavailable,
            description: "the driver does not let go of the camera that it had before: unplug that one"))
      }
      do { return .opened(try OpenedCamera.open(command, in: place, controls, notes)) } catch { return .failed(error) }
    }
    return work
  }

  /// Waits for the end of a pipeline that has been stopped, without anybody's waiting for that.
  static func close(_ pipeline: Pipeline) throws(SystemFailure) {
    try NamedThread("nj-camera") { _ = pipeline.waitUntilEnd() }.detach()
  }

  /// Changes what a pipeline takes while it runs.
  ///
  /// - Parameter options: whose values are others now.
  static func change(
    _ pipeline: Pipeline, to new: StreamCommand, changed options: Set<String>, _ wake: WakeUp
  ) throws(SystemFailure) -> CameraWork {
    let work = CameraWork()
    try work.begin(wake) { _ in .changed(complaints: Self.change(pipeline, to: new, changed: options)) }
    return work
  }

  private static func change(_ pipeline: Pipeline, to new: StreamCommand, changed options: Set<String>) -> [String] {
    if !options.isDisjoint(with: ["orientation", "mirror"]), new.orientation.orientation != .auto {
      pipeline.orient(new.orientation.initial)
    }
    guard options.contains("bitrate") else { return [] }
    let bitrate = new.encoding.configuration(
      for: pipeline.sourceFormat, new.orientation.initial, payloadLimit: new.payloadLimit
    ).bitrate
    do {
      try pipeline.changeBitrate(bitrate)
      return []
    } catch {
      return ["\(error)"]
    }
  }
}

extension Pipeline {
  /// Waits for its end, but for one that its camera's driver holds up no longer than until `deadline`.
  fileprivate func hasEnded(by deadline: MediaTime) -> Bool {
    guard !ended.wait(until: deadline) else { return false }
    _ = waitUntilEnd()
    return true
  }
}

/// Wakes the main thread, any number of times: an ``Interrupt`` that many hold.
final class WakeUp: Sendable {
  private let interrupt: Interrupt

  /// - Throws: ``SystemFailure`` where the process has no descriptor left.
  init() throws(SystemFailure) { interrupt = try Interrupt() }

  /// What to `poll` for `POLLIN`.
  var fileDescriptor: CInt { interrupt.fileDescriptor }

  /// From any thread.
  func fire() { interrupt.fire() }

  /// From now on it has not been fired; what it was fired for is to be looked for after this.
  func clear() { interrupt.clear() }
}
