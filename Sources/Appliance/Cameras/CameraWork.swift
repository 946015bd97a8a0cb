import Capture
import Encoding
import Media
import Platform
import Streaming
import Synchronization

/// Work on one camera, on a thread of its own. A driver may take its time, and the other cameras must not wait for it.
final class CameraWork: Sendable {
  /// The result of the work.
  enum Outcome: Sendable {
    /// A camera is open, and nothing of its pipeline runs yet.
    case opened(OpenedCamera)
    /// The pipeline goes on. `complaints` has a line for each change that failed.
    case changed(complaints: [String])
    /// No camera was opened.
    case failed(any Error)
  }

  /// The messages of the work, readable at any time.
  let notes = Notes()
  private let result = Mutex<Outcome?>(nil)

  /// Returns the result, once.
  func take() -> Outcome? { result.withLock { $0.take() } }

  private func begin(_ wake: WakeUp, _ body: @escaping @Sendable (Notes) -> Outcome) throws(SystemFailure) {
    // Nothing waits for the thread: the thread may be stuck in a driver.
    try NamedThread("nj-camera") { [self] in
      let outcome = body(notes)
      result.withLock { $0 = outcome }
      wake.fire()
    }.detach()
  }

  /// The time that a driver may take to let go of a camera that another pipeline needs.
  private static let patience = Duration(seconds: 15)

  /// Opens the camera that `command` requests, once the stopped pipelines of `former` have let go of their cameras.
  static func open(
    _ command: CameraConfiguration, in place: OpenedCamera.Place, _ controls: CameraControls?, after former: [Pipeline],
    _ wake: WakeUp
  ) throws(SystemFailure) -> CameraWork {
    let work = CameraWork()
    try work.begin(wake) { notes in
      let deadline = Instant.now() + Self.patience
      for pipeline in former where !pipeline.hasEnded(by: deadline) {
        return .failed(
          ApplianceFailure(
            kind: .unavailable,
            description: "the driver does not let go of the camera that it had before: unplug that one"))
      }
      do { return .opened(try OpenedCamera.open(command, in: place, controls, notes)) } catch { return .failed(error) }
    }
    return work
  }

  /// Waits for the end of a stopped pipeline on a thread of its own, so that no other thread waits.
  static func close(_ pipeline: Pipeline) throws(SystemFailure) {
    try NamedThread("nj-camera") { _ = pipeline.waitUntilEnd() }.detach()
  }

  /// Makes the changes that a pipeline can adopt while it runs.
  ///
  /// - Parameter changes: the differences from the former configuration.
  static func change(
    _ pipeline: Pipeline, to new: CameraConfiguration, _ changes: Set<CameraChange>, _ wake: WakeUp
  ) throws(SystemFailure) -> CameraWork {
    let work = CameraWork()
    try work.begin(wake) { _ in .changed(complaints: Self.change(pipeline, to: new, changes)) }
    return work
  }

  private static func change(_ pipeline: Pipeline, to new: CameraConfiguration, _ changes: Set<CameraChange>)
    -> [String]
  {
    if changes.changesOrientation, new.orientation.choice != .auto {
      pipeline.orient(new.orientation.initial)
    }
    if changes.contains(.setting(.bitrateFloor)) { pipeline.setBitrateFloor(new.encoding.networkFloor) }
    guard changes.contains(.setting(.bitrate)) else { return [] }
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
  /// Waits for the pipeline's end. Returns `false` if the camera's driver still holds the pipeline up at `deadline`.
  fileprivate func hasEnded(by deadline: Instant) -> Bool {
    guard !ended.wait(until: deadline) else { return false }
    _ = waitUntilEnd()
    return true
  }
}
