import ArgumentParser
import Credentials
import Glibc
import Media

/// `nightjar token`.
struct TokenCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "token",
    abstract: "Say which programs may use the control API over the network.",
    discussion: """
      Examples:
        nightjar token add doorbell
        nightjar token list
        nightjar token remove doorbell

      The file holds hashes, from which no token can be found. Exit codes are those of sysexits.h: 64 wrong name, \
      65 broken file, 66 no such file or token, 77 no permission.
      """,
    subcommands: [AddCommand.self, RemoveCommand.self, ListCommand.self])

  /// Which file.
  struct File: ParsableArguments {
    @Option(
      help: ArgumentHelp(
        "The tokens file; without it the usual one.",
        discussion: "That is /etc/nightjar/tokens for root, else nightjar/tokens under $XDG_CONFIG_HOME or ~/.config.",
        valueName: "path"))
    var tokens: String?

    var path: String { tokens ?? StandardPaths.tokensFile }
  }

  /// A token of the file.
  struct KnownName: ParsableArguments {
    @Argument(help: "The token's name.", completion: NameCompletion.tokens, transform: UserCommand.Name.checked)
    var name: UserName
  }

  struct AddCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "add",
      abstract: "Make a token, or another one in place of that of this name.",
      discussion: """
        The token is written to standard output, this once: (umask 077; nightjar token add doorbell > doorbell.token). It is sent as \
        Authorization: Bearer TOKEN, or for reading as ?token=TOKEN.
        """)

    @OptionGroup var user: UserCommand.Name
    @OptionGroup var file: File

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        let name = user.name
        let (token, wasThere) = try TokensFile.edit(file.path, mayCreate: true) { tokens in
          let wasThere = tokens.names.contains(name)
          return (try tokens.make(for: name), wasThere)
        }
        writeError(
          wasThere
            ? "\(name) has a new token in \(file.path); the old one is void\n" : "added \(name) to \(file.path)\n")
        if file.tokens == nil, ServiceAccount.isBesideRoot {
          writeError(
            "these are root's own tokens; the service's: sudo -u \(ServiceAccount.name) nightjar token add \(name)\n")
        }
        writeError("Next: nightjar stream --rtsp --https; or, where it runs already: \(ServiceAccount.reloading)\n")
        try writeOutput(token + "\n")
      }
    }
  }

  struct RemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "remove", abstract: "Remove a token.")

    @OptionGroup var user: KnownName
    @OptionGroup var file: File

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        let name = user.name
        try TokensFile.edit(file.path, mayCreate: false) { tokens in
          guard tokens.remove(name) else {
            throw CommandFailure(
              kind: .noInput, description: "there is no token \(name) in \(file.path): see nightjar token list")
          }
        }
        try writeOutput(
          "removed \(name) from \(file.path); a stream that runs takes it until nightjar ctl reload, or a new start\n")
      }
    }
  }

  struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List the tokens' names, one a line.")

    @OptionGroup var file: File

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        try writeOutput(TokensFile(contentsOf: file.path).names.map { "\($0)\n" }.joined())
      }
    }
  }
}
