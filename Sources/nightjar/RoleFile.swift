import Appliance
import ArgumentParser
import Glibc
import Platform
import Serving

/// The option that names a file of users or of tokens. `nightjar user` and `nightjar token` edit their files alike.
protocol RoleFile: ParsableArguments {
  /// The kind of the file's names: `user` or `token`.
  static var noun: String { get }
  /// The completion of the file's names.
  static var names: CompletionKind { get }
  /// The columns of the list behind the name, for its help.
  static var columns: String { get }
  /// The path that the option gives; nil for the default one.
  var given: String? { get }
  /// The path of the file.
  var path: String { get }

  /// Sets the role of a name that the file has.
  func set(_ role: Role, of name: UserName) throws
  /// Removes a name that the file has. Returns the number of names left.
  func remove(_ name: UserName) throws -> Int
  /// Returns the list of names, one a line, with their columns.
  func list() throws -> String
}

extension RoleFile {
  /// The option again, for a command that a person pastes; empty for the default file.
  var option: String { given.map { " --\(Self.noun)s \(ShellWord.quoted($0))" } ?? "" }

  /// The failure for a name that is missing in the file.
  func unknown(_ name: UserName) -> ApplianceFailure {
    let noun = Self.noun
    return ApplianceFailure(
      kind: .noInput,
      description: "there is no \(noun) \(name) in \(path). List the names: nightjar \(noun) list\(option)")
  }

  /// Tells root that the service has another file.
  func tellOfService(_ name: UserName) {
    guard given == nil, ServiceAccount.isBesideRoot else { return }
    writeError(
      "this file is for streams that root starts. For the service: sudo -u \(ServiceAccount.name) "
        + "nightjar \(Self.noun) add \(name)\n")
  }
}

/// A name in a file of users or of tokens.
struct KnownName<File: RoleFile>: ParsableArguments {
  @Argument(help: "The \(File.noun)'s name.", completion: File.names, transform: UserCommand.Name.checked)
  var name: UserName
}

/// `nightjar user role` and `nightjar token role`.
struct RoleCommand<File: RoleFile>: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(commandName: "role", abstract: "Change the role of a \(File.noun), and nothing else.")
  }

  @OptionGroup var entry: KnownName<File>
  @Argument(help: "read (figures), view (also pictures and sound) or control (everything that nightjar ctl does).")
  var role: Role
  @OptionGroup var file: File

  func run() throws {
    signal(SIGPIPE, SIG_IGN)
    try reportingFailures {
      try file.set(role, of: entry.name)
      try writeOutput(
        "\(entry.name) has the role \(role.rawValue) in \(file.path). A running stream takes this over within a second.\n"
      )
    }
  }
}

/// `nightjar user remove` and `nightjar token remove`.
struct RemoveCommand<File: RoleFile>: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(commandName: "remove", abstract: "Remove a \(File.noun).")
  }

  @OptionGroup var entry: KnownName<File>
  @OptionGroup var file: File

  func run() throws {
    signal(SIGPIPE, SIG_IGN)
    try reportingFailures {
      let left = try file.remove(entry.name)
      let next = left > 0 ? "" : "No \(File.noun)s are left. Add one: nightjar \(File.noun) add NAME\(file.option)\n"
      try writeOutput(
        "removed \(entry.name) from \(file.path). A running stream refuses the \(File.noun) within a few seconds.\n\(next)"
      )
    }
  }
}

/// `nightjar user list` and `nightjar token list`.
struct ListCommand<File: RoleFile>: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(commandName: "list", abstract: "List the \(File.noun)s, one a line, with \(File.columns).")
  }

  @OptionGroup var file: File

  func run() throws {
    signal(SIGPIPE, SIG_IGN)
    try reportingFailures { try writeOutput(file.list()) }
  }
}
