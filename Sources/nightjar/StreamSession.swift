import CLinux
import Control
import Credentials
import Discovery
import FrameTracing
import Glibc
import Listening
import Media
import RTSPServer
import Streaming
import SystemService

/// One run of `nightjar stream`, the box: from the options to the summary. Of the main thread alone.
final class StreamSession {
  let terminal = Terminal()
  let started: MediaTime
  /// How the configuration is read, at the start and again.
  let loadConfiguration: () throws -> BoxConfiguration
  var configuration: BoxConfiguration
  /// What systemd has opened for us.
  var sockets: [ActivationSocket] = []
  var slots: [CameraSlot] = []
  var serving: ServerConfiguration?
  var rtsp: RTSPServer?
  var servingAPI: NetworkControlServer.Configuration?
  var api: NetworkControlServer?
  var servingHTTP: ReadingServer.Configuration?
  var http: ReadingServer?
  /// What `nightjar ctl` asks.
  private var controlServer: ControlServer?
  /// Tells the network of the streams, where that is asked for.
  var announcer: ServiceAnnouncer?
  let wake: WakeUp
  /// What others may ask for, and see.
  let control: BoxControl
  var reloading: Reloading?
  /// Pipelines that have been stopped, and are to be waited for by whoever opens their cameras.
  var released: [Released] = []
  /// When the API's server is to be exchanged: once those who have asked for it by that server have their answer.
  var exchangeOfAPI: MediaTime?
  var isAPIStale = false
  /// Why there is no server that was asked for, or not for all cameras, as it was told last.
  var servingComplaints: [String: String] = [:]
  private var service: ServiceReport?
  /// Whether the start is done, and nothing that is missing ends the program any more.
  private var hasBegun = false
  /// What writes the frames' way down, where that is asked for.
  var trace: TraceRecorder?
  /// How many cameras there have been.
  private var lastNumber = 0
  /// Whether it is ended with the terminal that it was started from.
  private let hasTerminal: Bool

  /// - Throws: what `loadConfiguration` does, ``SystemFailure``.
  init(started: MediaTime, loadConfiguration: @escaping () throws -> BoxConfiguration) throws {
    self.started = started
    self.loadConfiguration = loadConfiguration
    configuration = try loadConfiguration()
    let terminal = Glibc.open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
    hasTerminal = terminal >= 0
    if hasTerminal { close(terminal) }
    wake = try WakeUp()
    control = BoxControl(wake, started: started, isMemoryLocked: configuration.box.scheduling.locksMemory)
  }

  /// A pipeline that has been stopped and may not have let go of its camera yet.
  struct Released {
    let slot: String
    let source: SourceSelection
    let pipeline: Pipeline
  }

  /// The options that are the box's, not a camera's.
  var box: StreamCommand { configuration.box }

  func run() throws {
    // Before any thread exists, so that all of them leave these signals to this one.
    let signals = nightjar_stop_signals()
    guard signals >= 0 else { throw SystemFailure("signalfd") }
    defer { close(signals) }
    // A destination takes two descriptors, and a shell often allows no more than 1024.
    nightjar_raise_descriptor_limit(65_536)
    let starting = try StartGuard(signals: signals, endsByHangup: hasTerminal)
    let notes = Notes()
    if let path = configuration.path { terminal.line("config     \(path)") }
    for warning in configuration.warnings { terminal.warning(warning) }
    try box.scheduling.lockMemory()
    let traceFile = try box.tracing.path.map { try OutputFile(checking: $0, isSecret: true) }
    if let traceFile { try startTracing(to: traceFile) }
    defer { trace?.end() }
    sockets = try ActivationSocket.take(known: RTSPOptions.socketNames)
    serving = try box.serving.configuration(sockets: sockets, notes)
    servingAPI = try box.api.configuration(box.serving, rtsp: serving, notes)
    servingHTTP = try box.http.configuration(box.serving, rtsp: serving)
    terminal.tell(notes)
    slots = configuration.streams.map(slot)
    let opened = slots.count == 1 ? try openOnly(slots[0]) : nil
    starting.end()
    hasBegun = true

    let report = try box.statisticsPath.flatMap { $0 == "-" ? nil : try OutputFile(checking: $0) }
    if let report, let traceFile, report.isSameFile(as: traceFile) {
      throw CommandFailure(kind: .usage, description: "--trace and --stats-json are the same file, \(report.path)")
    }
    defer { for slot in slots { slot.stream?.leave() } }
    if let opened {
      let stream = try CameraStream(opened, slots[0].camera.command, slots[0].terminal)
      slots[0].stream = stream
      slots[0].destinations = opened.destinations
      for (option, file) in [("--stats-json", report), ("--trace", traceFile)] {
        guard let file, let path = stream.descriptionPath(sharedWith: file) else { continue }
        throw CommandFailure(kind: .usage, description: "--sdp and \(option) are the same file, \(path)")
      }
      stream.introduce()
    }
    // Who asks a server as soon as it listens is to find the camera.
    publish()
    controlServer = try startControl()
    defer { controlServer?.stop() }
    if let servingAPI { api = try serveAPI(servingAPI) }
    defer { api?.stop() }
    if let servingHTTP { http = try serveHTTP(servingHTTP) }
    defer { http?.stop() }
    if let serving { rtsp = try serve(serving) }
    defer { rtsp?.stop() }
    publish()
    if terminal.isInteractive { terminal.line("Ctrl-C ends it.") }
    for slot in slots {
      // One of several is opened on a thread of its own, so that none waits for another.
      if let stream = slot.stream { try stream.start() } else { open(slot) }
    }
    service = ServiceReport(terminal: terminal, at: .now())
    let ending = follow(signals: signals)
    service?.stopping()
    control.end()
    announcer?.stop()
    let failure = finish()
    trace?.end()
    tellTraceEvents()
    try tellSummary(report)
    if ending != .signal, let failure { throw failure }
  }

