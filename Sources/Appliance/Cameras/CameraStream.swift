import CLinux
import Capture
import Encoding
import Glibc
import Host
import Media
import Platform
import RTP
import SRTP
import Serving
import Sound
import Streaming

/// One streaming camera of the appliance: its pipeline and the objects that manage the pipeline. Confined to the main
/// thread.
final class CameraStream {
  let opened: OpenedCamera
  let terminal: CameraTerminal
  /// The processors that the program may use.
  private let budget: ProcessorBudget
  /// The options that were applied last.
  private(set) var command: CameraConfiguration
  private var descriptions: SessionDescriptionFiles
  private var adaptationWatch: AdaptationWatch?
  private var postureWatch: PostureWatch?
  private var display: StatusDisplay
  private var orientation: Orientation
  private var refusal: String?
  /// The destinations without sound that were told of.
  private var soundless: Set<ViewerID> = []
  private var toldOmissions = 0
  /// The events of small pictures that were told, and the times.
  private var toldSmall: [String: Instant] = [:]
  private var hasLeft = false
  private var hasToldScheduling = false

  var pipeline: Pipeline { opened.pipeline }

  /// Takes over an opened camera. Nothing streams before ``start()``.
  ///
  /// - Throws: ``ApplianceFailure`` if a session description cannot be written, ``SystemFailure``.
  init(
    _ opened: OpenedCamera, _ command: CameraConfiguration, _ terminal: CameraTerminal, _ budget: ProcessorBudget
  ) throws {
    self.opened = opened
    self.budget = budget
    self.command = command
    self.terminal = terminal
    descriptions = try SessionDescriptionFiles(
      path: command.descriptionPath, pipeline: opened.pipeline, wanted: opened.destinations, name: command.name)
    display = StatusDisplay(isInteractive: terminal.isInteractive) { terminal.line($0, $1, event: $2) }
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

  /// `true` if a camera was requested and none found: a real camera would have a condition.
  var isSubstitute: Bool { command.source == .auto && pipeline.statistics.camera == nil }

  /// Keeps the stream within the capacity of the host; `nil` if the stream does not adapt.
  var adaptation: StreamAdaptation? {
    switch adaptationWatch {
    case .some(let watch): watch.adaptation
    case .none: nil
    }
  }

  /// Returns the path of the session description that is the same file as `report`.
  func descriptionPath(sharedWith report: OutputFile) -> String? { descriptions.path(sharedWith: report) }

  /// - Throws: ``SystemFailure`` if the system has no thread left; then nothing runs.
  func start() throws { try command.scheduling.confine { try pipeline.start() } }

  /// Tells once which scheduling the system did not allow.
  private func tellScheduling() {
    guard !hasToldScheduling else { return }
    let threads = pipeline.threadScheduling
    guard threads.count == 3 else { return }
    hasToldScheduling = true
    let requested = command.scheduling
    let limit = Int(nightjar_realtime_limit())
    let isExpected = requested.priority == .on || requested.priority == .auto && limit > 0
    if isExpected, !threads.contains(where: \.scheduling.isRealTime) {
      terminal.line(
        limit > 0
          ? "no real-time priority, though the limit is \(limit): the kernel refuses it, as in a control group that has no "
            + "real-time time"
          : "no real-time priority, because the system does not allow it: ulimit -r is 0, and the privilege CAP_SYS_NICE is "
            + "not there", .warning, event: "scheduling")
    }
    if let wanted = requested.processors, let other = threads.first(where: { $0.scheduling.processors != wanted }) {
      terminal.line(
        "\(other.name) runs on the processors \(other.scheduling.processors) instead of \(wanted): the system does not allow "
          + "another choice", .warning, event: "scheduling")
    }
  }

  private func startAdapting() throws {
    defer { followBudget() }
    let levels = command.governsQuality ? opened.levels : nil
    guard command.adapts || command.governsEffort || levels != nil else { return }
    let (encoding, original) = (command.encoding, pipeline.originalConfiguration)
    // The number of processors is that of the calling thread.
    let triesThreads = try command.scheduling.confine { encoding.triesThreads(original) }
    adaptationWatch = try AdaptationWatch(
      pipeline, command.adaptation, budget, governsPreset: command.governsEffort, triesThreads: triesThreads,
      levels: levels, sysfs: command.orientation.sysfs ?? "/sys")
  }

  /// Lets the encoder of H.264 beside HEVC take the processors that the budget leaves, and those that the stream's own encoder
  /// would give up for it.
  private func followBudget() {
    let adaptation = adaptation
    pipeline.setProcessorRoom(budget) { [weak adaptation] in adaptation?.reserve ?? 0 }
  }

  /// Follows the orientation sensor if the configuration requests that.
  private func followPosture() throws {
    postureWatch = nil
    guard command.orientation.choice == .auto else { return }
    let mirrored = command.orientation.mirrors
    let pipeline = pipeline
    postureWatch = try PostureWatch(
      facing: command.orientation.facing ?? .away, sysfs: command.orientation.sysfs ?? "/sys",
      udev: command.orientation.udev
    ) { pipeline.orient(Orientation($0, mirrored: mirrored)) }
  }

  /// Adopts changes that the pipeline has already changed to, and applies those that do not touch the pipeline.
  ///
  /// - Parameters:
  ///   - changes: the differences from the former configuration.
  ///   - destinations: the stream's configured destinations.
  /// - Throws: the errors of ``init(_:_:_:)``, for changes that failed; the stream goes on in any case.
  func follow(_ command: CameraConfiguration, _ changes: Set<CameraChange>, destinations: [StreamDestination]) throws {
    self.command = command
    if !changes.isDisjoint(with: [.setting(.to), .setting(.sdp)]) {
      descriptions.remove(neverStreamed: false)
      descriptions = try SessionDescriptionFiles(
        path: command.descriptionPath, pipeline: pipeline, wanted: destinations, name: command.name)
      try descriptions.update()
    }
    if !changes.isDisjoint(with: [.setting(.thermal), .setting(.loadAdaptation)]) {
      adaptationWatch = nil
      // The restrictions were the former adaptation's decision.
      try pipeline.restrict(StreamRestrictions())
      try startAdapting()
    }
    if changes.contains(.setting(.audioGain)) { pipeline.sound?.setGain(command.sound.gain) }
    if changes.changesOrientation || changes.contains(.setting(.facing)) { try followPosture() }
  }

  /// Tells the events since the last call, a line each; called once a second. Returns the text for the live line.
  ///
  /// - Parameter snapshots: the clients that take single pictures of the camera.
  func look(_ snapshots: SnapshotViewers) -> String? {
    budget.measure()
    tellEvents()
    tellScheduling()
    pipeline.followColor()
    if let new = pipeline.rotationRefusal?.description, new != refusal {
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
    tellOmittedSounds()
    return display.show(
      statistics, recent: pipeline.recentLatency(), others: OtherViewers(pipeline, statistics, snapshots),
      lacksMicrophone: pipeline.sound.map { !$0.figures.condition.isPresent } ?? false)
  }

  /// Warns once of each destination that gets no sound because the port for it is in use.
  private func tellOmittedSounds() {
    let omissions = pipeline.soundOmissions
    guard omissions != toldOmissions else { return }
    toldOmissions = omissions
    for entry in pipeline.destinations {
      guard let reason = entry.missedSound, soundless.insert(entry.id).inserted else { continue }
      terminal.warning("\(entry.destination) gets no sound: \(reason). Add audio=PORT to the URL")
    }
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
      terminal.line(event.description, event.isWarning ? .warning : .info, event: "encoder")
    }
    for event in opened.smallEncoderEvents.take() {
      tellSmall("small pictures: \(event)", isWarning: event.isWarning)
    }
    for event in pipeline.takeRenditionEvents() { tellSmall(event.description, isWarning: event.isWarning) }
    if let adaptation { terminal.tell(adaptation.notes) }
    switch postureWatch {
    case .some(let watch): terminal.tell(watch.notes)
    case .none: break
    }
    for event in pipeline.sound?.takeEvents() ?? [] {
      terminal.line(event.description, event.isWarning ? .warning : .info, event: "sound")
    }
    for event in pipeline.takeCameraEvents() + (opened.controls?.takeEvents() ?? []) {
      terminal.line(event.description, event.isWarning ? .warning : .info, event: "camera")
    }
  }

  /// The pause before the same event of small pictures is told again.
  private static let smallPause = Duration.seconds(300)

  /// Tells an event of small pictures, the same one only once in ``smallPause``: their encoder opens whenever a viewer's network
  /// gets weak.
  private func tellSmall(_ text: String, isWarning: Bool) {
    let now = Instant.now()
    toldSmall = toldSmall.filter { now - $0.value < Self.smallPause }
    guard toldSmall[text] == nil else { return }
    toldSmall[text] = now
    terminal.line(text, isWarning ? .warning : .info, event: "encoder")
  }

  /// Requests the end of the pipeline.
  func stop() { pipeline.stop() }

  /// Waits for the pipeline's end, tells the last events, and removes the session descriptions.
  func finish() -> Pipeline.Outcome {
    let outcome = pipeline.waitUntilEnd()
    leave()
    return outcome
  }

  /// Cleans up, and leaves the stopped pipeline to the code that waits for its end.
  func leave() {
    guard !hasLeft else { return }
    hasLeft = true
    postureWatch = nil
    adaptationWatch = nil
    tellEvents()
    descriptions.remove(neverStreamed: pipeline.statistics.encoded == 0)
  }

  /// Tells camera, format, encoder and destinations, a line each, and the commands that show the picture.
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
    if let sound = introducedSound { terminal.line("sound      \(sound)") }
    let without = command.scheduling.without.map(\.rawValue).sorted()
    if !without.isEmpty { terminal.line("without    \(without.joined(separator: ", "))") }
    introduceDestinations()
  }

