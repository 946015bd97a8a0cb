import Capture
import Media
import Streaming
import SystemService

/// A camera's place in the box: its stream, or what is done to have one. Of the main thread alone.
final class CameraSlot {
  let name: String
  /// Tells it from every other of this run.
  let number: Int
  let terminal: CameraTerminal
  /// What it is to do.
  private(set) var camera: BoxConfiguration.Camera
  /// Looks after its controls: what `nightjar ctl` has set of them, and what was there before a lock or a night, outlives a
  /// pipeline. Nil before it is opened, and where it is no camera.
  private var controls: CameraControls?
  /// What of it is not as its configuration says any more.
  let controlled = ControlledOptions()
  /// What streams; nil while it is being opened, or waits to be.
  var stream: CameraStream? {
    didSet {
      began = stream == nil ? nil : .now()
      missing.removeAll()
      search = nil
      if let stream { missing.add(stream.opened.missing, at: .now()) }
    }
  }
  /// What is being done about it.
  var work: CameraWork? {
    didSet { workBegan = work == nil ? nil : .now() }
  }
  /// The options that a change of the stream is about.
  var changed: Set<String> = []
  /// The options whose last change could not be done, in whole or in part.
  var unmet: Set<String> = []
  /// The options that it is changed in once more when `work` is done.
  var queued: Set<String> = []
  /// The destinations in file, environment or command line that the stream was given, or is to be given.
  var destinations: [StreamDestination] = []
  /// Those of them that are looked for again and again.
  let missing = MissingDestinations()
  /// The attempt to find them.
  var search: DestinationSearch?
  /// Whether it may keep encoders ready that it does not need yet.
  var keepsStandby = false
  /// The figures of its last stream that has ended.
  var report: StreamReport?
  /// Whether what `work` leads to is not wanted any more.
  var isStale = false
  /// Where nothing can be opened: when it is tried again.
  private(set) var retry: MediaTime?
  /// Whether its source has come to an end.
  var isOver = false
  /// How often it stood still and was begun anew.
  var standstills = 0
  private var backOff = RetryBackOff()
  private var complaint: String?
  private var began: MediaTime?
  private var workBegan: MediaTime?

  init(_ camera: BoxConfiguration.Camera, number: Int, _ terminal: CameraTerminal) {
    name = camera.name
    self.number = number
    self.camera = camera
    self.terminal = terminal
  }

  /// It is to do something else, or the same once more: what `nightjar ctl` has set of its controls is taken back.
  func follow(_ camera: BoxConfiguration.Camera) {
    // A camera that is not streamed any more keeps its controls as they are.
    if camera.command.source != self.camera.command.source { controls = nil }
    self.camera = camera
    controls?.follow(camera.command.settings.profile)
  }

  /// What is to look after its controls once it is open; nil where it is no camera.
  ///
  /// - Throws: ``SystemFailure`` where the system has no thread or descriptor left.
  func controlsForOpening() throws(SystemFailure) -> CameraControls? {
    guard camera.command.source.isCamera else { return nil }
    if controls == nil { controls = try CameraControls(camera.command.settings.profile) }
    return controls
  }

  /// It does not stream, for that reason: it is tried again after 1, 2, 4, … 60 s.
  func fail(_ error: any Error, at now: MediaTime) {
    stream = nil
    retry = now + backOff.failed(after: .zero)
    let text = "\(error)"
    // Once: what stays as it is is no news.
    if text != complaint { terminal.line("\(text); it is tried again", .error, event: "camera_failed") }
    complaint = text
  }

  /// Whether it will stream without anybody's doing: what hangs in a driver, or stood still again and again, will not.
  var isSeenTo: Bool {
    if let workBegan { return .now() - workBegan < RetryBackOff.longest }
    return isOver || retry != nil && standstills <= 2
  }

  /// Why it does not stream; nil where it does.
  var absence: String? {
    guard stream == nil else { return nil }
    return isOver ? "its source has come to its end" : complaint ?? "it is being opened"
  }

  /// Whether it has failed, and has not streamed for a while since.
  var hasFailed: Bool { complaint != nil }

  /// It is being opened.
  func open(by work: CameraWork) {
    self.work = work
    retry = nil
  }

  /// It streams, and has for a while: the next failure is the first again.
  func noteProgress() {
    guard let began, .now() - began > RetryBackOff.stable else { return }
    backOff = RetryBackOff()
    complaint = nil
    standstills = 0
  }
}
