import Appliance
import ArgumentParser
import Platform

/// The program.
@main
struct Nightjar: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "nightjar",
    abstract: "Turns a Linux host with a camera into a dependable low-latency stream.",
    discussion: """
      Start with:
        nightjar stream                               streams your camera to this host
        nightjar stream --to rtp://192.168.1.20:5004  streams it to another host
        nightjar devices                              lists cameras and encoders
        nightjar ctl status                           shows the state of a running stream
        nightjar events                               tells what happens: alerts as they come
        nightjar discover                             lists the streams on the network
        nightjar doctor                               finds what is wrong and what mends it
        nightjar user add alice                       adds a user who may watch
        nightjar config example                       prints a file with all options
      """,
    version: version,
    subcommands: [
      SetupCommand.self, StreamCommand.self, DevicesCommand.self, DiscoverCommand.self, ControlCommand.self,
      EventsCommand.self,
      UserCommand.self, TokenCommand.self, CertificateCommand.self, ConfigurationCommand.self, DoctorCommand.self,
    ])

  static let version = Program.version

  /// Runs the program. The options of `stream` also come from a file, so they cannot be validated before the file is
  /// read. All other commands are parsed as usual.
  static func main() {
    let words = Array(CommandLine.arguments.dropFirst())
    if words.first == "stream", !StreamCommand.isQuestion(words) {
      do {
        try StreamCommand.run(Array(words.dropFirst()))
      } catch {
        exit(withError: error)
      }
    } else if BashCompletion.requests.contains(words) {
      print(BashCompletion.script())
    } else if let word = words.first, let command = command(meantBy: word) {
      FailureOutput.exit(
        withError: ValidationError("there is no command '\(word)'; the nearest one is nightjar \(command)"))
    } else {
      do {
        var command = try parseAsRoot(words)
        try command.run()
      } catch {
        FailureOutput.exit(withError: error)
      }
    }
  }

  /// Returns the command that a mistyped one probably means; `nil` for an existing command, and for a word that
  /// resembles none.
  private static func command(meantBy word: String) -> String? {
    let names = configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
    guard !word.hasPrefix("-"), !names.contains(word) else { return nil }
    if word == "version" { return "--version" }
    let ranked = names.map { ($0, EditDistance.between(Array(word.utf8.prefix(32)), Array($0.utf8))) }
    guard let nearest = ranked.min(by: { $0.1 < $1.1 }), nearest.1 <= 2 else { return nil }
    return nearest.0
  }
}