  /// The description of the sound; nil if no sound was requested and there is none.
  private var introducedSound: String? {
    guard pipeline.sound != nil else {
      let isWanted = command.sound.choice != .none && pipeline.counters.camera != nil
      return isWanted ? "none, because there is no microphone (nightjar devices lists microphones)" : nil
    }
    let source =
      switch command.sound.choice {
      case .test: "test tone"
      case .device(let name): name.text
      // The microphone of a camera that is away is chosen when the camera appears, if there is one then.
      case .auto, .none:
        pipeline.counters.camera?.devicePath == nil ? "silence until there is a microphone" : "the microphone"
      }
    return "\(source), Opus, \(Terminal.bitrate(Double(command.sound.bitrate))); everybody who may watch may listen"
  }

  /// Returns a description of the slices if a picture is divided into slices.
  private static func slices(of configuration: EncoderConfiguration) -> String {
    if let bytes = configuration.sliceBytes { return "slices of \(bytes) bytes, " }
    return configuration.slices > 1 ? "\(configuration.slices) slices, " : ""
  }

  /// Tells the destinations and the commands that show the stream there; all destinations, or those of `ids`.
  func introduceDestinations(_ ids: [ViewerID]? = nil) {
    if ids != nil { updateDescriptions() }
    for entry in pipeline.destinations where ids?.contains(entry.id) ?? true {
      let payload = entry.payload.title
      let protection = entry.suite.map { ", \($0.rawValue)" } ?? ""
      terminal.line("to         \(entry.destination) (\(payload)\(protection))")
      let players = PlayerCommands(
        destination: entry.destination, payload: entry.payload.format, address: entry.address, suite: entry.suite,
        sessionDescriptionPath: descriptions.path(of: entry.destination),
        isSessionDescriptionTemporary: descriptions.isTemporary,
        sound: entry.soundPort.map { ($0, command.sound.settings.channels == 2 ? .stereo : .mono) })
      if let preparation = players.preparation { terminal.line("  \(preparation)") }
      for (player, command) in players.commands {
        terminal.line("  \(player): \(command)")
      }
    }
  }
}

extension EncoderEvent {
  /// `true` if the event is a warning: all but a recovery.
  fileprivate var isWarning: Bool {
    if case .recovered = self { false } else { true }
  }
}
