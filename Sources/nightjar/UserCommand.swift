import ArgumentParser
import Credentials
import Glibc
import Media

/// `nightjar user`.
struct UserCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "user",
    abstract: "Say who may watch, and who may change something.",
    discussion: """
      Examples:
        nightjar user add alice
        nightjar user role alice control
        nightjar user list
        nightjar user remove alice

      The file holds no passwords, but what is as good as them: keep it from others. Exit codes are those of sysexits.h: \
      64 wrong name or password, 65 broken file, 66 no such file or user, 77 no permission.
      """,
    subcommands: [AddCommand.self, RoleCommand.self, RemoveCommand.self, ListCommand.self])

  /// Which file.
  struct File: ParsableArguments {
    @Option(
      help: ArgumentHelp(
        "The users file; without it the usual one.",
        discussion: "That is /etc/nightjar/users for root, else nightjar/users under $XDG_CONFIG_HOME or ~/.config.",
        valueName: "path"))
    var users: String?

    var path: String { users ?? StandardPaths.usersFile }
  }

  struct Name: ParsableArguments {
    @Argument(
      help: "1 to 64 visible ASCII characters without : \" and \\.",
      transform: Self.checked)
    var name: UserName

    /// - Throws: `ValidationError` for what cannot be a name.
    static func checked(_ text: String) throws -> UserName {
      do throws(UserNameError) {
        return try UserName(text)
      } catch {
        throw ValidationError(error.description)
      }
    }
  }

  /// A user of the file.
  struct KnownName: ParsableArguments {
    @Argument(help: "The user's name.", completion: NameCompletion.users, transform: Name.checked)
    var name: UserName
  }

  struct AddCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "add",
      abstract: "Add a user, or give one another password.",
      discussion: """
        The password is asked for twice and not shown. Where standard input is no terminal, its first line is the \
        password: pass show camera | nightjar user add alice

        A password has 8 to 256 characters: who overhears one login can try passwords at home. Players that take it in a \
        URL want it percent-encoded; letters and digits need no encoding.
        """)

    @OptionGroup var user: Name
    @OptionGroup var role: RoleOption
    @OptionGroup var file: File

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        let name = user.name
        // Before anybody types a password for nothing.
        if access(file.path, F_OK) == 0 { _ = try UsersFile(contentsOf: file.path) }
        var entry = try UsersFile.User(name: name, password: PasswordPrompt.password(of: name))
        let wasThere = try UsersFile.edit(file.path, mayCreate: true) { users in
          entry.role = role.role ?? users[name]?.role ?? .unnamed
          return try users.set(entry)
        }
        let option = file.path == StandardPaths.usersFile ? "" : " --users \(ShellWord.quoted(file.path))"
        let isRootsOwn = file.users == nil && ServiceAccount.isBesideRoot
        if isRootsOwn {
          writeError(
            "these are root's own users; the service's: sudo -u \(ServiceAccount.name) nightjar user add \(name) && sudo "
              + "systemctl reload nightjar\n")
        }
        try writeOutput(
          """
          \(wasThere ? "\(name) has a new password" : "added \(name)") in \(file.path), role \(entry.role.rawValue)
          A stream that begins, or reloads, has everybody log in, on this machine too: rtsp://\(name):PASSWORD@localhost:8554/camera
          Next: nightjar stream --rtsp\(option)
          Or, where it runs already: \(ServiceAccount.reloading)

          """)
      }
    }
  }

  struct RoleCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "role", abstract: "Change what a user may do; the password stays.")

    @OptionGroup var user: KnownName
    @OptionGroup var role: RoleArgument
    @OptionGroup var file: File

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        let name = user.name
        try UsersFile.edit(file.path, mayCreate: false) { users in
          guard var entry = users[name] else {
            throw CommandFailure.unknown("user", name, in: file.path)
          }
          entry.role = role.role
          try users.set(entry)
        }
        try writeOutput(role.report(name, in: file.path))
      }
    }
  }

  struct RemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "remove", abstract: "Remove a user.")

    @OptionGroup var user: KnownName
    @OptionGroup var file: File

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        let name = user.name
        let left = try UsersFile.edit(file.path, mayCreate: false) { users in
          guard users.remove(name) else {
            throw CommandFailure.unknown("user", name, in: file.path)
          }
          return users.users.count
        }
        let next = left > 0 ? "" : "Nobody is left who may watch: nightjar user add NAME\n"
        try writeOutput(
          "removed \(name) from \(file.path); a stream that runs lets them in until: nightjar ctl reload\n\(next)")
      }
    }
  }

  struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list",
      abstract: "List the users, one a line, with the role of each and the algorithms that it can log in with.")

    @OptionGroup var file: File

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        let users = try UsersFile(contentsOf: file.path).users
        try writeOutput(
          users.map { user in
            let algorithms = DigestAlgorithm.allCases.filter { user.hashes[$0] != nil }.map(\.rawValue)
            return "\(user.name)\t\(user.role.rawValue)\t\(algorithms.joined(separator: " "))\n"
          }.joined())
      }
    }
  }
}
