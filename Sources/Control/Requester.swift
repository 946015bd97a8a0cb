import Credentials

/// Who asks, and what that one may do.
struct Requester: Sendable {
  /// For the log, as in `alice`, `token doorbell` or `somebody`.
  let name: String
  /// What may be asked for.
  let role: Role
  /// What gives it another role, without the role itself; nil where nothing does.
  let roleCommand: String?
  /// Whether there was a password or a token: only who has one can get another role.
  var hasLoggedIn: Bool { roleCommand != nil }

  /// One who has logged in by name and password.
  static func user(_ user: UsersFile.User) -> Requester {
    Requester(name: "\(user.name)", role: user.role, roleCommand: ServiceAccount.command("user role \(user.name)"))
  }

  /// A program that has shown a token.
  static func token(_ name: UserName, _ role: Role) -> Requester {
    Requester(name: "token \(name)", role: role, roleCommand: ServiceAccount.command("token role \(name)"))
  }

  /// Somebody on this machine, who need not log in to look.
  static var unknown: Requester { Requester(name: "somebody", role: .view, roleCommand: nil) }

  /// Whoever the kernel lets use the control socket.
  static func local(_ name: String) -> Requester { Requester(name: name, role: .control, roleCommand: nil) }
}
