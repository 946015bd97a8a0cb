import CLinux
import Capture
import Control
import Encoding
import Glibc
import Media
import OrientationSensing
import SRTP
import Streaming
import SystemService
import Threading

/// One camera of the box while it streams: its pipeline and all that looks after it. Of the main thread alone.
final class CameraStream {
  let opened: OpenedCamera
  let terminal: CameraTerminal
  /// What it was asked to do last.
  private(set) var command: StreamCommand
  private var descriptions: SessionDescriptionFiles
  private var adaptationWatch: AdaptationWatch?
  private var postureWatch: PostureWatch?
  private var display: StatusDisplay
  private var orientation: Orientation
  private var refusal: String?
  private var hasLeft = false
  private var hasToldScheduling = false

  var pipeline: Pipeline { opened.pipeline }

  /// Takes over what was opened. Nothing streams before ``start()``.
  ///
  /// - Throws: ``CommandFailure`` where a session description cannot be written, ``SystemFailure``.
  init(_ opened: OpenedCamera, _ command: StreamCommand, _ terminal: CameraTerminal) throws {
    self.opened = opened
    self.command = command
    self.terminal = terminal
    descriptions = try SessionDescriptionFiles(
      path: command.sdp, pipeline: opened.pipeline, wanted: opened.destinations, name: command.name)
    display = StatusDisplay(terminal: terminal)
    orientation = opened.pipeline.orientation
    terminal.source = opened.sourceName
    terminal.encoder = opened.pipeline.encoder.name
    do {
      try descriptions.update()
      try startAdapting()
      try followPosture()
    } catch {
      descriptions.remove(neverStreamed: true)
      throw error
    }
  }

  /// Whether a camera was wanted and none found: one that comes and goes would have a condition.
  var isSubstitute: Bool { command.source == .auto && pipeline.statistics.camera == nil }

  /// Keeps the stream within what the machine can do; nil where it does not.
  var adaptation: StreamAdaptation? {
    switch adaptationWatch {
    case .some(let watch): watch.adaptation
    case .none: nil
    }
  }

  /// The session description that is the same file as `report`.
  func descriptionPath(sharedWith report: OutputFile) -> String? { descriptions.path(sharedWith: report) }

  /// - Throws: ``SystemFailure`` where the system has no thread left; then nothing runs.
  func start() throws { try command.scheduling.confine { try pipeline.start() } }

  /// Says once what of its scheduling the system did not allow.
  private func tellScheduling() {
    guard !hasToldScheduling else { return }
    let threads = pipeline.threadScheduling
    guard threads.count == 3 else { return }
    hasToldScheduling = true
    let wish = command.scheduling
    let limit = Int(nightjar_realtime_limit())
    let isExpected = wish.realTime == .on || wish.realTime == .auto && limit > 0
    if isExpected, !wish.without.contains(.rtprio), !threads.contains(where: \.scheduling.isRealTime) {
      terminal.line(
        limit > 0
          ? "no real-time priority, though the limit is \(limit): the kernel refuses it, as in a control group that has no "
            + "real-time time"
          : "no real-time priority, because the system does not allow it: ulimit -r is 0, and the privilege CAP_SYS_NICE is "
            + "not there", .warning, event: "scheduling")
    }
    if let wanted = wish.processors, let other = threads.first(where: { $0.scheduling.processors != wanted }) {
      terminal.line(
        "\(other.name) runs on the processors \(other.scheduling.processors) instead of \(wanted): the system does not allow "
          + "another choice", .warning, event: "scheduling")
    }
  }

  private func startAdapting() throws {
    guard command.adapts else { return }
    adaptationWatch = try AdaptationWatch(
      pipeline, command.adaptation, sysfs: command.orientation.sysfs ?? "/sys")
  }

  /// Follows the box's sensor where that is wanted.
  private func followPosture() throws {
    postureWatch = nil
    guard command.orientation.orientation == .auto else { return }
    let mirrored = command.orientation.mirror
    let pipeline = pipeline
    postureWatch = try PostureWatch(
      facing: command.orientation.facing ?? .away, sysfs: command.orientation.sysfs ?? "/sys",
      udev: command.orientation.udev
    ) { pipeline.orient(Orientation($0, mirrored: mirrored)) }
  }

  /// Takes over what has been changed in the pipeline, and changes what else does not touch it.
  ///
  /// - Parameters:
  ///   - options: whose values are others now.
  ///   - destinations: where it is to go.
  /// - Throws: as ``init(_:_:_:)``, for what could not be done; the stream goes on in any case.
  func follow(_ command: StreamCommand, changed options: Set<String>, destinations: [StreamDestination]) throws {
    self.command = command
    if !options.isDisjoint(with: ["to", "sdp"]) {
      descriptions.remove(neverStreamed: false)
      descriptions = try SessionDescriptionFiles(
        path: command.sdp, pipeline: pipeline, wanted: destinations, name: command.name)
      try descriptions.update()
    }
    if !options.isDisjoint(with: ["thermal", "load-adaptation"]) {
      adaptationWatch = nil
      // What is done with less of was the former's decision.
      try pipeline.restrict(StreamRestrictions())
      try startAdapting()
    }
    if !options.isDisjoint(with: ["orientation", "mirror", "facing"]) { try followPosture() }
  }

