import ArgumentParser
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
