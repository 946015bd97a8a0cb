import Foundation

/// Two machines on one Ethernet, made of network namespaces: `boxa` (10.77.0.1, fd77::1) and `boxb` (10.77.0.2,
/// fd77::2). Each has a /run of its own, and there, once it is started, a system message bus and an Avahi. Nothing
/// leaves them.
package final class AvahiHosts: @unchecked Sendable {
  // Sendable: of the one test that made it.

  /// One of the two.
  package enum Host: String, CaseIterable, Sendable {
    case boxa
    case boxb
    /// Its address.
    package var address: String { self == .boxa ? "10.77.0.1" : "10.77.0.2" }
    /// Its interface.
    package var interface: String { self == .boxa ? "veth-a" : "veth-b" }
  }

  /// Where files of theirs are, at the same path for both.
  package let directory: TemporaryDirectory
  private let namespaces: Subprocess
  private var buses: [Host: Subprocess] = [:]
  private var daemons: [Host: Subprocess] = [:]
  private var others: [Subprocess] = []

  /// `true` if this machine lets its users make such, and has IPv6 and an Avahi.
  package static let arePossible: Bool = {
    guard let directory = try? TemporaryDirectory() else { return false }
    let script = """
      mount -t tmpfs none /run && avahi-daemon --version && dbus-daemon --version && ip link set lo up \
        && ip addr add fd77::1/64 dev lo
      """
    return (try? Subprocess.run(["unshare", "-rnm", "sh", "-c", script], in: directory, limit: 60))?.status == 0
  }()

  /// Makes them, with a bus and without an Avahi.
  package init() throws {
    directory = try TemporaryDirectory()
    let script = """
      set -e
      cd '\(directory.url.path)'
      # Avahi gives its folder to its own user, of which this user namespace knows nothing.
      sed 's/^avahi:x:[0-9]*:[0-9]*/avahi:x:0:0/' /etc/passwd > passwd
      sed 's/^avahi:x:[0-9]*/avahi:x:0/' /etc/group > group
      cat > host.sh <<'END'
      set -e
      mount -t tmpfs none /run
      mkdir /run/dbus
      mount --bind passwd /etc/passwd
      mount --bind group /etc/group
      ip link set lo up
      END
      . ./host.sh
      # Of this shell, as the namespace above has it.
      unshare -nm sh -c '. ./host.sh; read pid rest < /proc/self/stat; echo $pid > boxb.new; mv boxb.new boxb.pid
        exec sleep infinity' &
      b=$!
      while ! test -e boxb.pid; do sleep 0.02; done
      ip link add veth-a type veth peer name veth-b netns $b
      nsenter -t "$(cat boxb.pid)" -n sh -c 'ip addr add 10.77.0.2/24 dev veth-b; ip addr add fd77::2/64 dev veth-b nodad
        ip link set veth-b up'
      ip addr add 10.77.0.1/24 dev veth-a
      ip addr add fd77::1/64 dev veth-a nodad
      ip link set veth-a up
      read pid rest < /proc/self/stat
      echo $pid > boxa.new
      mv boxa.new boxa.pid
      exec sleep infinity
      """
    namespaces = try Subprocess(
      ["unshare", "-rnm", "--pid", "--fork", "--kill-child=SIGKILL", "sh", "-c", script], in: directory)
    let last = directory.path("boxa.pid")
    guard eventually(within: 60, { FileManager.default.fileExists(atPath: last) }) else {
      throw NotThere(what: namespaces.errorSoFar)
    }
    for host in Host.allCases {
      let configuration = """
        <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
          "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
        <busconfig><listen>unix:path=/run/dbus/system_bus_socket</listen><auth>EXTERNAL</auth>
          <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
          <allow own="*"/></policy></busconfig>
        """
      try Data(configuration.utf8).write(to: directory.url.appendingPathComponent("bus.conf"))
      let avahi = """
        [server]
        host-name=\(host.rawValue)
        allow-interfaces=\(host.interface)
        [wide-area]
        enable-wide-area=no
        [publish]
        publish-workstation=no
        [reflector]
        [rlimits]
        """
      try Data((avahi + "\n").utf8).write(to: directory.url.appendingPathComponent("\(host.rawValue).conf"))
      try startBus(on: host)
    }
  }

  deinit {
    for host in Host.allCases { signalAvahi(on: host, SIGKILL) }
    let all = others + Array(daemons.values) + Array(buses.values) + [namespaces]
    for process in all { process.send(SIGKILL) }
    for process in all { _ = try? process.wait(limit: 20) }
  }

  /// The error of something that did not come.
  package struct NotThere: Error {
    let what: String
  }

  /// The command that runs another one on `host`.
  package func words(on host: Host) -> [String] {
    let pid = (try? String(contentsOfFile: directory.path("\(host.rawValue).pid"), encoding: .utf8)) ?? ""
    return [
      "nsenter", "--target", pid.trimmingCharacters(in: .whitespacesAndNewlines), "--user", "--net", "--mount",
      "--preserve-credentials", "--wdns=\(directory.url.path)",
    ]
  }

  /// Starts a program on `host`; it is killed at the end if it still runs.
  package func start(_ arguments: [String], on host: Host, environment: [String: String] = [:]) throws -> Subprocess {
    let process = try Subprocess(words(on: host) + arguments, in: directory, environment: environment)
    others.append(process)
    return process
  }

  /// Runs a program on `host` to its end.
  package func run(_ arguments: [String], on host: Host, limit: Double = 120) throws -> Subprocess.Result {
    try Subprocess.run(words(on: host) + arguments, in: directory, limit: limit)
  }

  /// Starts the message bus.
  package func startBus(on host: Host) throws {
    buses[host] = try Subprocess(
      words(on: host) + [
        "dbus-daemon", "--nofork", "--nopidfile", "--print-address", "--config-file=\(directory.path("bus.conf"))",
      ], in: directory)
    // The socket is there before anybody may connect to it; the address is printed afterwards.
    guard eventually(within: 60, { buses[host]?.outputSoFar.contains("unix:") == true }) else {
      throw NotThere(what: "the bus: \(buses[host]?.errorSoFar ?? "")")
    }
  }

  /// Ends the message bus.
  package func stopBus(on host: Host) throws {
    buses[host]?.send(SIGKILL)
    _ = try buses.removeValue(forKey: host)?.wait(limit: 20)
    _ = try run(["rm", "-f", "/run/dbus/system_bus_socket"], on: host)
  }

  /// Starts Avahi, and waits until it is ready.
  package func startAvahi(on host: Host) throws {
    let options = ["--no-drop-root", "--no-chroot", "--no-rlimits", "--no-proc-title"]
    // Behind a shell: Avahi closes whatever it inherits, which Foundation takes for its end, and waits for that for ever.
    // And not behind that shell's `wait`, which never ends where this thread has SIGCHLD blocked.
    let script = "sh -c 'echo $$ > \(host.rawValue).avahi; exec avahi-daemon \"$@\"' sh \"$@\"; true"
    let daemon = try Subprocess(
      words(on: host) + ["sh", "-c", script, "sh", "-f", directory.path("\(host.rawValue).conf")] + options,
      in: directory)
    daemons[host] = daemon
    guard eventually(within: 60, { daemon.errorSoFar.contains("Server startup complete") }) else {
      throw NotThere(what: "Avahi: \(daemon.errorSoFar)")
    }
  }

  /// Sends Avahi a signal.
  package func signalAvahi(on host: Host, _ signal: Int32) {
    guard daemons[host]?.isRunning == true else { return }
    let text = try? String(contentsOfFile: directory.path("\(host.rawValue).avahi"), encoding: .utf8)
    if let text, let pid = Int32(text.trimmingCharacters(in: .whitespacesAndNewlines)) { kill(pid, signal) }
  }

  /// Ends Avahi: by itself, with its goodbyes, or at once.
  package func stopAvahi(on host: Host, by signal: Int32 = SIGKILL) throws {
    signalAvahi(on: host, signal)
    _ = try daemons.removeValue(forKey: host)?.wait(limit: 60)
    _ = try run(["rm", "-rf", "/run/avahi-daemon"], on: host)
  }
}
