import CLinux
import Capture
import Control
import Encoding
import Glibc
import Listening
import Media
import OrientationSensing
import RTP
import RTSPServer
import SRTP
import Streaming
import SystemService

/// One run of `nightjar stream`: from the options to the summary.
struct StreamSession {
  let configuration: BoxConfiguration
  let started: MediaTime
  let terminal = Terminal()

  init(_ configuration: BoxConfiguration, started: MediaTime) {
    self.configuration = configuration
    self.started = started
  }

  private var command: StreamCommand { configuration.box }

  func run() throws {
    // Before any thread exists, so that all of them leave these signals to this one.
    let signals = nightjar_stop_signals()
    guard signals >= 0 else { throw SystemFailure("signalfd") }
    defer { close(signals) }
    // A destination takes two descriptors, and a shell often allows no more than 1024.
    nightjar_raise_descriptor_limit(65_536)
    let starting = try StartGuard(signals: signals)
    if let path = configuration.path { terminal.line("config     \(path)") }
    for warning in configuration.warnings { terminal.warning(warning) }

    let sockets = try ActivationSocket.take(known: RTSPOptions.socketNames)
    let serving = try command.serving.configuration(path: command.name, sockets: sockets, terminal)
    let isAlone = command.destinations.isEmpty && serving == nil
    let destinations = isAlone ? Self.loopback : command.destinations
    let turns = command.orientation.orientation == .auto || command.control != "none"
    let orientation = command.orientation.initial
    let source = try openSource(fixed: turns ? nil : orientation)
    let aspects: EncoderAspects = turns ? .both : command.adapts ? .scaled : .one
    let selection = try command.encoding.select(for: source.format, orientation, aspects: aspects)
    if let offer = selection.turning { source.leaveTurning(to: offer) }
    let keyFrameInterval = command.encoding.settings.keyFrameInterval
    let pipeline = try Pipeline(
      source: source, encoder: selection.encoder, destinations: destinations, keyFrameInterval: keyFrameInterval,
      orientation: orientation, pacing: command.pacing,
      restsUnwatched: serving != nil && !command.serving.alwaysEncodes, started: started)
    if turns, !command.encoding.noStandby { prepareTurning(source) }
    starting.end()
    var descriptions = try SessionDescriptionFiles(path: command.sdp, pipeline: pipeline)
    defer { descriptions.remove(neverStreamed: pipeline.statistics.encoded == 0) }
    let report = try command.statisticsPath.flatMap { $0 == "-" ? nil : try OutputFile(checking: $0) }
    if let report, let path = descriptions.path(sharedWith: report) {
      throw CommandFailure(kind: .usage, description: "--sdp and --stats-json are the same file, \(path)")
    }
    try descriptions.update()

    introduce(source, pipeline, selection, descriptions)
    let watch = try startAdapting(pipeline)
    let adaptation: StreamAdaptation? =
      switch watch {
      case .some(let watch): watch.adaptation
      case .none: nil
      }
    let target = controlTarget(pipeline, sourceName: source.name, adaptation)
    let server = try startControl(target)
    defer { server?.stop() }
    let api = try serveAPI(target, rtsp: serving)
    defer { api?.stop() }
    let rtsp = try serving.map { try serve($0, pipeline) }
    defer { rtsp?.stop() }
    let posture = try followPosture(pipeline)
    if terminal.isInteractive { terminal.line("Ctrl-C ends it.") }
    try pipeline.start()
    var service = ServiceReport(pipeline, terminal: terminal, isServing: rtsp != nil, at: .now())
    let events = EventLog(
      terminal: terminal, pipeline: pipeline, encoder: selection.events, guests: rtsp?.events, control: api?.events,
      adaptation: adaptation)
    let received = follow(pipeline, events, posture, signals: signals, &descriptions, &service)
    service?.stopping()
    pipeline.stop()
    let outcome = pipeline.waitUntilEnd()
    events.tell()

    let summary = StreamReport(pipeline: pipeline, sourceName: source.name)
    terminal.finish()
    terminal.line(summary.text, event: "ended")
    if let report {
      try report.write(summary.json)
    } else if command.statisticsPath == "-" {
      try writeOutput(summary.json)
    }
    if received == 0, case .failed(let error) = outcome { throw error }
  }

  /// Where the stream goes if nobody says.
  static let loopback = [
    StreamDestination(host: "127.0.0.1", port: 5004, payload: .h264),
    StreamDestination(host: "127.0.0.1", port: 5006, payload: .mp2t),
  ]

