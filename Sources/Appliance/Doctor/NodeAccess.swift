import CLinux
import Glibc
import Platform
import Serving

/// This user's access to a device node, and the obstacle to it.
package struct NodeAccess: Sendable {
  /// An obstacle to the access.
  package enum Obstacle: Hashable, Sendable {
    /// The group has access, but the user is not in that group.
    case notInGroup(String)
    /// The group has access and the user is in it, but this process started earlier.
    case notYetInGroup(String)
    /// The group has no access, or is root's.
    case mode(UInt32, group: String)
  }

  /// The node's path, with links resolved.
  package let path: String
  /// The obstacle; nil where the node may be opened for reading and writing, or does not exist.
  package let obstacle: Obstacle?

  /// Queries the kernel, which also applies access control lists.
  package init(path: String) {
    guard let resolved = realpath(path, nil) else {
      (self.path, obstacle) = (path, nil)
      return
    }
    defer { free(resolved) }
    self.path = String(cString: resolved)
    var file = nightjar_file()
    guard access(self.path, R_OK | W_OK) != 0, errno == EACCES || errno == EPERM,
      nightjar_path_status(self.path, &file) == 0
    else {
      obstacle = nil
      return
    }
    let group = Account.name(ofGroup: file.group)
    guard file.mode & 0o060 == 0o060, file.group != 0 else {
      obstacle = .mode(file.mode & 0o777, group: group)
      return
    }
    obstacle = Account.current.groups.contains(file.group) ? .notYetInGroup(group) : .notInGroup(group)
  }

  /// Returns the finding on the access; nil without an obstacle.
  ///
  /// - Parameter usual: the usual group of such nodes: `video`, `render` or `audio`.
  package func finding(usual: String) -> Finding? {
    let kinds: (group: FindingKind, login: FindingKind, mode: FindingKind) =
      switch usual {
      case "video": (.cameraGroup, .cameraLogin, .cameraMode)
      case "audio": (.microphoneGroup, .microphoneLogin, .microphoneMode)
      default: (.renderGroup, .renderLogin, .renderMode)
      }
    let user = Account.current.name
    switch obstacle {
    case nil: return nil
    case .notInGroup(let group):
      return Finding(
        kinds.group, "\(path) is for the group \(group), but \(user) is not in it",
        mends: [.command("sudo usermod -aG \(group) \(user)"), .advice("then log out and in again")])
    case .notYetInGroup(let group):
      return Finding(
        kinds.login,
        "\(path) is for the group \(group): \(user) has joined it after this login",
        mends: [.advice("log out and in again; for one shell only: newgrp \(group)")])
    case .mode(let mode, let group):
      let name = path.split(separator: "/").last ?? ""
      return Finding(
        kinds.mode,
        "\(path) has mode \(String(mode, radix: 8)) and group \(group): only its owner may open it",
        mends: [
          .asRoot("chgrp \(usual) \(ShellWord.quoted(path))", "chmod 660 \(ShellWord.quoted(path))"),
          .advice(
            "permanently, in a file in /etc/udev/rules.d: KERNEL==\"\(name)\", GROUP=\"\(usual)\", MODE=\"0660\""),
        ])
    }
  }
}
