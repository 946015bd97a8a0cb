import ArgumentParser
import Credentials
import Glibc
import Media
import Settings

/// `nightjar config`.
struct ConfigurationCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config",
    abstract: "Options in a file: check it, see what comes of it, begin one.",
    discussion: """
      Examples:
        nightjar config example > nightjar.toml
        nightjar config check --config nightjar.toml
        nightjar stream --config nightjar.toml

      Exit codes are those of sysexits.h: 64 wrong options, 65 a mistake in the file, 66 no such file, 77 no permission.
      """,
    subcommands: [CheckCommand.self, ShowCommand.self, ExampleCommand.self])

  /// Which file.
  struct File: ParsableArguments {
    @Option(
      name: .customLong("config"),
      help: ArgumentHelp(
        "The configuration file; without it $NIGHTJAR_CONFIG, else the usual one.",
        discussion: """
          That is /etc/nightjar/nightjar.toml for root, else nightjar/nightjar.toml under $XDG_CONFIG_HOME or ~/.config.
          """, valueName: "file"))
    var path: String?

    /// What comes of the file and the environment; it will do without a file, where none was named.
    ///
    /// - Throws: ``ConfigurationError``, also where there is no file that has to be.
    func load() throws -> BoxConfiguration {
      let isUsual = path == nil && (ProcessEnvironment.variables[BoxConfiguration.pathVariable] ?? "").isEmpty
      let file = isUsual && !ConfigurationFile.mayExist(found) ? "none" : found
      return try BoxConfiguration.load(arguments: ["--config=\(file)"], environment: ProcessEnvironment.variables)
    }

    /// What comes of the file alone, whose mistakes are noted.
    ///
    /// - Throws: ``ConfigurationError`` where it cannot be read.
    func check(_ faults: inout ConfigurationFaults) throws -> BoxConfiguration {
      let box = try BoxConfiguration.read(arguments: ["--config=\(found)"], environment: [:], faults: &faults)
      box.noteMissingFiles(&faults)
      return box
    }

    private var found: String {
      if let path { return path }
      let named = ProcessEnvironment.variables[BoxConfiguration.pathVariable] ?? ""
      return named.isEmpty ? StandardPaths.configurationFile : named
    }
  }

  struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "check", abstract: "Find the mistakes in the file.",
      discussion: """
        Each is a line with its place. It looks at the file, whether the files of users, tokens and certificate that it \
        names are there, and for servers that others are to reach at who may log in; cameras may be there or not. With \
        --strict it reads users, tokens and certificate too, as they are for whoever asks: what a stream would not start \
        with is a mistake then.
        """)

    @OptionGroup var file: File

    @Flag(
      help: "What a stream would not start with is a mistake: servers for others without users, missing certificates.")
    var strict = false

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        var faults = ConfigurationFaults()
        let box = try file.check(&faults)
        for fault in faults.sorted { FailureOutput.write(fault) }
        if let first = faults.sorted.first { throw ExitCode(first.kind.exitCode) }
        let open = box.box.openToNobody(asIsForUs: strict)
        for warning in box.warnings + (strict ? [] : open) { writeError("warning: \(warning)\n") }
        if strict {
          try box.box.requireCredentials()
          if let first = open.first { throw CommandFailure(kind: .usage, description: first) }
        }
        let names = box.cameras.map(\.name).joined(separator: ", ")
        try writeOutput(
          "\(box.path ?? "none"): no mistake found; \(box.cameras.count) camera\(box.cameras.count == 1 ? "" : "s"): "
            + "\(names)\n")
      }
    }
  }

  struct ShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "show", abstract: "Show what file and environment say together, and where it stands, as such a file."
    )

    @OptionGroup var file: File

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        let box = try file.load()
        for warning in box.warnings { writeError("warning: \(warning)\n") }
        try writeOutput(Self.text(box))
      }
    }

    private static func text(_ box: BoxConfiguration) -> String {
      let options = StreamCommand.optionTable.options
      var lines = options.compactMap { option in
        option.scope == .box ? box.settings[0][option.name].map(line) : nil
      }
      for settings in box.settings {
        lines += ["", "[[camera]]"]
        lines += options.compactMap { option in option.scope == .box ? nil : settings[option.name].map(line) }
      }
      let isUsual = box.settings.allSatisfy { $0.isEmpty }
      if isUsual { lines = ["# nothing is set: all is as nightjar config example shows it"] + lines.suffix(1) }
      return lines.drop { $0.isEmpty }.joined(separator: "\n") + "\n"
    }

    private static func line(_ setting: OptionSetting) -> String { "\(setting.line)  # \(setting.origin)" }
  }

  struct ExampleCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "example", abstract: "Print a file that explains every option, to begin with.")

    @Flag(help: "As make install writes it for the service: one camera that may come later, served by RTSP.")
    var service = false

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures { try writeOutput(ExampleConfiguration.text(forService: service)) }
    }
  }
}