  /// Opens the only camera; where that fails, the program does.
  private func openOnly(_ slot: CameraSlot) throws -> OpenedCamera {
    let notes = Notes()
    defer { slot.terminal.tell(notes) }
    slot.keepsStandby = true
    return try OpenedCamera.open(
      slot.camera.command, in: place(of: slot), slot.controlsForOpening(), notes)
  }

  /// A place for a camera of the configuration.
  func slot(_ camera: BoxConfiguration.Camera) -> CameraSlot {
    lastNumber += 1
    return CameraSlot(
      camera, number: lastNumber,
      CameraTerminal(terminal, name: configuration.streams.count > 1 ? camera.name : nil))
  }

  /// What a camera may do in this box.
  func place(of slot: CameraSlot) -> OpenedCamera.Place {
    OpenedCamera.Place(
      isServed: serving != nil, isOneOfSeveral: configuration.streams.count > 1, waitsForDestinations: waits,
      keepsStandby: slot.keepsStandby,
      started: started, trace: CameraTrace(number: slot.number, name: slot.name, recorder: trace))
  }

  /// Whether it goes on without destinations that are not there: where it runs already, has something else to do, or is a
  /// service, which starts before there is a network.
  private var waits: Bool {
    hasBegun || configuration.streams.count > 1 || serving != nil || servingAPI != nil || servingHTTP != nil
      || ServiceNotifier.isService
  }

  /// Serves the streams by RTSP, and says how to watch them.
  func serve(_ configuration: ServerConfiguration) throws -> RTSPServer {
    let server = try RTSPServer(configuration, presentations: presentations)
    for slot in slots {
      let players = RTSPPlayerCommands(configuration: configuration, listeners: server.listeners, name: slot.name)
      for url in players.urls { terminal.line("rtsp       \(url)") }
      // Of several cameras the first one's will do for an example.
      guard slot === slots.first else { continue }
      for (player, command) in players.commands { terminal.line("  \(player): \(command)") }
    }
    for listener in server.listeners where listener.isAbsent {
      terminal.warning("this machine has no address \(listener.address) now: it listens there once it has")
    }
    if configuration.users == nil {
      terminal.line(
        "  only this machine may watch; let others in: \(ServiceAccount.addingUser); "
          + ServiceAccount.reloading)
    }
    for presentation in presentations {
      guard let group = presentation.group else { continue }
      terminal.line(
        "multicast  \(group.address) port \(group.port): everybody on the network can watch while somebody here does")
    }
    return server
  }

  /// Where a camera is to be seen that has come while the server runs.
  func introduceURLs(of slot: CameraSlot) {
    guard let serving, let rtsp else { return }
    let players = RTSPPlayerCommands(configuration: serving, listeners: rtsp.listeners, name: slot.name)
    for url in players.urls { terminal.line("rtsp       \(url)") }
  }

