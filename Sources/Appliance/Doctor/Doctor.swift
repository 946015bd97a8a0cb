import Capture
import Glibc
import Host
import Platform
import Serving
import Sound

/// An examination of this host and of the configured streams. The examination changes nothing.
package final class Doctor {
  /// Reads the configuration of the options of `nightjar stream`.
  private let load: ([String]) throws -> ApplianceConfiguration
  private let display: any DoctorDisplay
  private let arguments: [String]
  private let options: [String]
  private let socket: String?
  /// The stream's control socket, if another than the default.
  private var control: String?
  /// The stream that runs already.
  var running: RunningStream?
  /// The origin of that stream.
  var origin = StreamOrigin.user
  /// The trials of encoders so far.
  var encoders: [EncoderTrial] = []

  /// - Parameters:
  ///   - config: the configuration file; `nil` for the file that `nightjar stream` would read.
  ///   - options: the options of `nightjar stream`.
  ///   - socket: the control socket of a running stream; `nil` for the configured one.
  ///   - load: reads the configuration of the options of `nightjar stream`, those of the file and the environment too.
  package init(
    config: String?, options: [String], socket: String?, display: any DoctorDisplay,
    load: @escaping ([String]) throws -> ApplianceConfiguration
  ) {
    self.load = load
    arguments = (config.map { ["--config=\($0)"] } ?? []) + options
    (self.options, self.socket, self.display) = (options, socket, display)
    control = socket
  }

  /// Examines everything, and tells each finding.
  package func examine() {
    looking(at: "the configuration")
    let configuration = configuration()
    looking(at: "the running stream")
    examineStream(configuration)
    let service = examineService(configuration)
    looking(at: "the host")
    examineMachine(configuration, service)
    guard let configuration else { return }
    examineServers(configuration)
    examineDeliveries(configuration)
    examineCameras(configuration)
    examineSound(configuration)
  }

  func tell(_ finding: Finding) { display.tell(finding) }

  func looking(at what: String) { display.looking(at: what) }

  /// Returns the configuration; `nil` if the configuration cannot be read.
  private func configuration() -> ApplianceConfiguration? {
    do {
      let configuration = try load(arguments)
      let check = Mend.command("nightjar config check" + Self.option("config", configuration.path))
      for warning in configuration.warnings { tell(Finding(.configurationRemark, warning, mends: [check])) }
      let names = configuration.cameras.map(\.name)
      tell(
        Finding(
          .configuration,
          "\(configuration.path ?? "no file"): \(names.count) camera\(names.count == 1 ? "" : "s"): "
            + names.joined(separator: ", ")))
      return configuration
    } catch {
      tell(broken("\(error)", isTyped: error is CommandLineError))
      return nil
    }
  }

  private func broken(_ reason: String, isTyped: Bool) -> Finding {
    let words = CommandLineWords(arguments)
    let line = reason.split(separator: "\n").first.map(String.init) ?? reason
    // Without a file the error is in the typed options.
    let isTyped = isTyped || words.configuration == "none" || words.configuration == nil && line.hasPrefix("-")
    let check = "nightjar config check" + Self.option("config", words.configuration)
    return Finding(.configurationBroken, line, mends: [.command(isTyped ? "nightjar stream --help" : check)])
  }

  /// Returns an option and its value quoted for a shell, with a leading space; an empty string without a value.
  static func option(_ name: String, _ value: String?) -> String {
    value.map { " --\(name) \(ShellWord.quoted($0))" } ?? ""
  }

  /// Returns `nightjar ctl` and `words`, for the stream under examination.
  func controlCommand(_ words: String) -> String { "nightjar ctl \(words)" + Self.option("socket", control) }

  /// Returns `nightjar ctl` and `words` for one camera. If the stream has several, it must know which.
  func controlCommand(_ words: String, camera: String) -> String {
    controlCommand(words + (running?.hasSeveralCameras == true ? Self.option("camera", camera) : ""))
  }

  /// The remedy that repeats this examination as root, who has another default file and another default socket.
  var again: Mend {
    let words = CommandLineWords(arguments)
    let file = ApplianceConfiguration.path(words, ProcessEnvironment.variables) ?? "none"
    let rest = options.isEmpty ? "" : " -- " + options.map(ShellWord.quoted).joined(separator: " ")
    let socket = control ?? ControlSocket.clientPath
    return .asRoot("nightjar doctor" + Self.option("config", file) + Self.option("socket", socket) + rest)
  }

  private func examineStream(_ configuration: ApplianceConfiguration?) {
    let configured = configuration?.control
    guard socket != nil || configured != "none" else {
      return tell(Finding(.stream, "it has no control socket: the doctor cannot tell whether one runs"))
    }
    control = socket ?? configured
    let (stream, finding) = RunningStream.find(at: control ?? ControlSocket.clientPath, again: again)
    running = stream
    tell(finding)
  }

  private func examineService(_ configuration: ApplianceConfiguration?) -> ServiceState? {
    guard ServiceState.hasSystemd else {
      tell(Finding(.service, "systemd does not run here"))
      return nil
    }
    display.looking(at: "nightjar.service")
    let service = ServiceState.ask()
    for finding in (service ?? ServiceState(parsing: "")).findings { tell(finding) }
    if let process = service?.process, process == running?.process { origin = .service }
    guard let service, service.isInstalled, let user = service.user else { return service }
    var nodes = HardwareFindings.nodes
    if let configuration {
      for case .device(let path) in configuration.cameras.map(\.source) { nodes.append(path) }
      if configuration.cameras.contains(where: { $0.source == .auto }) { nodes += CameraNode.all }
      nodes += configuration.cameras.compactMap { microphoneNode(of: $0, in: configuration)?.path }
    } else {
      nodes += CameraNode.all
    }
    for finding in MachineFindings.serviceGroups(user: user, nodes: nodes) { tell(finding) }
    return service
  }

  private func examineMachine(_ configuration: ApplianceConfiguration?, _ service: ServiceState?) {
    tell(ClockCondition.current.finding)
    var thresholds: ThermalThresholds?
    if case .thresholds(let given)? = configuration?.cameras[0].adaptation.thermal { thresholds = given }
    tell(MachineFindings.temperature(thresholds: thresholds, watching: controlCommand("status --watch")))
    // The service has a limit of its own, which the limit of a login does not tell.
    if service?.isInstalled != true || running != nil {
      tell(MachineFindings.realtime(stream: running?.process, priority: running?.realTimePriority))
    }
  }
}

/// The device nodes of cameras.
enum CameraNode {
  /// Returns `path` with links resolved, or unchanged if the path leads nowhere.
  static func resolved(_ path: String) -> String {
    guard let target = realpath(path, nil) else { return path }
    defer { free(target) }
    return String(cString: target)
  }

  /// The existing video nodes, cameras or not.
  static var all: [String] {
    (0..<64).map { "/dev/video\($0)" }.filter { access($0, F_OK) == 0 }
  }
}

/// The display of an examination.
package protocol DoctorDisplay {
  /// Tells which object is examined now.
  func looking(at what: String)
  /// Shows one finding.
  func tell(_ finding: Finding)
}