extension BoxConfiguration {
  /// The options that name a file without which no stream starts.
  private static let requiredFiles = ["users", "tokens", "tls-cert", "tls-key"]

  /// Notes files that are named and not there. Those that only their owner may look for are taken to be there, and where a
  /// path begins is known for those from the root alone.
  fileprivate func noteMissingFiles(_ faults: inout ConfigurationFaults) {
    for option in Self.requiredFiles {
      guard let setting = settings[0][option], let path = setting.text, path.hasPrefix("/"),
        !ConfigurationFile.mayExist(path)
      else { continue }
      let mend =
        switch option {
        case "users": "; nightjar user add NAME --users \(ShellWord.quoted(path)) makes it"
        case "tokens": "; nightjar token add NAME --tokens \(ShellWord.quoted(path)) makes it"
        default: ""
        }
      faults.add(
        ConfigurationError(.noInput, at: "\(setting.origin)", key: option, "there is no file \(path)\(mend)"))
    }
  }
}

extension StreamCommand {
  /// Reads the files that say who may log in and what the servers show, as a stream does at its start.
  ///
  /// - Throws: as that does.
  fileprivate func requireCredentials() throws {
    guard serving.isServed || api.https != nil || http.http != nil else { return }
    _ = try serving.usersFile()
    if api.https != nil { _ = try api.tokensFile() }
    if let certificate = serving.certificate, let key = serving.key {
      _ = try TLSIdentity(certificateFile: certificate, keyFile: key)
    }
  }

  /// A line for each server that others are to reach while nobody could log in: a stream would not start with it.
  ///
  /// - Parameter asIsForUs: whether root means a stream of its own, and not the service's.
  fileprivate func openToNobody(asIsForUs: Bool) -> [String] {
    // What may not be read by whoever checks may be well for the service.
    guard var hasUsers = try? (serving.usersFile(mayBeEmpty: true)?.users.isEmpty == false),
      var hasTokens = try? (api.tokensFile()?.names.isEmpty == false)
    else { return [] }
    // The service's users are not those of root, who looks at the service's file.
    let isOfService = !asIsForUs && ServiceAccount.isBesideRoot
    if isOfService, serving.users == nil { hasUsers = ServiceAccount.hasUsers == true }
    if isOfService, api.tokens == nil { hasTokens = ServiceAccount.hasTokens == true }
    let servers = [
      ("rtsp", serving.rtsp, hasUsers), ("rtsps", serving.rtsps, hasUsers), ("https", api.https, hasUsers || hasTokens),
      ("http", http.http, hasUsers),
    ]
    let adding =
      isOfService ? "sudo -u \(ServiceAccount.name) nightjar user add NAME" : ServiceAccount.addingUser
    return servers.compactMap { name, given, hasAnybody in
      guard let given, given.listeners(port: 1, isEncrypted: false, isOpenToOthers: hasAnybody) == nil else {
        return nil
      }
      return "\(name) \(given): nightjar serves others only where there are users, else it does not start; there are "
        + "none: \(adding)"
    }
  }
}
