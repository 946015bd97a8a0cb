public import ArgumentParser
public import Credentials

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
}
