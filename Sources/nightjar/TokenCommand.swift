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
        nightjar token add prometheus --role read
        nightjar token role doorbell control
        nightjar token list
        nightjar token remove doorbell

      The file holds hashes, from which no token can be found. Exit codes are those of sysexits.h: 64 wrong name or one that \
      is taken, 65 broken file, 66 no such file or token, 77 no permission.
      """,
    subcommands: [AddCommand.self, RoleCommand.self, RemoveCommand.self, ListCommand.self])

  /// Which file.
  struct File: ParsableArguments {
    @Option(
      help: ArgumentHelp(
        "The tokens file; without it the usual one.",
        discussion: "That is /etc/nightjar/tokens for root, else nightjar/tokens under $XDG_CONFIG_HOME or ~/.config.",
        valueName: "path"))
    var tokens: String?

    var path: String { tokens ?? StandardPaths.tokensFile }

    /// The option again, for a command that is to be pasted.
    var option: String { tokens.map { " --tokens \(ShellWord.quoted($0))" } ?? "" }
  }

  /// A token of the file.
  struct KnownName: ParsableArguments {
    @Argument(help: "The token's name.", completion: NameCompletion.tokens, transform: UserCommand.Name.checked)
    var name: UserName
  }

  struct AddCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "add",
      abstract: "Make a token.",
      discussion: """
        The token is written to standard output, this once: (umask 077; nightjar token add doorbell > doorbell.token). It is sent as \
        Authorization: Bearer TOKEN, or for reading as ?token=TOKEN.
        """)

    @OptionGroup var user: UserCommand.Name
    @OptionGroup var role: RoleOption
    @Flag(help: "Make another token in place of that of this name, which is void then.")
    var replace = false
    @OptionGroup var file: File

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        let name = user.name
        let (token, role, wasThere) = try TokensFile.edit(file.path, mayCreate: true) { tokens in
          let former = tokens.role(of: name)
          guard former == nil || replace else {
            throw CommandFailure(
              kind: .usage,
              description:
                "there is a token \(name) in \(file.path) already, which would be void: choose another name, or "
                + "run nightjar token add \(name) --replace\(file.option)")
          }
          let role = self.role.role ?? former ?? .unnamed
          return (try tokens.make(for: name, role: role), role, former != nil)
        }
        writeError(
          wasThere
            ? "\(name) has a new token in \(file.path), role \(role.rawValue); the old one is void\n"
            : "added \(name) to \(file.path), role \(role.rawValue)\n")
        if file.tokens == nil, ServiceAccount.isBesideRoot {
          writeError(
            "these are root's own tokens; the service's: sudo -u \(ServiceAccount.name) nightjar token add \(name)\n")
        }
        writeError("Next: nightjar stream --rtsp --https; or, where it runs already: \(ServiceAccount.reloading)\n")
        try writeOutput(token + "\n")
      }
    }
  }

  struct RoleCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "role", abstract: "Change what a token may do; the token stays.")

    @OptionGroup var user: KnownName
    @OptionGroup var role: RoleArgument
    @OptionGroup var file: File

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        let name = user.name
        try TokensFile.edit(file.path, mayCreate: false) { tokens in
          guard tokens.setRole(role.role, of: name) else {
            throw CommandFailure.unknown("token", name, in: file.path)
          }
        }
        try writeOutput(role.report(name, in: file.path))
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
            throw CommandFailure.unknown("token", name, in: file.path)
          }
        }
        try writeOutput(
          "removed \(name) from \(file.path); a stream that runs takes it until nightjar ctl reload, or a new start\n")
      }
    }
  }

  struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List the tokens, one a line, with the role of each.")

    @OptionGroup var file: File

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        let tokens = try TokensFile(contentsOf: file.path)
        try writeOutput(tokens.names.map { "\($0)\t\(tokens.role(of: $0)?.rawValue ?? "")\n" }.joined())
      }
    }
  }
}