  /// What happened since the last call, as lines; once a second. Returns what belongs into the live line.
  func look() -> String? {
    tellEvents()
    tellScheduling()
    pipeline.followColor()
    if let new = pipeline.turnRefusal?.description, new != refusal {
      refusal = new
      terminal.line(new, .warning, event: "orientation")
    }
    if pipeline.orientation != orientation {
      orientation = pipeline.orientation
      let size = orientation.size(of: pipeline.sourceFormat.size)
      terminal.line("orientation \(orientation): \(size)", event: "orientation")
    }
    let statistics = pipeline.counters
    terminal.encoder = statistics.encoderName
    updateDescriptions()
    let watching = pipeline.pictureStatistics.viewers.count { !$0.isSnapshot }
    return display.show(statistics, recent: pipeline.recentLatency(), watchingPictures: watching)
  }

  private func updateDescriptions() {
    do {
      try descriptions.update()
    } catch {
      // The stream goes on; the file was writable at the start and may be again.
      terminal.line("session description not rewritten: \(error)", .warning)
    }
  }

  private func tellEvents() {
    for event in opened.encoderEvents?.take() ?? [] {
      let isGood = if case .recovered(_) = event { true } else { false }
      terminal.line(event.description, isGood ? .info : .warning, event: "encoder")
    }
    if let adaptation { terminal.tell(adaptation.notes) }
    switch postureWatch {
    case .some(let watch): terminal.tell(watch.notes)
    case .none: break
    }
    for event in pipeline.takeCameraEvents() + (opened.controls?.takeEvents() ?? []) {
      terminal.line(event.description, event.isWarning ? .warning : .info, event: "camera")
    }
  }

  /// Asks the pipeline to end.
  func stop() { pipeline.stop() }

  /// Waits for the pipeline's end, tells the rest, and leaves nothing behind.
  func finish() -> Pipeline.Outcome {
    let outcome = pipeline.waitUntilEnd()
    leave()
    return outcome
  }

  /// Leaves the pipeline, which has been stopped, to whoever waits for its end.
  func leave() {
    guard !hasLeft else { return }
    hasLeft = true
    postureWatch = nil
    adaptationWatch = nil
    tellEvents()
    descriptions.remove(neverStreamed: pipeline.statistics.encoded == 0)
  }

  /// One line each for camera, format, encoder and destinations, and what to paste to see the picture.
  func introduce() {
    let format = pipeline.sourceFormat
    let configuration = pipeline.encoder.configuration
    terminal.line("camera     \(opened.sourceName)")
    terminal.line(
      "format     \(format.size) at \(format.frameRate) fps, \(format.pixelFormat) (\(format.conversion)), "
        + "\(format.color)")
    terminal.line(
      "encoder    \(pipeline.encoder.name), \(Self.slices(of: configuration))\(Terminal.bitrate(Double(configuration.bitrate))), "
        + "\(configuration.refreshFrames == nil ? "key frame" : "refresh") every "
        + "\(Terminal.decimal(command.encoding.settings.keyFrameInterval.seconds, digits: 1)) s"
        + (opened.explanation.map { " (\($0))" } ?? ""))
    let without = pipeline.without.map(\.rawValue).sorted()
    if !without.isEmpty { terminal.line("without    \(without.joined(separator: ", "))") }
    introduceDestinations()
  }

  /// How a picture is cut, where it is.
  private static func slices(of configuration: EncoderConfiguration) -> String {
    if let bytes = configuration.sliceBytes { return "slices of \(bytes) bytes, " }
    return configuration.slices > 1 ? "\(configuration.slices) slices, " : ""
  }

  /// Where it goes, and how it is seen there; of all destinations, or those of `ids`.
  func introduceDestinations(_ ids: [ViewerID]? = nil) {
    if ids != nil { updateDescriptions() }
    for entry in pipeline.destinations where ids?.contains(entry.id) ?? true {
      let payload = entry.destination.payload == .h264 ? "H.264" : "MPEG-TS"
      let protection = entry.suite.map { ", \($0.rawValue)" } ?? ""
      terminal.line("to         \(entry.destination) (\(payload)\(protection))")
      let players = PlayerCommands(
        destination: entry.destination, address: entry.address, suite: entry.suite,
        sessionDescriptionPath: descriptions.path(of: entry.destination),
        isSessionDescriptionTemporary: descriptions.isTemporary
      )
      if let preparation = players.preparation { terminal.line("  \(preparation)") }
      for (player, command) in players.commands {
        terminal.line("  \(player): \(command)")
      }
    }
  }
}
