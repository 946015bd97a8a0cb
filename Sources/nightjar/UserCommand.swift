import Appliance
import ArgumentParser
import Glibc
import Platform
import Serving

/// `nightjar user`.
struct UserCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "user",
    abstract: "Manage the users, who may watch or change the stream.",
    discussion: """
      Examples:
        nightjar user add alice
        nightjar user role alice control
        nightjar user list
        nightjar user remove alice

      The file holds hashes that serve as well as passwords: keep it secret. Exit codes are those of sysexits.h: 64 \
      wrong name or password, 65 broken file, 66 no such file or user, 77 no permission.
      """,
    subcommands: [AddCommand.self, RoleCommand<File>.self, RemoveCommand<File>.self, ListCommand<File>.self])

  /// The option that names the file.
  struct File: RoleFile {
    static let noun = "user"
    static let names = NameCompletion.users
    static let columns = "name, role and login algorithms"

    @Option(
      help: ArgumentHelp(
        "The users file.",
        discussion:
          "The default is /etc/nightjar/users for root, else nightjar/users in $XDG_CONFIG_HOME or ~/.config.",
        valueName: "path"))
    var users: String?

    var given: String? { users }
    var path: String { users ?? StandardPaths.usersFile }

    func set(_ role: Role, of name: UserName) throws {
      try UsersFile.edit(path, mayCreate: false) { users in
        guard var entry = users[name] else { throw unknown(name) }
        entry.role = role
        _ = try users.set(entry)
      }
    }

    func remove(_ name: UserName) throws -> Int {
      try UsersFile.edit(path, mayCreate: false) { users in
        guard users.remove(name) else { throw unknown(name) }
        return users.users.count
      }
    }

    func list() throws -> String {
      try UsersFile(contentsOf: path).users.map { user in
        let algorithms = DigestAlgorithm.allCases.filter { user.hashes[$0] != nil }.map(\.rawValue)
        return "\(user.name)\t\(user.role.rawValue)\t\(algorithms.joined(separator: " "))\n"
      }.joined()
    }
  }

  struct Name: ParsableArguments {
    @Argument(
      help: "The name: 1 to 64 visible ASCII characters without : \" and \\.",
      transform: Self.checked)
    var name: UserName

    /// - Throws: `ValidationError` for a text that is no valid name.
    static func checked(_ text: String) throws -> UserName {
      do throws(UserNameError) {
        return try UserName(text)
      } catch {
        throw ValidationError(error.description)
      }
    }
  }

  struct AddCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "add",
      abstract: "Add a user, or change a user's password.",
      discussion: """
        It asks for the password twice, and does not show it. If standard input is not a terminal, its first line is \
        the password: pass show camera | nightjar user add alice

        A password has 8 to 256 characters: an eavesdropper of one login can try passwords offline. In a URL, \
        percent-encode the password; letters and digits need no encoding.
        """)

    @OptionGroup var user: Name
    @OptionGroup var role: RoleOption
    @OptionGroup var file: File

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        let name = user.name
        // Before a person types a password for nothing.
        if access(file.path, F_OK) == 0 { _ = try UsersFile(contentsOf: file.path) }
        var entry = try UsersFile.User(name: name, password: PasswordPrompt.password(of: name))
        let wasThere = try UsersFile.edit(file.path, mayCreate: true) { users in
          entry.role = role.role ?? users[name]?.role ?? .unnamed
          return try users.set(entry)
        }
        file.tellOfService(name)
        try writeOutput(
          """
          \(wasThere ? "\(name) has a new password" : "added \(name)") in \(file.path), role \(entry.role.rawValue)
          Everybody must log in now, on this host too: rtsp://\(name):PASSWORD@localhost:8554/camera
          A stream that runs already takes this over within a second.
          Next: nightjar stream --rtsp\(file.option)

          """)
      }
    }
  }
}