  /// Lets `nightjar ctl` in.
  ///
  /// - Throws: `ControlSocketError` where the socket was named; otherwise the stream goes without, and says so.
  private func startControl() throws -> ControlServer? {
    guard box.control != "none" else { return nil }
    do throws(ControlSocketError) {
      let path = box.control ?? ControlSocket.defaultPath
      let server = try ControlServer(path: path, target: control)
      let option = box.control.map { " --socket \($0)" } ?? ""
      let camera = slots.count > 1 ? " --camera \(slots[0].name)" : ""
      terminal.line("control    nightjar ctl\(option) rotate 90\(camera); nightjar ctl\(option) status")
      return server
    } catch {
      guard box.control == nil else { throw error }
      terminal.line("control    none: \(error)", .warning)
      return nil
    }
  }

  // MARK: While it streams

  /// What ended the run.
  private enum Ending {
    case signal
    case time
    /// No camera has anything more to stream.
    case cameras
  }

  private static let interval = MediaTime(seconds: 1)
  /// How often it is tried again to listen.
  private static let servingInterval = MediaTime(seconds: 10)

  /// Waits for a signal, the end of all cameras or of the time; shows what goes on meanwhile.
  private func follow(signals: CInt) -> Ending {
    let end = box.duration.map { MediaTime.now() + $0 }
    var next = MediaTime.now() + Self.interval
    var nextServing = next + Self.servingInterval
    // Kept, so that looking allocates nothing.
    var polled: [pollfd] = []
    while true {
      lookForService()
      var deadline = min(next, end ?? next)
      deadline = min(deadline, service?.next ?? deadline)
      deadline = min(deadline, exchangeOfAPI ?? deadline)
      polled.removeAll(keepingCapacity: true)
      polled.append(pollfd(fd: signals, events: Int16(POLLIN), revents: 0))
      polled.append(pollfd(fd: wake.fileDescriptor, events: Int16(POLLIN), revents: 0))
      for slot in slots {
        if let retry = slot.retry { deadline = min(deadline, retry) }
        if slot.search == nil, let next = slot.missing.next { deadline = min(deadline, next) }
        // One that something is done about is looked at when that is done.
        guard slot.work == nil, let stream = slot.stream else { continue }
        polled.append(pollfd(fd: stream.pipeline.ended.fileDescriptor, events: Int16(POLLIN), revents: 0))
      }
      _ = nightjar_poll(&polled, UInt32(polled.count), max(0, (deadline - .now()).nanoseconds))
      if polled[0].revents != 0 {
        let signal = nightjar_next_signal(signals)
        // A terminal that is closed ends what runs on it; a service is asked to read its configuration again.
        if signal == SIGHUP, !hasTerminal {
          control.askForReload()
        } else if signal != 0 {
          return .signal
        }
      }
      if polled[1].revents != 0 {
        wake.clear()
        takeWork()
        if exchangeOfAPI == nil { takeReloads() }
      }
      if endStreams() { return .cameras }
      let now = MediaTime.now()
      if let due = exchangeOfAPI, now >= due { exchangeAPI() }
      if let end, now >= end { return .time }
      for slot in slots where slot.retry.map({ $0 <= now }) ?? false { open(slot) }
      for slot in slots { lookForDestinations(of: slot, at: now) }
      guard now >= next else { continue }
      next = now + Self.interval
      look()
      lookAtReload()
      // Why a camera does not stream may have changed.
      if slots.contains(where: { $0.stream == nil }) { publish() }
      if now >= nextServing {
        nextServing = now + Self.servingInterval
        serveAgain()
      }
    }
  }

  private func lookForService() {
    guard service != nil else { return }
    let pipelines = slots.compactMap { slot in slot.stream.map { (name: slot.name, pipeline: $0.pipeline) } }
    let isWaiting = slots.allSatisfy { $0.stream != nil || $0.isSeenTo }
    service?.look(
      pipelines, isServing: rtsp != nil || slots.contains { $0.missing.next != nil }, isWaiting: isWaiting,
      isAlone: slots.count == 1, at: .now()
    ) { [self] in
      beginAnew($0)
    }
  }

  /// Shows what went on; once a second.
  private func look() {
    tellServerEvents()
    tellTraceEvents()
    control.figures.look(rtsp: rtsp, https: api, http: http)
    let live = slots.compactMap { slot -> String? in
      slot.stream?.look().map { slots.count > 1 ? "\(slot.name) \($0)" : $0 }
    }
    if !live.isEmpty { terminal.live(live.joined(separator: "  |  ")) }
    for slot in slots {
      slot.noteProgress()
      if let work = slot.work { slot.terminal.tell(work.notes) }
    }
  }

