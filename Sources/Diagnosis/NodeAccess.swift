import CLinux
import Credentials
import Glibc
import Media

/// Whether this user may open a device node, and if not, what stands in the way.
public struct NodeAccess: Sendable {
  /// What stands in the way.
  public enum Obstacle: Hashable, Sendable {
    /// The group may open it, and the user is not in that group.
    case notInGroup(String)
    /// The group may, the user is in it, and this process was begun before that.
    case notYetInGroup(String)
    /// The group may not, or is root's.
    case mode(UInt32, group: String)
  }

  /// The node, links resolved.
  public let path: String
  /// Nil where it may be opened for reading and writing, or is not there.
  public let obstacle: Obstacle?

  /// Asks the kernel, which also knows of access control lists.
  public init(path: String) {
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

  /// What is to be said of it; nil where nothing stands in the way.
  ///
  /// - Parameter usual: the group that such nodes belong to: `video` or `render`.
  public func finding(usual: String) -> Finding? {
    let isCamera = usual == "video"
    let user = Account.current.name
    switch obstacle {
    case nil: return nil
    case .notInGroup(let group):
      return Finding(
        isCamera ? .cameraGroup : .renderGroup, "\(path) is for the group \(group), and \(user) is not in it",
        mends: [.command("sudo usermod -aG \(group) \(user)"), .advice("then log out and in again")])
    case .notYetInGroup(let group):
      return Finding(
        isCamera ? .cameraLogin : .renderLogin,
        "\(path) is for the group \(group): \(user) is in it, but logged in before that was so",
        mends: [.advice("log out and in again; for one shell alone: newgrp \(group)")])
    case .mode(let mode, let group):
      let name = path.split(separator: "/").last ?? ""
      return Finding(
        isCamera ? .cameraMode : .renderMode,
        "\(path) is of mode \(String(mode, radix: 8)) and group \(group): only its owner may open it",
        mends: [
          .asRoot("chgrp \(usual) \(ShellWord.quoted(path))", "chmod 660 \(ShellWord.quoted(path))"),
          .advice(
            "for good, in a file of /etc/udev/rules.d: KERNEL==\"\(name)\", GROUP=\"\(usual)\", MODE=\"0660\""),
        ])
    }
  }
}
