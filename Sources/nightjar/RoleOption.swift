import Appliance
import ArgumentParser
import Platform
public import Serving

extension Role: ExpressibleByArgument {}

/// The role that a user or a token receives.
struct RoleOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The role: read, view or control.",
      discussion: """
        read allows figures (status, metrics, health), view also pictures, sound and streams, control everything that \
        nightjar ctl does. Without this option a new name gets view, and an existing one keeps its role.
        """))
  var role: Role?
}

/// The argument of `nightjar user role` and `nightjar token role`.
struct RoleArgument: ParsableArguments {
  @Argument(help: "read (figures), view (also pictures and sound) or control (everything that nightjar ctl does).")
  var role: Role

  /// Returns the message once `name` has the role, in the file at `path`.
  func report(_ name: UserName, in path: String) -> String {
    "\(name) has the role \(role.rawValue) in \(path). A running stream takes this over within a second.\n"
  }
}

extension ApplianceFailure {
  /// Returns the failure for a name that is missing in the file at `path`.
  ///
  /// - Parameter kind: the kind of the name: `user` or `token`.
  static func unknown(_ kind: String, _ name: UserName, in path: String) -> ApplianceFailure {
    ApplianceFailure(
      kind: .noInput, description: "there is no \(kind) \(name) in \(path). List the names: nightjar \(kind) list")
  }
}
