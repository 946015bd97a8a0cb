import Glibc
public import Media

/// How nightjar.service is, as `systemctl show` tells it.
public struct ServiceState: Sendable {
  /// What is asked for.
  private static let properties = [
    "LoadState", "ActiveState", "SubState", "UnitFileState", "NRestarts", "Result", "ExecMainStatus", "User",
  ]
  private let values: [String: String]

  /// What systemctl wrote, a `NAME=VALUE` a line.
  public init(parsing text: String) {
    var values: [String: String] = [:]
    for line in text.split(separator: "\n") {
      guard let sign = line.firstIndex(of: "=") else { continue }
      values[String(line[..<sign])] = AttributeFile.printable(String(line[line.index(after: sign)...]))
    }
    self.values = values
  }

  /// Whether systemd runs this machine, or this container.
  public static var hasSystemd: Bool { access("/run/systemd/system", F_OK) == 0 }

  /// Asks systemctl; nil where it does not answer within `patience`.
  public static func ask(patience: MediaTime = MediaTime(seconds: 3)) -> ServiceState? {
    let words = ["systemctl", "show", "--no-pager", "-p", properties.joined(separator: ","), "nightjar.service"]
    return CommandOutput.text(words, patience: patience).map(ServiceState.init(parsing:))
  }

  /// Whether there is such a unit.
  public var isInstalled: Bool { values["LoadState"].map { !["", "not-found"].contains($0) } ?? false }
  /// The user that it runs as; nil where it is root.
  public var user: String? { values["User"].flatMap { $0.isEmpty || $0 == "root" ? nil : $0 } }

  /// What is to be said of it, the worst first.
  public var findings: [Finding] {
    guard values["LoadState"] != nil else {
      return [
        Finding(
          .serviceSilent, "systemctl tells nothing of nightjar.service",
          mends: [.command("systemctl is-system-running; systemctl status nightjar")])
      ]
    }
    guard isInstalled else {
      return [Finding(.service, "nightjar.service is not installed: nothing streams from boot on (make install)")]
    }
    guard values["LoadState"] != "masked" else {
      return [
        Finding(
          .serviceMasked, "nightjar.service is masked",
          mends: [.asRoot("systemctl unmask nightjar", "systemctl start nightjar")])
      ]
    }
    guard let load = values["LoadState"], !["bad-setting", "error"].contains(load) else {
      return [
        Finding(
          .serviceBroken, "systemd cannot read nightjar.service: \(values["LoadState"] ?? "")",
          mends: [
            .command("systemd-analyze verify nightjar.service"), .asRoot("systemctl daemon-reload"),
          ])
      ]
    }
    let active = values["ActiveState"] ?? ""
    let restarts = Int(values["NRestarts"] ?? "") ?? 0
    // It has just failed, and waits for its next start.
    let isCrashing = values["SubState"]?.hasPrefix("auto-restart") == true
    var found: [Finding] = []
    switch active {
    case "failed":
      let status = values["ExecMainStatus"].map { ", exit code \($0)" } ?? ""
      found.append(
        Finding(
          .serviceFailed, "nightjar.service has failed: \(values["Result"] ?? "unknown")\(status)",
          mends: [
            .asRoot("journalctl -u nightjar -n 20 --no-pager"),
            .asRoot("systemctl restart nightjar"),
          ]))
    case "inactive":
      found.append(
        Finding(.serviceStopped, "nightjar.service does not run", mends: [.asRoot("systemctl start nightjar")]))
    default:
      guard !isCrashing else { break }
      found.append(
        Finding(
          .service,
          "nightjar.service is \(active)\(values["SubState"].map { " (\($0))" } ?? ""), "
            + "\(values["UnitFileState"] ?? ""), started again \(restarts) times",
          figures: ["restarts": Double(restarts)]))
    }
    if restarts >= 3 || isCrashing {
      let result = values["Result"].map { " (\($0))" } ?? ""
      found.append(
        Finding(
          .serviceRestarts,
          isCrashing
            ? "nightjar.service has failed\(result) and is about to be started again, after \(restarts) times"
            : "nightjar.service was started again \(restarts) times",
          mends: [.asRoot("journalctl -u nightjar -p warning -n 20 --no-pager")],
          figures: ["restarts": Double(restarts)]))
    }
    if active == "active", values["UnitFileState"] == "disabled" {
      found.append(
        Finding(
          .serviceDisabled, "nightjar.service runs, and is started neither at boot nor by a camera",
          mends: [.asRoot("systemctl enable nightjar")]))
    }
    return found.sorted { $0.status > $1.status }
  }
}
