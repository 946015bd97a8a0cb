import Appliance
import ArgumentParser
import Glibc
import Serving

extension ControlCommand {
  /// `nightjar ctl phone`.
  struct PhoneCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "phone",
      abstract: "Let phones watch in a browser, each by a log-in of its own, and shut them out.",
      discussion: """
        `add` shows a QR code: point the phone's camera at it, and open the link. The link works once, within ten \
        minutes. The phone then needs no password. The stream must have a page: nightjar stream --https.

        Examples:
          nightjar ctl phone add
          nightjar ctl phone list
          nightjar ctl phone remove anna
        """,
      subcommands: [AddPhoneCommand.self, ListPhonesCommand.self, RemovePhoneCommand.self],
      defaultSubcommand: ListPhonesCommand.self, aliases: ["phones"])

    @OptionGroup var stream: Stream
  }

  struct AddPhoneCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "add", abstract: "Show a link and its QR code, by which one phone gets a log-in of its own.")

    @OptionGroup var role: PhoneRole
    @OptionGroup var stream: Stream

    func run() throws {
      try stream.tell {
        try $0.makePhoneCode(role.role)
      } _: {
        PhoneText.text($0, withCode: isatty(STDOUT_FILENO) == 1)
      }
    }
  }

  /// The option for what a phone may do.
  struct PhoneRole: ParsableArguments {
    @Flag(help: "The phone may also change things: rotate the picture, let further phones in.")
    var control = false

    var role: Role { control ? .control : .view }
  }

  struct ListPhonesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the phones that may watch.")

    @OptionGroup var stream: Stream

    func run() throws {
      try stream.tell {
        try $0.phones()
      } _: {
        PhoneText.text($0)
      }
    }
  }

  struct RemovePhoneCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "remove", abstract: "Shut a phone out. What it watches ends within a few seconds.")

    @Argument(help: "The phone's name.", transform: UserCommand.Name.checked)
    var name: UserName

    @OptionGroup var stream: Stream

    func run() throws {
      try stream.tell {
        try $0.removePhone(name)
      } _: {
        "\($0.name) may not watch any more\n"
      }
    }
  }
}
