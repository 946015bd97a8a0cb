import Foundation

/// The loopback interface of a network namespace, which carries multicast; a program there sees no other.
package enum OwnNetwork {
  /// Makes it, and stays in it until it is killed, which leaves no other process over. If the test run itself is
  /// killed, the network goes after an hour.
  package static let holder = [
    "unshare", "-rn", "sh", "-c",
    "ip link set lo up multicast on && ip route add 239.0.0.0/8 dev lo && echo ready && exec sleep 3600",
  ]

  /// Returns the words before a program that is to run there.
  package static func entering(_ holder: Subprocess) -> [String] {
    ["nsenter", "-U", "-n", "--preserve-credentials", "-t", "\(holder.identifier)"]
  }

  package static let isPossible: Bool = {
    guard let directory = try? TemporaryDirectory(), let process = try? Subprocess(holder, in: directory) else {
      return false
    }
    defer { process.send(SIGKILL) }
    guard eventually({ process.outputSoFar.contains("ready") || !process.isRunning }), process.isRunning,
      let result = try? Subprocess.run(entering(process) + ["true"], in: directory)
    else { return false }
    return result.status == 0
  }()
}
