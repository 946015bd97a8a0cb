import Alerts
import CLinux
import Delivery
import Glibc
import Host
import Media
package import Platform
import Serving
import Streaming

/// One run of `nightjar stream`, from the options to the summary. Only the main thread uses it.
package final class StreamSession {
  let terminal = Terminal()
  let started: Instant
  /// Reads the configuration, at the start and at each reload.
  let loadConfiguration: () throws -> ApplianceConfiguration
  /// The configuration of the appliance.
  var configuration: ApplianceConfiguration { table.configuration }
  /// The state of the cameras.
  var table: CameraTable
  /// The sockets that systemd has opened for this process.
  var sockets: [ActivationSocket] = []
  /// The effects of the table that are still to be carried out, and `true` while one is.
  var waitingEffects: [CameraTable.Effect] = []
  var isPerforming = false
  /// The resources of the cameras, in the order of the table.
  var slots: [CameraSlot] = []
  /// The state of the servers, and the servers that run.
  var servers = ServerTable(at: .now())
  var rtsp: RTSPServer?
  var api: HTTPServer?
  /// The server of browsers; nil if no page is served, or its port is in use.
  var peers: PeerServer?
  var http: HTTPServer?
  /// The state of the files of users and tokens when they were last read.
  var credentialFiles: CredentialFiles
  /// The time of the next check of the host's own certificate.
  var nextCertificateCheck = Instant.now()
  /// The server that `nightjar ctl` sends its requests to.
  private var controlServer: HTTPServer?
  /// Announces the streams on the network, if the configuration requests announcements.
  var announcer: ServiceAnnouncer?
  let wake: WakeUp
  /// The processors that the program may use for all cameras and viewers.
  let budget: ProcessorBudget
  /// The appliance's state and requests, shared with its servers.
  let control: ApplianceControl
  /// The watch for alerts.
  let alertWatch: AlertWatch
  /// The deliveries of events to other systems.
  let outputs: EventOutputs
  /// The deliveries of alerts to browsers whose page is closed.
  let push: PushOutputs
  /// The reason why the history of events is in memory although a service keeps it in a file; nil if there is none.
  private let historyError: AlertJournal.OpenError?
  /// The pipelines that have been stopped. The next work on one of their cameras waits for their end.
  var released: [Released] = []
  /// The last message told of each service that lacks something.
  var complaints: [String: String] = [:]
  var service: ServiceReport?
  /// `true` once the start is done. From then on nothing that is missing ends the program.
  private var hasBegun = false
  /// The recorder of the frame trace, if a trace is requested.
  var trace: TraceRecorder?
  /// `true` if the program has a controlling terminal, and ends with that terminal.
  private let hasTerminal: Bool

  /// - Throws: the errors of `loadConfiguration`, and ``SystemFailure``.
  package init(started: Instant, loadConfiguration: @escaping () throws -> ApplianceConfiguration) throws {
    self.started = started
    self.loadConfiguration = loadConfiguration
    let configuration = try loadConfiguration()
    table = CameraTable(configuration, isServed: false)
    credentialFiles = CredentialFiles(configuration)
    hasTerminal = (try? FileDescriptor("/dev/tty", O_RDWR | O_NOCTTY)) != nil
    wake = try WakeUp()
    budget = ProcessorBudget(share: configuration.processorShare)
    let (alerts, error) = try configuration.events.history()
    historyError = error
    control = ApplianceControl(wake, started: started, isMemoryLocked: configuration.locksMemory, alerts: alerts)
    outputs = EventOutputs(alerts, control.figures.deliveries)
    push = PushOutputs(alerts, control.figures.deliveries)
    alertWatch = AlertWatch(control.figures, alerts, outputs.feed, configuration.events)
  }

  /// A pipeline that has been stopped and may still hold its camera.
  struct Released {
    let slot: String
    let source: SourceSelection
    let pipeline: Pipeline
  }

  package func run() throws {
    // Before any thread exists, so that all threads leave these signals to this one.
    let signals = try FileDescriptor(from: "signalfd", nightjar_stop_signals)
    // The first thread of all, so that measurements can tell it from those that frames pass through.
    try alertWatch.start()
    defer { alertWatch.stop() }
    outputs.feed.set(configuration.cameras.map(\.forMQTT))
    try outputs.follow(configuration.events.outputPlan())
    defer { outputs.end(with: push.stop()) }
    // A destination takes two descriptors, and a shell often allows no more than 1024.
    nightjar_raise_descriptor_limit(65_536)
    let starting = try StartGuard(signals: signals.number, endsByHangup: hasTerminal)
    let notes = Notes()
    if let path = configuration.path { terminal.line("config     \(path)") }
    for warning in configuration.warnings { terminal.warning(warning) }
    if let historyError { terminal.warning("\(historyError); the history of events is in memory") }
    if let error = push.error, configuration.api.https != nil, configuration.events.push.isOn {
      terminal.warning("\(error); no browser is told by push")
    }
    try configuration.lockMemory()
    let traceFile = try configuration.tracePath.map { try OutputFile(checking: $0, isSecret: true) }
    if let traceFile { try startTracing(to: traceFile) }
    defer { trace?.end() }
    sockets = try ActivationSocket.take(known: RTSPSettings.socketNames)
    servers = ServerTable(try servers(of: configuration, notes), at: .now())
    credentialFiles.noteOwn()
    terminal.tell(notes)
    table = CameraTable(configuration, isServed: serving != nil)
    for entry in table.entries { add(entry.number) }
    let opened = slots.count == 1 ? try openOnly(slots[0]) : nil
    starting.end()
    hasBegun = true

    let report = try configuration.statisticsPath.flatMap { $0 == "-" ? nil : try OutputFile(checking: $0) }
    if let report, let traceFile, report.isSameFile(as: traceFile) {
      throw ApplianceFailure(kind: .usage, description: "--trace and --stats-json are the same file, \(report.path)")
    }
    defer { for slot in slots { slot.stream?.leave() } }
    if let opened {
      let stream = try CameraStream(opened, configuration.cameras[0], slots[0].terminal, budget)
      slots[0].stream = stream
      slots[0].controlled.follow(stream.pipeline.sound)
      slots[0].destinations = opened.destinations
      for (option, file) in [("--stats-json", report), ("--trace", traceFile)] {
        guard let file, let path = stream.descriptionPath(sharedWith: file) else { continue }
        throw ApplianceFailure(kind: .usage, description: "--sdp and \(option) are the same file, \(path)")
      }
      stream.introduce()
    }
    // A client that sends a request as soon as a server listens must find the camera.
    publish()
    controlServer = try startControl()
    defer { controlServer?.stop() }
    defer { stopServers() }
    try begin(.https)
    // Without its port, browsers get pictures one by one.
    if servers.isWanted(.webRTC) { handleServers(attempt(.webRTC)) }
    try begin(.http)
    try begin(.rtsp)
    publish()
    if terminal.isInteractive { terminal.line("Ctrl-C ends it.") }
    // One of several cameras is opened on a thread of its own, so that no camera waits for another.
    if let stream = slots[0].stream { try stream.start() } else { perform(table.begin(at: .now())) }
    service = ServiceReport(at: .now())
    let ending = follow(signals: signals.number)
    service?.stopping()
    control.end()
    announcer?.stop()
    let failure = finish()
    trace?.end()
    tellTraceEvents()
    try tellSummary(report)
    if ending != .signal, let failure { throw failure }
  }

  /// Opens the only camera. If opening fails, the program fails.
  private func openOnly(_ slot: CameraSlot) throws -> OpenedCamera {
    let notes = Notes()
    defer { slot.terminal.tell(notes) }
    table.beginAlone(at: .now())
    let entry = table.entries[0]
    return try OpenedCamera.open(
      entry.configuration, in: place(of: entry), slot.controlsForOpening(entry.configuration), notes,
      tell: { slot.terminal.tell(notes) })
  }

  /// `true` if the program goes on without destinations that are missing. Three cases allow this: the program runs
  /// already, the program has something else to do, or the program is a service, which starts before there is a
  /// network.
  var waits: Bool {
    hasBegun || configuration.cameras.count > 1 || serving != nil || servingAPI != nil || servingHTTP != nil
      || ServiceNotifier.isService
  }

  /// Starts the control server for `nightjar ctl`.
  ///
  /// - Throws: `ControlSocketError` if the configuration names the socket. Otherwise the stream goes on without a
  ///   control server, and a warning says so.
  private func startControl() throws -> HTTPServer? {
    guard configuration.control != "none" else { return nil }
    do throws(ControlSocketError) {
      let path = configuration.control ?? ControlSocket.defaultPath
      let server = try HTTPServer(path: path, target: control)
      let option = configuration.control.map { " --socket \($0)" } ?? ""
      let camera = slots.count > 1 ? " --camera \(slots[0].name)" : ""
      terminal.line("control    nightjar ctl\(option) rotate 90\(camera); nightjar ctl\(option) status")
      return server
    } catch {
      guard configuration.control == nil else { throw error }
      terminal.line("control    none: \(error)", .warning)
      return nil
    }
  }

  // MARK: While it streams

  /// The reason why the run ended.
  private enum Ending {
    case signal
    case time
    /// No camera has anything more to stream.
    case cameras
  }

  private static let interval = Duration(seconds: 1)

  /// Waits for a signal, the end of all cameras or the end of the duration. Meanwhile shows the progress.
  private func follow(signals: CInt) -> Ending {
    let end = configuration.duration.map { Instant.now() + $0 }
    var next = Instant.now() + Self.interval
    // Kept, so that polling allocates nothing.
    var polled: [pollfd] = []
    while true {
      lookForService()
      var deadline = min(next, end ?? next)
      deadline = min(deadline, service?.next ?? deadline)
      deadline = min(deadline, servers.deadline ?? deadline)
      polled.removeAll(keepingCapacity: true)
      polled.append(pollfd(fd: signals, events: Int16(POLLIN), revents: 0))
      polled.append(pollfd(fd: wake.fileDescriptor, events: Int16(POLLIN), revents: 0))
      deadline = min(deadline, table.deadline ?? deadline)
      for slot in slots {
        if slot.search == nil, let next = slot.missing.next { deadline = min(deadline, next) }
        // A camera with work under way is checked when the work is done.
        guard slot.work == nil, let stream = slot.stream else { continue }
        polled.append(pollfd(fd: stream.pipeline.ended.fileDescriptor, events: Int16(POLLIN), revents: 0))
      }
      _ = nightjar_poll(&polled, UInt32(polled.count), max(0, (deadline - .now()).nanoseconds))
      if polled[0].revents != 0 {
        let signal = nightjar_next_signal(signals)
        // A terminal that is closed ends the programs that run on it. For a service, SIGHUP requests a reload.
        if signal == SIGHUP, !hasTerminal {
          control.askForReload()
        } else if signal != 0 {
          return .signal
        }
      }
      if polled[1].revents != 0 {
        wake.clear()
        takeWork()
        if !servers.isExchanging { takeReload() }
      }
      if endStreams() { return .cameras }
      let now = Instant.now()
      if let deadline = servers.deadline, deadline <= now { handleServers(.tick) }
      if let end, now >= end { return .time }
      if let deadline = table.deadline, deadline <= now { handle(.tick) }
      for slot in slots { lookForDestinations(of: slot, at: now) }
      guard now >= next else { continue }
      next = now + Self.interval
      look()
      followCredentials()
      push.follow(configuration.events.push, servingAPI)
      handle(.tick)
      // The reason why a camera does not stream may have changed.
      if slots.contains(where: { $0.stream == nil }) { publish() }
      handleServers(.tick)
    }
  }

  private func lookForService() {
    let now = Instant.now()
    guard let next = service?.next, now >= next else { return }
    let pipelines = slots.compactMap { slot in
      slot.stream.map { (name: slot.name, pipeline: $0.pipeline, snapshots: slot.snapshots) }
    }
    service?.report(
      pipelines, isServing: rtsp != nil || slots.contains { $0.missing.next != nil },
      isWaiting: table.isWaiting(at: now), at: now)
    guard let limit = service?.limit else { return }
    let streams = slots.compactMap { slot in slot.stream.map { (slot.number, $0.pipeline) } }
    handle(
      .progress(
        Dictionary(uniqueKeysWithValues: streams.map { ($0, $1.progress) }),
        frameIntervals: Dictionary(uniqueKeysWithValues: streams.map { ($0, $1.sourceFormat.frameRate.interval) }),
        limit: limit))
  }

  /// Shows the events since the last call; called once a second.
  private func look() {
    tellServerEvents()
    tellTraceEvents()
    control.figures.look(rtsp: rtsp, https: api, http: http, peers: peers)
    let live = slots.compactMap { slot -> String? in
      slot.stream?.look(slot.snapshots).map { slots.count > 1 ? "\(slot.name) \($0)" : $0 }
    }
    if !live.isEmpty { terminal.live(live.joined(separator: "  |  ")) }
    for slot in slots { if let work = slot.work { slot.terminal.tell(work.notes) } }
  }

  // MARK: The end

  /// Ends all streams. Returns the error of the first stream that failed by itself.
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
    for report in outputs.takeReports() + push.takeReports() {
      // The line may hold words of the other side.
      terminal.line(TerminalText.escaped(report.text), report.isWarning ? .warning : .info, event: "delivery")
    }
    if let complaint = push.takeComplaint() { terminal.line(complaint, .warning, event: "delivery") }
    // Before the servers' events: a client that is back after more than a minute has left before.
    for slot in slots { tell(slot.snapshots.takeGone(of: slots.count > 1 ? slot.name : nil), of: "http") }
    if let controlServer { tell(controlServer.events.take(), of: "control") }
    if let api { tell(api.events.take(), of: "control") }
    if let http { tell(http.events.take(), of: "http") }
    tellPeerEvents()
  }

  func tellPeerEvents() {
    for event in peers?.events.take() ?? [] {
      terminal.line(event.description, event.isWarning ? .warning : .info, event: "viewer")
    }
  }

  private func tell(_ events: [ControlEvent], of service: String) {
    for event in events {
      // The line holds words of the client's request.
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
    } else if configuration.statisticsPath == "-" {
      try writeOutput(json)
    }
  }
}
