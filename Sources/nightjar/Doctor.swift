import ArgumentParser
import Capture
import Control
import Credentials
import Diagnosis
import Glibc
import Media
import Settings
import ThermalSensing

/// One examination of this machine, and of what it is to stream. It changes nothing.
final class Doctor {
  let display: FindingsDisplay
  private let arguments: [String]
  private let options: [String]
  private let socket: String?
  /// The control socket that the stream is asked by, where it is not the usual one.
  private var control: String?
  /// The stream that runs already.
  var running: RunningStream?
  /// The encoders that were tried.
  var encoders: [EncoderTrial] = []

  /// - Parameters:
  ///   - config: the configuration file; nil for the one that `nightjar stream` would read.
  ///   - options: those of `nightjar stream`.
  ///   - socket: where a running stream is asked; nil for where the configuration has it.
  init(config: String?, options: [String], socket: String?, display: FindingsDisplay) {
    arguments = (config.map { ["--config=\($0)"] } ?? []) + options
    (self.options, self.socket, self.display) = (options, socket, display)
    control = socket
  }

  func examine() {
    display.looking(at: "the configuration")
    let box = configuration()
    display.looking(at: "the running stream")
    examineStream(box)
    let service = examineService(box)
    display.looking(at: "the machine")
    examineMachine(box, service)
    guard let box else { return }
    examineServers(box)
    examineCameras(box)
  }

  func tell(_ finding: Finding) { display.tell(finding) }

  /// What is to be streamed; nil where that cannot be known.
  private func configuration() -> BoxConfiguration? {
    do {
      let box = try BoxConfiguration.load(arguments: arguments, environment: ProcessEnvironment.variables)
      let check = Mend.command("nightjar config check" + Self.option("config", box.path))
      for warning in box.warnings { tell(Finding(.configurationRemark, warning, mends: [check])) }
      let names = box.cameras.map(\.name).joined(separator: ", ")
      tell(
        Finding(
          .configuration,
          "\(box.path ?? "no file"): \(box.cameras.count) camera\(box.cameras.count == 1 ? "" : "s"): \(names)"))
      return box
    } catch let failure as any Failure {
      tell(broken(failure.description))
    } catch {
      // What the parser of the command line says is about what was typed.
      tell(broken(Nightjar.message(for: error), isTyped: true))
    }
    return nil
  }

  private func broken(_ reason: String, isTyped: Bool = false) -> Finding {
    let words = CommandLineWords(arguments, options: StreamCommand.optionTable)
    let line = reason.split(separator: "\n").first.map(String.init) ?? reason
    // Where no file is read, what is wrong was typed.
    let isTyped = isTyped || words.configuration == "none" || words.configuration == nil && line.hasPrefix("-")
    let check = "nightjar config check" + Self.option("config", words.configuration)
    return Finding(.configurationBroken, line, mends: [.command(isTyped ? "nightjar stream --help" : check)])
  }

  /// An option and its value as a shell takes them, with a space before; nothing where there is no value.
  static func option(_ name: String, _ value: String?) -> String {
    value.map { " --\(name) \(ShellWord.quoted($0))" } ?? ""
  }

  /// `nightjar ctl` and `words`, for the stream that is looked at here.
  func controlCommand(_ words: String) -> String { "nightjar ctl \(words)" + Self.option("socket", control) }

  /// This examination by root, who has another usual file and another usual socket.
  var again: Mend {
    let words = CommandLineWords(arguments, options: StreamCommand.optionTable)
    let file = BoxConfiguration.path(words, ProcessEnvironment.variables) ?? "none"
    let rest = options.isEmpty ? "" : " -- " + options.map(ShellWord.quoted).joined(separator: " ")
    let socket = control ?? ControlSocket.clientPath
    return .asRoot("nightjar doctor" + Self.option("config", file) + Self.option("socket", socket) + rest)
  }

  private func examineStream(_ box: BoxConfiguration?) {
    let configured = box?.box.control
    guard socket != nil || configured != "none" else {
      return tell(Finding(.stream, "it has no control socket: whether one runs is not known"))
    }
    control = socket ?? configured
    let (stream, finding) = RunningStream.find(at: control ?? ControlSocket.clientPath, again: again)
    running = stream
    tell(finding)
  }

  private func examineService(_ box: BoxConfiguration?) -> ServiceState? {
    guard ServiceState.hasSystemd else {
      tell(Finding(.service, "systemd does not run here"))
      return nil
    }
    display.looking(at: "nightjar.service")
    let service = ServiceState.ask()
    for finding in (service ?? ServiceState(parsing: "")).findings { tell(finding) }
    guard let service, service.isInstalled, let user = service.user else { return service }
    var nodes = HardwareFindings.nodes
    if let box {
      for case .device(let path) in box.cameras.map(\.source) { nodes.append(path) }
      if box.cameras.contains(where: { $0.source == .auto }) { nodes += CameraNode.all }
    } else {
      nodes += CameraNode.all
    }
    for finding in MachineFindings.serviceGroups(user: user, nodes: nodes) { tell(finding) }
    return service
  }

  private func examineMachine(_ box: BoxConfiguration?, _ service: ServiceState?) {
    tell(ClockCondition.current.finding)
    var thresholds: ThermalThresholds?
    if case .thresholds(let given)? = box?.box.adaptation.thermal { thresholds = given }
    tell(MachineFindings.temperature(thresholds: thresholds, watching: controlCommand("status --watch")))
    // The service has a limit of its own, and a login's says nothing about it.
    if service?.isInstalled != true || running != nil {
      tell(MachineFindings.realtime(stream: running?.process, priority: running?.realTimePriority))
    }
  }
}

/// The nodes of cameras.
enum CameraNode {
  /// `path` with links resolved, or as it is where it leads nowhere.
  static func resolved(_ path: String) -> String {
    guard let target = realpath(path, nil) else { return path }
    defer { free(target) }
    return String(cString: target)
  }

  /// Those that are there, cameras or not.
  static var all: [String] {
    (0..<64).map { "/dev/video\($0)" }.filter { access($0, F_OK) == 0 }
  }
}