  /// - Parameter fixed: how pictures are laid, where that is not going to change.
  private func openSource(fixed: Orientation?) throws -> any VideoSource {
    let request = FormatRequest(size: command.size, frameRate: command.fps, format: command.format.value)
    switch command.source {
    case .device(let path):
      return try openCamera(.path(path), path, request, fixed: fixed)
    case .file(let path):
      return try Y4MFile(path: path, pacing: command.rate ?? .realtime, loops: command.loop)
    case .test:
      return try SyntheticCamera(size: request.size, frameRate: request.frameRate)
    case .auto:
      let cameras = CameraList()
      for entry in cameras.passedOver {
        if let complaint = entry.complaint { terminal.line("skipped    \(complaint)", .warning) }
      }
      if let camera = cameras.firstUsable { return try openCamera(.first, camera.path, request, fixed: fixed) }
      if command.survival.waits { return try openCamera(.first, nil, request, fixed: fixed) }
      let finding = cameras.passedOver.isEmpty ? "no camera found" : "no camera can be used"
      guard command.format.value == nil else {
        throw CommandFailure(
          kind: .noInput, description: "\(finding), and --format is for cameras only; plug one in, or leave it out")
      }
      terminal.line("\(finding): streaming the built-in synthetic camera")
      return try SyntheticCamera(size: request.size, frameRate: request.frameRate)
    }
  }

  /// - Parameter path: where it is now; nil where there is none.
  private func openCamera(
    _ selection: CameraSelection, _ path: String?, _ request: FormatRequest, fixed: Orientation?
  ) throws -> any VideoSource {
    let waits = command.survival.waits
    let finder = CameraFinder(selection, request: request, fixedOrientation: fixed)
    do {
      guard let path else { throw CaptureError.noDevice(path: "camera") }
      let camera = try finder.open(path)
      for warning in camera.warnings { terminal.warning("\(warning)") }
      return try ReconnectingCamera(camera, finder: finder, survival: command.survival.cameras)
    } catch let error as CaptureError where waits && error.kind != .usage {
      terminal.line(path == nil ? "no camera yet: waiting for one" : "no camera yet: \(error)", .warning)
      var relaxed = request
      // The stream has its size and rate before it knows what the camera has.
      relaxed.isSizeExplicit = false
      relaxed.isRateExplicit = false
      let format = SourceFormat(
        size: request.size, frameRate: request.frameRate, pixelFormat: .nv12, color: .bt709, conversion: "placeholder",
        turnsApart: true)
      return try ReconnectingCamera(
        waitingFor: path ?? "the first camera", format: format,
        finder: CameraFinder(selection, request: relaxed, fixedOrientation: fixed))
    }
  }

  /// Readies memory for turned pictures. Without it the stream goes on, and it is tried again when the picture turns.
  private func prepareTurning(_ source: any VideoSource) {
    do {
      try source.prepareTurning()
    } catch {
      terminal.warning("the picture may not turn: \(error)")
    }
  }

  /// One line each for camera, format, encoder and destinations, and what to paste to see the picture.
  private func introduce(
    _ source: any VideoSource, _ pipeline: Pipeline, _ selection: EncoderSelection,
    _ descriptions: SessionDescriptionFiles
  ) {
    let format = source.format
    let configuration = pipeline.encoder.configuration
    terminal.camera = source.name
    terminal.encoder = pipeline.encoder.name
    terminal.line("camera     \(source.name)")
    terminal.line(
      "format     \(format.size) at \(format.frameRate) fps, \(format.pixelFormat) (\(format.conversion)), "
        + "\(format.color)")
    terminal.line(
      "encoder    \(pipeline.encoder.name), \(Terminal.bitrate(Double(configuration.bitrate))), key frame every "
        + "\(Terminal.decimal(command.encoding.settings.keyFrameInterval.seconds, digits: 1)) s"
        + (selection.explanation.map { " (\($0))" } ?? ""))
    for entry in pipeline.destinations {
      let payload = entry.destination.payload == .h264 ? "H.264" : "MPEG-TS"
      let protection = entry.suite.map { ", \($0.rawValue)" } ?? ""
      terminal.line("to         \(entry.destination) (\(payload)\(protection))")
      let players = PlayerCommands(
        destination: entry.destination, address: entry.address, suite: entry.suite,
        sessionDescriptionPath: descriptions.path(of: entry.id), isSessionDescriptionTemporary: descriptions.isTemporary
      )
      if let preparation = players.preparation { terminal.line("  \(preparation)") }
      for (player, command) in players.commands {
        terminal.line("  \(player): \(command)")
      }
    }
  }

