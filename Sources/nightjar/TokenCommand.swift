import Appliance
import ArgumentParser
import Glibc
import Platform
import Serving

/// `nightjar token`.
struct TokenCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "token",
    abstract: "Manage tokens for programs that use the control API over the network.",
    discussion: """
      Examples:
        nightjar token add doorbell
        nightjar token add prometheus --role read
        nightjar token role doorbell control
        nightjar token list
        nightjar token remove doorbell

      The file holds hashes, not tokens. Exit codes are those of sysexits.h: 64 wrong or existing name, 65 broken \
      file, 66 no such file or token, 77 no permission.
      """,
    subcommands: [AddCommand.self, RoleCommand<File>.self, RemoveCommand<File>.self, ListCommand<File>.self])

  /// The option that names the file.
  struct File: RoleFile {
    static let noun = "token"
    static let names = NameCompletion.tokens
    static let columns = "name and role"

    @Option(
      help: ArgumentHelp(
        "The tokens file.",
        discussion:
          "The default is /etc/nightjar/tokens for root, else nightjar/tokens in $XDG_CONFIG_HOME or ~/.config.",
        valueName: "path"))
    var tokens: String?

    var given: String? { tokens }
    var path: String { tokens ?? StandardPaths.tokensFile }

    func set(_ role: Role, of name: UserName) throws {
      try TokensFile.edit(path, mayCreate: false) { tokens in
        guard tokens.setRole(role, of: name) else { throw unknown(name) }
      }
    }

    func remove(_ name: UserName) throws -> Int {
      try TokensFile.edit(path, mayCreate: false) { tokens in
        guard tokens.remove(name) else { throw unknown(name) }
        return tokens.names.count
      }
    }

    func list() throws -> String {
      let tokens = try TokensFile(contentsOf: path)
      return tokens.names.map { "\($0)\t\(tokens.role(of: $0)?.rawValue ?? "")\n" }.joined()
    }
  }

  struct AddCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "add",
      abstract: "Add a token, or replace one.",
      discussion: """
        It prints the token on standard output, only once: (umask 077; nightjar token add doorbell > doorbell.token). \
        A program sends the token as Authorization: Bearer TOKEN, or to read as ?token=TOKEN.
        """)

    @OptionGroup var user: UserCommand.Name
    @OptionGroup var role: RoleOption
    @Flag(help: "Replace the token of this name; the old one becomes void.")
    var replace = false
    @OptionGroup var file: File

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        let name = user.name
        let (token, role, wasThere) = try TokensFile.edit(file.path, mayCreate: true) { tokens in
          let former = tokens.role(of: name)
          guard former == nil || replace else {
            throw ApplianceFailure(
              kind: .usage,
              description:
                "a token \(name) exists in \(file.path) already. Choose another name, or make the old token void: "
                + "nightjar token add \(name) --replace\(file.option)")
          }
          let role = self.role.role ?? former ?? .unnamed
          return (try tokens.make(for: name, role: role), role, former != nil)
        }
        writeError(
          wasThere
            ? "\(name) has a new token in \(file.path), role \(role.rawValue); the old one is void\n"
            : "added \(name) to \(file.path), role \(role.rawValue)\n")
        file.tellOfService(name)
        writeError(
          "A stream that runs already takes the token within a second. "
            + "Next: nightjar stream --rtsp --https\(file.option)\n")
        try writeOutput(token + "\n")
      }
    }
  }
}
