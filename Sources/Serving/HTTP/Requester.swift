/// The author of a request, with the role that limits it.
package struct Requester: Sendable {
  /// The name for the log, as in `alice`, `token doorbell` or `somebody`.
  package let name: String
  /// The role that limits the requests.
  var role: Role
  /// The command that gives the requester another role, without the role itself; nil if no command does.
  let roleCommand: String?
  /// `true` if the requester has sent a password or a token.
  var hasLoggedIn: Bool { login != nil }
  /// The part of the log-in that the host keeps; nil if the requester has not logged in.
  private let login: Login?

  /// The part of a log-in that the host keeps.
  private enum Login {
    case user(UsersFile.User)
    case token(hash: [UInt8])
  }

  private init(name: String, role: Role, roleCommand: String?, login: Login?) {
    (self.name, self.role, self.roleCommand, self.login) = (name, role, roleCommand, login)
  }

  init(name: String, role: Role, roleCommand: String?) {
    self.init(name: name, role: role, roleCommand: roleCommand, login: nil)
  }

  /// The mark of the log-in; nil if the requester has not logged in.
  package var mark: LoginMark? {
    switch login {
    case .user(let user): LoginMark(user)
    case .token(let hash): LoginMark(tokenHash: hash)
    case nil: nil
    }
  }

  /// Returns a user that has logged in by name and password.
  package static func user(_ user: UsersFile.User) -> Requester {
    Requester(
      name: "\(user.name)", role: user.role, roleCommand: ServiceAccount.command("user role \(user.name)"),
      login: .user(user))
  }

  /// Returns a program that has sent a token.
  package static func token(_ token: TokensFile.Token) -> Requester {
    Requester(
      name: "token \(token.name)", role: token.role,
      roleCommand: ServiceAccount.command("token role \(token.name)"), login: .token(hash: token.hash))
  }

  /// Returns a phone with a log-in of its own, which keeps the role of its one-time code.
  package static func phone(_ token: TokensFile.Token) -> Requester {
    Requester(name: phoneName(token.name), role: token.role, roleCommand: nil, login: .token(hash: token.hash))
  }

  /// Returns a phone that gets its log-in now.
  static func newPhone(_ name: UserName, _ role: Role) -> Requester {
    Requester(name: phoneName(name), role: role, roleCommand: nil)
  }

  /// Returns the name of a phone for the log.
  static func phoneName(_ name: UserName) -> String { "phone \(name)" }

  /// An unknown requester on this machine, which need not log in to read.
  static var unknown: Requester { Requester(name: "somebody", role: .view, roleCommand: nil) }

  /// Returns a requester that the kernel lets use the control socket.
  static func local(_ name: String) -> Requester { Requester(name: name, role: .control, roleCommand: nil) }
}
