import Capture
import Platform
import Streaming

/// The resources of one camera of the run: its stream, or the work to get one, and what outlives both. The state is in
/// the ``CameraTable``. Confined to the main thread.
final class CameraSlot {
  /// The camera's number in the table.
  let number: Int
  let name: String
  let terminal: CameraTerminal
  /// The camera's controls. They outlive a pipeline: both the values set by `nightjar ctl` and the values from before a
  /// lock or a night remain. `nil` before the camera is opened, and if the source is no camera.
  private var controls: CameraControls?
  /// The settings that `nightjar ctl` has changed since the configuration was applied.
  let controlled = ControlledSettings()
  /// The clients that take single pictures.
  let snapshots = SnapshotViewers()
  /// The stream; `nil` while the camera is being opened, or waits for the next attempt.
  var stream: CameraStream? {
    didSet {
      missing.removeAll()
      search = nil
      guard let stream else { return }
      missing.add(stream.opened.missing, at: .now())
    }
  }
  /// The work under way on this camera.
  var work: CameraWork?
  /// The camera that the work has opened, until its stream begins.
  var opened: OpenedCamera?
  /// The configured destinations of the stream: from file, environment or command line.
  var destinations: [StreamDestination] = []
  /// The configured destinations that are missing, and searched for repeatedly.
  let missing = MissingDestinations()
  /// The search for the missing destinations that is under way.
  var search: DestinationSearch?
  /// The lines with the camera's URLs that have been told. A camera that begins to stream again tells none of them
  /// again.
  var toldURLs: Set<String> = []
  /// The figures of the last stream that has ended.
  var report: StreamReport?

  init(_ entry: CameraTable.Entry, _ terminal: CameraTerminal) {
    (number, name) = (entry.number, entry.name)
    self.terminal = terminal
  }

  /// Gives the camera's controls the configured values again; of another source they are others.
  func follow(_ camera: CameraConfiguration, sourceChanged: Bool) {
    // A camera that is no longer streamed keeps its controls as they are.
    if sourceChanged { controls = nil }
    controls?.follow(camera.controls.profile)
  }

  /// Returns the object that manages the camera's controls once the camera is open; `nil` if the source is no camera.
  ///
  /// - Throws: ``SystemFailure`` if the system has no thread or descriptor left.
  func controlsForOpening(_ camera: CameraConfiguration) throws(SystemFailure) -> CameraControls? {
    guard camera.source.isCamera else { return nil }
    if controls == nil { controls = try CameraControls(camera.controls.profile) }
    return controls
  }

  /// The facts that a reload needs to know. Forgets what `nightjar ctl` has changed, which the reload changes back.
  func observe() -> CameraTable.Observation {
    var observation = CameraTable.Observation(controlled: controlled.take())
    if let stream {
      let there = stream.pipeline.destinations.map(\.destination)
      observation.lacksDestination = !destinations.allSatisfy(there.contains)
    }
    return observation
  }
}
