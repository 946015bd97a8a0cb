import ArgumentParser
import Capture
import Control
import Credentials
import Diagnosis
import Glibc
import Media
import ThermalSensing

/// One examination of this machine, and of what it is to stream. It changes nothing.
final class Doctor {
  let display: FindingsDisplay
  private let arguments: [String]
  private let socket: String?
  /// The stream that runs already.
  var running: RunningStream?
  /// The encoders that were tried.
  var encoders: [EncoderTrial] = []

  /// - Parameters:
  ///   - arguments: those of `nightjar stream`.
  ///   - socket: where a running stream is asked; nil for where the configuration has it.
  init(arguments: [String], socket: String?, display: FindingsDisplay) {
    (self.arguments, self.socket, self.display) = (arguments, socket, display)
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
      for warning in box.warnings { tell(Finding(.configurationRemark, warning)) }
      let names = box.cameras.map(\.name).joined(separator: ", ")
      tell(
        Finding(
          .configuration,
          "\(box.path ?? "no file"): \(box.cameras.count) camera\(box.cameras.count == 1 ? "" : "s"): \(names)"))
      return box
    } catch let failure as any Failure {
      tell(broken(failure.description))
    } catch {
      tell(broken(Nightjar.message(for: error)))
    }
    return nil
  }

  private func broken(_ reason: String) -> Finding {
    let file = arguments.first { $0.hasPrefix("--config=") }.map { String($0.dropFirst("--config=".count)) }
    let line = reason.split(separator: "\n").first.map(String.init) ?? reason
    let named = file.map { " --config \(ShellWord.quoted($0))" } ?? ""
    // Where no file is read, what is wrong was typed.
    let isTyped = file == "none" || file == nil && line.hasPrefix("-")
    let mend = isTyped ? "nightjar stream --help" : "nightjar config check\(named)"
    return Finding(.configurationBroken, line, mends: [.command(mend)])
  }

  private func examineStream(_ box: BoxConfiguration?) {
    let configured = box?.box.control
    guard socket != nil || configured != "none" else {
      return tell(Finding(.stream, "it has no control socket: whether one runs is not known"))
    }
    let (stream, finding) = RunningStream.find(at: socket ?? configured ?? ControlSocket.clientPath)
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
    tell(MachineFindings.temperature(thresholds: thresholds))
    // The service has a limit of its own, and a login's says nothing about it.
    if service?.isInstalled != true || running != nil { tell(MachineFindings.realtime(stream: running?.process)) }
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