  /// Serves the stream by RTSP, and says how to watch it.
  private func serve(_ configuration: ServerConfiguration, _ pipeline: Pipeline) throws -> RTSPServer {
    let camera = Presentation(name: command.serving.path, pipeline: pipeline, group: command.serving.group)
    let server = try RTSPServer(configuration, presentations: [camera])
    let players = RTSPPlayerCommands(configuration: configuration, listeners: server.listeners, name: camera.name)
    for url in players.urls { terminal.line("rtsp       \(url)") }
    for listener in server.listeners where listener.isAbsent {
      terminal.warning("this machine has no address \(listener.address) now: it listens there once it has")
    }
    for (player, command) in players.commands { terminal.line("  \(player): \(command)") }
    if configuration.users == nil {
      terminal.line("  only this machine may ask; let others in with: nightjar user add NAME, and start it again")
    }
    if let group = camera.group {
      terminal.line(
        "multicast  \(group.address) port \(group.port): everybody on the network can watch while somebody here does")
    }
    return server
  }

  /// What the control API controls.
  private func controlTarget(
    _ pipeline: Pipeline, sourceName: String, _ adaptation: StreamAdaptation?
  ) -> any ControlTarget {
    var fixesQuality = false
    if case .constantQuantizer = command.encoding.settings.rateControl { fixesQuality = true }
    return StreamControl(
      StreamCamera(
        name: command.serving.path, pipeline, sourceName: sourceName, fixesQuality: fixesQuality,
        adaptation: adaptation))
  }

  /// Lets `nightjar ctl` in.
  ///
  /// - Throws: `ControlSocketError` where the socket was named; otherwise the stream goes without, and says so.
  private func startControl(_ target: any ControlTarget) throws -> ControlServer? {
    guard command.control != "none" else { return nil }
    do throws(ControlSocketError) {
      let path = command.control ?? ControlSocket.defaultPath
      let server = try ControlServer(path: path, target: target)
      let option = command.control.map { " --socket \($0)" } ?? ""
      terminal.line("control    nightjar ctl\(option) rotate 90; nightjar ctl\(option) status")
      return server
    } catch {
      guard command.control == nil else { throw error }
      terminal.line("control    none: \(error)", .warning)
      return nil
    }
  }

  /// Keeps the stream within what the machine can do.
  private func startAdapting(_ pipeline: Pipeline) throws -> AdaptationWatch? {
    guard command.adapts else { return nil }
    return try AdaptationWatch(pipeline, command.adaptation, sysfs: command.orientation.sysfs ?? "/sys")
  }

  /// Follows the box's sensor where that is wanted.
  private func followPosture(_ pipeline: Pipeline) throws -> PostureWatch? {
    guard command.orientation.orientation == .auto else { return nil }
    let mirrored = command.orientation.mirror
    return try PostureWatch(
      facing: command.orientation.facing ?? .away, sysfs: command.orientation.sysfs ?? "/sys",
      udev: command.orientation.udev
    ) { pipeline.orient(Orientation($0, mirrored: mirrored)) }
  }

  /// Waits for a signal, the end of the pipeline or of the time; shows what goes on meanwhile. Returns the signal.
  private func follow(
    _ pipeline: Pipeline, _ events: EventLog, _ posture: borrowing PostureWatch?, signals: CInt,
    _ descriptions: inout SessionDescriptionFiles, _ service: inout ServiceReport?
  ) -> CInt {
    let end = command.duration.map { MediaTime.now() + $0 }
    var display = StatusDisplay(terminal: terminal)
    let interval = MediaTime(nanoseconds: 1_000_000_000)
    var next = MediaTime.now() + interval
    var orientation = pipeline.orientation
    var refusal: String?
    while true {
      var descriptors = [
        pollfd(fd: signals, events: Int16(POLLIN), revents: 0),
        pollfd(fd: pipeline.ended.fileDescriptor, events: Int16(POLLIN), revents: 0),
      ]
      service?.look(pipeline, at: .now())
      let deadline = [end, service?.next].compactMap { $0 }.reduce(next, min)
      _ = nightjar_poll(&descriptors, 2, max(0, (deadline - .now()).nanoseconds))
      if descriptors[0].revents != 0 {
        let signal = nightjar_next_signal(signals)
        if signal != 0 { return signal }
      }
      if descriptors[1].revents != 0 { return 0 }
      let now = MediaTime.now()
      if let end, now >= end { return 0 }
      guard now >= next else { continue }
      next = now + interval
      events.tell()
      switch posture {
      case .some(let posture): for note in posture.takeNotes() { display.note(note) }
      case .none: break
      }
      if let new = pipeline.turnRefusal?.description, new != refusal {
        refusal = new
        display.note(new, .warning)
      }
      if pipeline.orientation != orientation {
        orientation = pipeline.orientation
        display.note("orientation \(orientation): \(orientation.size(of: pipeline.sourceFormat.size))")
      }
      let statistics = pipeline.statistics
      terminal.encoder = statistics.encoderName
      display.show(statistics, recent: pipeline.recentLatency())
      do {
        try descriptions.update()
      } catch {
        // The stream goes on; the file was writable at the start and may be again.
        display.note("session description not rewritten: \(error)", .warning)
      }
    }
  }
}
