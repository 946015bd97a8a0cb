import Glibc
package import Platform

/// The state of nightjar.service, from `systemctl show`.
package struct ServiceState: Sendable {
  /// The requested properties.
  private static let properties = [
    "LoadState", "ActiveState", "SubState", "UnitFileState", "NRestarts", "Result", "ExecMainStatus", "User", "MainPID",
  ]
  private let values: [String: String]

  /// Parses the output of systemctl, one `NAME=VALUE` a line.
  package init(parsing text: String) {
    var values: [String: String] = [:]
    for line in text.split(separator: "\n") {
      guard let sign = line.firstIndex(of: "=") else { continue }
      values[String(line[..<sign])] = AttributeFile.printable(String(line[line.index(after: sign)...]))
    }
    self.values = values
  }

  /// `true` if systemd runs this machine or container.
  package static var hasSystemd: Bool { access("/run/systemd/system", F_OK) == 0 }

  /// Queries systemctl; returns nil where it does not answer within `patience`.
  package static func ask(patience: Duration = Duration(seconds: 3)) -> ServiceState? {
    let words = ["systemctl", "show", "--no-pager", "-p", properties.joined(separator: ","), "nightjar.service"]
    return CommandOutput.text(words, patience: patience).map(ServiceState.init(parsing:))
  }

  /// `true` if the unit exists.
  package var isInstalled: Bool { values["LoadState"].map { !["", "not-found"].contains($0) } ?? false }
  /// The user of the service; nil for root.
  package var user: String? { values["User"].flatMap { $0.isEmpty || $0 == "root" ? nil : $0 } }

  /// The process of the service; nil if the service does not run.
  package var process: Int32? { values["MainPID"].flatMap { Int32($0) }.flatMap { $0 > 0 ? $0 : nil } }

  /// The findings on the service, the worst first.
  package var findings: [Finding] {
    guard values["LoadState"] != nil else {
      return [
        Finding(
          .serviceSilent, "systemctl does not answer about nightjar.service",
          mends: [.command("systemctl is-system-running; systemctl status nightjar")])
      ]
    }
    guard isInstalled else {
      return [Finding(.service, "nightjar.service is not installed: nothing streams after a boot (make install)")]
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
    // The service has just failed and waits for its next start.
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
            + "\(values["UnitFileState"] ?? ""), restarted \(restarts) times",
          figures: ["restarts": Double(restarts)]))
    }
    if restarts >= 3 || isCrashing {
      let result = values["Result"].map { " (\($0))" } ?? ""
      found.append(
        Finding(
          .serviceRestarts,
          isCrashing
            ? "nightjar.service has failed\(result) and waits for its next start, after \(restarts) restarts"
            : "nightjar.service has restarted \(restarts) times",
          mends: [.asRoot("journalctl -u nightjar -p warning -n 20 --no-pager")],
          figures: ["restarts": Double(restarts)]))
    }
    if active == "active", values["UnitFileState"] == "disabled" {
      found.append(
        Finding(
          .serviceDisabled, "nightjar.service runs, but neither boot nor a camera starts it",
          mends: [.asRoot("systemctl enable nightjar")]))
    }
    return found.sorted { $0.status > $1.status }
  }
}
