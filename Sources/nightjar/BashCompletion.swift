import ArgumentParser

/// The script with which bash completes the program's words.
enum BashCompletion {
  /// The words that request the script.
  static let requests = [["--generate-completion-script", "bash"], ["--generate-completion-script=bash"]]

  /// Returns the script of ArgumentParser, which leaves aliases out, with the aliases of the commands of `ctl`.
  static func script() -> String {
    var script = Nightjar.completionScript(for: .bash)
    for command in ControlCommand.configuration.subcommands {
      guard let name = command.configuration.commandName else { continue }
      for alias in command.configuration.aliases {
        // The pattern of the words that have a function of their own.
        script = script.replacing("|\(name)|", with: "|\(name)|\(alias)|")
        script += "\n\n_nightjar_ctl_\(alias)() {\n    _nightjar_ctl_\(name)\n}"
      }
    }
    return script
  }
}
