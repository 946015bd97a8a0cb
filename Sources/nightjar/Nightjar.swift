import ArgumentParser
import Media

/// The program.
@main
struct Nightjar: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "nightjar",
    abstract: "Turns a Linux box with a camera into a dependable low-latency stream.",
    discussion: """
      Start with:
        nightjar stream                               your camera, to this machine
        nightjar stream --to rtp://192.168.1.20:5004  to another machine
        nightjar devices                              which cameras there are
        nightjar ctl status                           how a running stream is
        nightjar discover                             which streams the network has
        nightjar doctor                               what is wrong, and its mend
        nightjar user add alice                       who may watch
        nightjar config example                       options in a file instead
      """,
    version: version,
    subcommands: [
      StreamCommand.self, DevicesCommand.self, DiscoverCommand.self, ControlCommand.self, UserCommand.self,
      TokenCommand.self, ConfigurationCommand.self, DoctorCommand.self,
    ])

  static let version = "0.1.0"

  /// Streaming goes by a file as well, so that its options cannot be judged before that is read; the rest is as usual.
  static func main() {
    let words = Array(CommandLine.arguments.dropFirst())
    if words.first == "stream", !StreamCommand.isQuestion(words) {
      do {
        try StreamCommand.run(Array(words.dropFirst()))
      } catch {
        exit(withError: error)
      }
    } else if let word = words.first, let command = command(meantBy: word) {
      FailureOutput.exit(withError: ValidationError("there is no command '\(word)': is nightjar \(command) meant?"))
    } else {
      do {
        var command = try parseAsRoot(words)
        try command.run()
      } catch {
        FailureOutput.exit(withError: error)
      }
    }
  }

  /// The command that a mistyped one is probably meant to be; nil for one that there is, and for what is like none.
  private static func command(meantBy word: String) -> String? {
    let names = configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
    guard !word.hasPrefix("-"), !names.contains(word) else { return nil }
    if word == "version" { return "--version" }
    let ranked = names.map { ($0, EditDistance.between(Array(word.utf8.prefix(32)), Array($0.utf8))) }
    guard let nearest = ranked.min(by: { $0.1 < $1.1 }), nearest.1 <= 2 else { return nil }
    return nearest.0
  }
}