  /// Sees to pipelines that have ended by themselves; true where nothing is left to stream.
  private func endStreams() -> Bool {
    for slot in slots {
      guard slot.work == nil, let stream = slot.stream, stream.pipeline.ended.hasFired() else { continue }
      // The only camera's end is the program's.
      if slots.count == 1, reloading == nil { return true }
      let outcome = stream.finish()
      slot.report = StreamReport(stream, name: slot.name)
      slot.stream = nil
      publish()
      switch outcome {
      case .failed(let error): slot.fail(error, at: .now())
      case .sourceEnded, .stopped:
        slot.isOver = true
        slot.terminal.line("the source has come to its end", event: "ended")
      }
    }
    return slots.allSatisfy { $0.isOver && $0.work == nil }
  }

  /// Opens a camera on a thread of its own, once whatever had it before has let go of it.
  func open(_ slot: CameraSlot) {
    slot.keepsStandby = slots.count { $0 !== slot && $0.keepsStandby } < BoxConfiguration.standbyLimit
    let command = slot.camera.command
    let former = released.filter { $0.slot == slot.name || $0.source == command.source }
    released.removeAll { $0.slot == slot.name || $0.source == command.source }
    do {
      slot.open(
        by: try CameraWork.open(
          command, in: place(of: slot), slot.controlsForOpening(), after: former.map(\.pipeline), wake))
    } catch {
      released += former
      slot.fail(error, at: .now())
    }
  }

  /// Stops what a camera streams. It ends by ``open(_:)``, or by ``closeReleased()``.
  func release(_ slot: CameraSlot, source: SourceSelection) {
    slot.keepsStandby = false
    guard let stream = slot.stream else { return }
    slot.stream = nil
    stream.stop()
    stream.leave()
    released.append(Released(slot: slot.name, source: source, pipeline: stream.pipeline))
  }

  /// Ends the pipelines that nobody waits for.
  func closeReleased() {
    for former in released {
      // Without a thread it ends with the program.
      try? CameraWork.close(former.pipeline)
    }
    released.removeAll()
  }

  /// Begins a stream anew that stands still; one that does so again and again after growing pauses.
  private func beginAnew(_ name: String) {
    guard let slot = slots.first(where: { $0.name == name }), slot.work == nil, slot.stream != nil else { return }
    slot.standstills += 1
    release(slot, source: slot.camera.command.source)
    // It may never end, and then leaves threads behind.
    closeReleased()
    if slot.standstills <= 2 {
      open(slot)
    } else {
      slot.fail(CommandFailure(kind: .software, description: "it stands still again and again"), at: .now())
    }
    // What is being opened again by now does not come and go.
    publish()
  }

  // MARK: The end

  /// Ends all streams; why one that ended by itself did.
  private func finish() -> (any Error)? {
    for slot in slots { slot.stream?.stop() }
    var failure: (any Error)?
    for slot in slots {
      guard let stream = slot.stream else { continue }
      if case .failed(let error) = stream.finish() { failure = failure ?? error }
    }
    tellServerEvents()
    return failure
  }

  func tellServerEvents() {
    for event in rtsp?.events.take() ?? [] {
      terminal.line(event.description, event.isWarning ? .warning : .info, event: "viewer")
    }
    for event in announcer?.takeEvents() ?? [] {
      terminal.line(TerminalText.escaped(event.description), event.isWarning ? .warning : .info, event: "announcement")
    }
    if let controlServer { tell(controlServer.events.take(), of: "control") }
    if let api { tell(api.events.take(), of: "control") }
    if let http { tell(http.events.take(), of: "http") }
  }

  private func tell(_ events: [ControlEvent], of service: String) {
    for event in events {
      // What was asked for is in it, in the words of whoever asked.
      terminal.line(
        TerminalText.escaped(event.line(of: service)), event.isWarning ? .warning : .info,
        event: event.isOfViewer ? "viewer" : "control")
    }
  }

  private func tellSummary(_ report: OutputFile?) throws {
    terminal.finish()
    let reports = slots.compactMap { slot in
      (slot.stream.map { StreamReport($0, name: slot.name) } ?? slot.report).map { (slot, $0) }
    }
    for (slot, report) in reports { slot.terminal.line(report.text, event: "ended") }
    let json = StreamReport.json(of: reports.map(\.1), isOneOfSeveral: slots.count > 1)
    if let report {
      try report.write(json)
    } else if box.statisticsPath == "-" {
      try writeOutput(json)
    }
  }
}
