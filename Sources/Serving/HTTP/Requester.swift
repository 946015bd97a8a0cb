/// The author of a request, with the role that limits it.
struct Requester: Sendable {
  /// The name for the log, as in `alice`, `token doorbell` or `somebody`.
  let name: String
  /// The role that limits the requests.
  let role: Role
  /// The command that gives the requester another role, without the role itself; nil if no command does.
  let roleCommand: String?
  /// `true` if the requester has sent a password or a token.
  let hasLoggedIn: Bool

  init(name: String, role: Role, roleCommand: String?, hasLoggedIn: Bool = false) {
    (self.name, self.role, self.roleCommand, self.hasLoggedIn) = (name, role, roleCommand, hasLoggedIn)
  }

  /// Returns a user that has logged in by name and password.
  static func user(_ user: UsersFile.User) -> Requester {
    Requester(
      name: "\(user.name)", role: user.role, roleCommand: ServiceAccount.command("user role \(user.name)"),
      hasLoggedIn: true)
  }

  /// Returns a program that has sent a token.
  static func token(_ name: UserName, _ role: Role) -> Requester {
    Requester(
      name: "token \(name)", role: role, roleCommand: ServiceAccount.command("token role \(name)"),
      hasLoggedIn: true)
  }

  /// Returns a phone with a log-in of its own, which keeps the role of its one-time code.
  static func phone(_ name: UserName, _ role: Role) -> Requester {
    Requester(name: "phone \(name)", role: role, roleCommand: nil, hasLoggedIn: true)
  }

  /// An unknown requester on this machine, which need not log in to read.
  static var unknown: Requester { Requester(name: "somebody", role: .view, roleCommand: nil) }

  /// Returns a requester that the kernel lets use the control socket.
  static func local(_ name: String) -> Requester { Requester(name: name, role: .control, roleCommand: nil) }
}
