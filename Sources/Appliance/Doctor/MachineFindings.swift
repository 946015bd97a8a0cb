import CLinux
import Glibc
package import Host
import Platform
import Serving

/// The findings on the machine, whatever it streams.
package enum MachineFindings {
  /// Returns the finding on the temperature.
  ///
  /// - Parameters:
  ///   - thresholds: the given thresholds, which override the zones' own.
  ///   - watching: the command that shows how the stream reacts to heat.
  ///   - root: the mount point of sysfs.
  package static func temperature(
    thresholds: ThermalThresholds?, watching: String = "nightjar ctl status --watch", root: String = "/sys"
  ) -> Finding {
    var monitor = ThermalMonitor(root: root, thresholds: thresholds)
    // The monitor's state rises at the second reading.
    _ = monitor.read(at: .now())
    guard let reading = monitor.read(at: .now()) else {
      let count = monitor.passedOver.count
      return Finding(
        .temperature,
        count == 0
          ? "the kernel knows no sensor: nightjar cannot see heat"
          : "\(count) sensors without trip points: nightjar sees heat only with the option thermal")
    }
    let text = "\(reading.zone): \(Int(reading.temperature.rounded())) °C (\(reading.state.name))"
    let figures = ["celsius": reading.temperature]
    let mends: [Mend] = [
      .advice("give it air, shade or a fan; or reduce the load: size = \"1280x720\", fps = \"15\""),
      .command(watching),
    ]
    return switch reading.state {
    case .nominal, .fair: Finding(.temperature, text, figures: figures)
    case .serious: Finding(.temperatureHigh, text, mends: mends, figures: figures)
    case .critical: Finding(.temperatureCritical, text, mends: mends, figures: figures)
    }
  }

  /// Returns the finding on the threads' real-time priority.
  ///
  /// - Parameters:
  ///   - stream: the process that streams; nil examines this process instead.
  ///   - priority: the priority of the stream's real-time threads, where it tells: 0 for none.
  package static func realtime(stream: Int32?, priority: Int? = nil) -> Finding {
    if let priority, priority > 0 {
      return Finding(.realtime, "capture and send of the running stream have it: \(priority)")
    }
    let own = Int(nightjar_realtime_limit())
    let limit = stream.flatMap(realtimeLimit(ofProcess:)) ?? own
    let whose = stream == nil ? "of this login" : "of the running stream"
    guard limit == 0 else {
      if priority == 0 {
        return Finding(
          .realtime, "capture and send of the running stream have none: --realtime off, or the log says why")
      }
      return Finding(.realtime, "capture and send get it: the limit \(whose) is \(limit)")
    }
    let user = stream.flatMap { Account(ofProcess: $0) } ?? .current
    return Finding(
      .realtimeNone, "the limit \(whose) on real-time priority is 0",
      mends: [
        .writing("\(user.name) - rtprio 10", to: "/etc/security/limits.d/nightjar.conf"),
        .advice("then log out and in again; nightjar.service has LimitRTPRIO=10"),
      ])
  }

  /// Returns the soft limit, from the table of proc(5).
  private static func realtimeLimit(ofProcess process: Int32) -> Int? {
    guard let file = fopen("/proc/\(process)/limits", "re") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    while fgets(&line, CInt(line.count), file) != nil {
      let text = String(cBuffer: line)
      let name = "Max realtime priority"
      guard text.hasPrefix(name) else { continue }
      guard let word = text.dropFirst(name.utf8.count).split(separator: " ").first else { return nil }
      return word == "unlimited" ? 99 : Int(word)
    }
    return nil
  }

  /// The least free space of the state directory, in bytes.
  static let leastBytes: Int64 = 1 << 20

  /// Returns the finding on storing persistent data in `directory`.
  ///
  /// - Parameter isNeeded: `true` if data must be stored there.
  package static func state(directory: String, isNeeded: Bool) -> Finding {
    guard isNeeded else { return Finding(.state, "\(directory): nothing to keep there") }
    let user = Account.current.name
    // A missing directory is created later; then its parent decides.
    var existing = directory
    while access(existing, F_OK) != 0, errno == ENOENT, existing != "/" {
      existing = existing.split(separator: "/").dropLast().reduce(into: "") { $0 += "/\($1)" }
      if existing.isEmpty { existing = "/" }
    }
    guard access(existing, W_OK | X_OK) == 0 else {
      let reason = SystemFailure.text(errno)
      let quoted = ShellWord.quoted(directory)
      return Finding(
        .stateClosed, "\(existing) cannot be written by \(user): \(reason)",
        mends: [
          .asRoot("install -d -m 700 -o \(user) \(quoted)"),
          .advice("or name another folder: STATE_DIRECTORY=DIRECTORY"),
        ])
    }
    let free = nightjar_free_bytes(existing)
    guard free < 0 || free >= leastBytes else {
      return Finding(
        .stateFull, "\(directory): \(free / 1024) kB are free",
        mends: [.command("df -h \(ShellWord.quoted(existing))")],
        figures: ["free_bytes": Double(free)])
    }
    return Finding(
      .state, "\(directory): \(existing == directory ? "can be written" : "can be made"), \(free >> 20) MB free",
      figures: ["free_bytes": Double(free)])
  }

  /// Returns the findings on a service user's membership in the groups that own cameras and hardware encoders.
  package static func serviceGroups(user: String, nodes: [String]) -> [Finding] {
    guard let account = Account(named: user) else { return [] }
    var missing: [String] = []
    for node in nodes {
      guard let resolved = realpath(node, nil) else { continue }
      defer { free(resolved) }
      var file = nightjar_file()
      guard nightjar_path_status(String(cString: resolved), &file) == 0, file.mode & 0o060 == 0o060,
        file.mode & 0o006 != 0o006, file.user == 0, file.group != 0, !account.groups.contains(file.group)
      else { continue }
      let group = Account.name(ofGroup: file.group)
      if !missing.contains(group) { missing.append(group) }
    }
    return missing.map { group in
      Finding(
        .serviceGroup, "the service's user \(user) is not in the group \(group)",
        mends: [
          .asRoot("usermod -aG \(group) \(user)"), .asRoot("systemctl restart nightjar"),
        ])
    }
  }
}
