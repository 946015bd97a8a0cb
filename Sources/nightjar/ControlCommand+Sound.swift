import Appliance
import ArgumentParser
import Serving

extension ControlCommand {
  /// `nightjar ctl audio`.
  struct AudioCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "audio", abstract: "Show the sound, mute it, or set its gain.",
      discussion: """
        A gain lasts until the next reload or restart of the stream. A mute lasts until unmute, or until the program \
        ends. Reloads and restarts of the camera's stream do not end a mute.

        Examples:
          nightjar ctl audio
          nightjar ctl audio mute
          nightjar ctl audio gain 6
        """,
      subcommands: [
        ShowSoundCommand.self, MuteCommand.self, UnmuteCommand.self, GainCommand.self,
      ], defaultSubcommand: ShowSoundCommand.self)

    @OptionGroup var stream: Stream
  }

  struct ShowSoundCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "show", abstract: "Show microphone and level.")

    @OptionGroup var stream: Stream

    func run() throws {
      try stream.tell {
        try $0.sound()
      } _: {
        StatusText.text($0)
      }
    }
  }

  struct MuteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "mute", abstract: "Mute the sound: viewers hear silence.")

    @OptionGroup var stream: Stream

    func run() throws {
      try stream.tell {
        try $0.changeSound(muted: true)
      } _: {
        StatusText.text($0)
      }
    }
  }

  struct UnmuteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "unmute", abstract: "End the mute.")

    @OptionGroup var stream: Stream

    func run() throws {
      try stream.tell {
        try $0.changeSound(muted: false)
      } _: {
        StatusText.text($0)
      }
    }
  }

  struct GainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "gain",
      abstract: "Set the gain in decibels: 0 leaves the microphone's sound as it is, 6 doubles it, -6 halves it.",
      usage: "nightjar ctl audio gain <decibels> [<options>]")

    // Only a list takes -6, which looks like an option.
    @Argument(parsing: .allUnrecognized, help: ArgumentHelp("Decibels, -30 to 30.", valueName: "decibels"))
    var words: [String]

    @OptionGroup var stream: Stream

    private var decibels: Double? { words.count == 1 ? Double(words[0]) : nil }

    func validate() throws {
      guard decibels != nil else {
        throw ValidationError("'\(words.joined(separator: " "))': write one number of decibels, as in 6 or -3")
      }
    }

    func run() throws {
      try stream.tell {
        try $0.changeSound(gain: decibels)
      } _: {
        StatusText.text($0)
      }
    }
  }
}
