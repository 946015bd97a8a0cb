public import ArgumentParser
public import Credentials
import Media

extension Role: ExpressibleByArgument {}

/// What a user or a token is to be allowed.
struct RoleOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "What it may do: read, view or control.",
      discussion: """
        read has figures (status, metrics, health), view pictures and streams as well, control all that nightjar ctl \
        does. Without it a new one gets view, and one that is there keeps its own.
        """))
  var role: Role?
}

/// The argument of `nightjar user role` and `nightjar token role`.
struct RoleArgument: ParsableArguments {
  @Argument(help: "read (figures), view (pictures too) or control (all that nightjar ctl does).")
  var role: Role

  /// What is said once `name` has the role, in the file at `path`.
  func report(_ name: UserName, in path: String) -> String {
    "\(name) has the role \(role.rawValue) in \(path); a stream that runs knows it after: \(ServiceAccount.reloading)\n"
  }
}

extension CommandFailure {
  /// A name that is not in the file at `path`.
  ///
  /// - Parameter kind: what it would be: `user` or `token`.
  static func unknown(_ kind: String, _ name: UserName, in path: String) -> CommandFailure {
    CommandFailure(
      kind: .noInput, description: "there is no \(kind) \(name) in \(path): see nightjar \(kind) list")
  }
}
