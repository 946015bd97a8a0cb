import Appliance
import ArgumentParser
import Glibc
import Platform
import Serving

/// `nightjar config`.
struct ConfigurationCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config",
    abstract: "Check the configuration file, show its effect, or print an example.",
    discussion: """
      Examples:
        nightjar config example > nightjar.toml
        nightjar config check nightjar.toml
        nightjar stream --config nightjar.toml

      Exit codes are those of sysexits.h: 64 wrong options, 65 a mistake in the file, 66 no such file, 77 no permission.
      """,
    subcommands: [CheckCommand.self, ShowCommand.self, ExampleCommand.self])

  /// The file, named by an argument or by the option of `nightjar stream`.
  struct File: ParsableArguments {
    @Argument(help: ArgumentHelp("The same as --config.", valueName: "file"))
    var argument: String?

    @Option(
      name: .customLong("config"),
      help: ArgumentHelp(
        "The configuration file; the default is $NIGHTJAR_CONFIG, else the usual file.",
        discussion: """
          The usual file is /etc/nightjar/nightjar.toml for root, else nightjar/nightjar.toml in $XDG_CONFIG_HOME or \
          ~/.config.
          """, valueName: "file"))
    var option: String?

    private var path: String? { argument ?? option }

    func validate() throws {
      guard let argument, option != nil else { return }
      throw ValidationError("\(argument) and --config name two files: leave one of them out")
    }

    /// Returns the configuration of the file and the environment. Without a named file, a missing file is no error.
    ///
    /// - Throws: ``ConfigurationError``, also if a required file is missing.
    func load() throws -> ApplianceConfiguration {
      let isUsual = path == nil && (ProcessEnvironment.variables[ApplianceConfiguration.pathVariable] ?? "").isEmpty
      let file = isUsual && !ConfigurationFile.mayExist(found) ? "none" : found
      return try StreamCommand.configuration(of: ["--config=\(file)"])
    }

    /// Returns the configuration of the file alone, and notes its mistakes.
    ///
    /// - Throws: ``ConfigurationError`` if the file cannot be read.
    func check(_ faults: inout ConfigurationFaults) throws -> ApplianceConfiguration {
      let appliance = try ApplianceConfiguration.read(
        arguments: ["--config=\(found)"], environment: [:], faults: &faults,
        checkSyntax: StreamCommand.checkSyntax)
      appliance.noteMissingFiles(&faults)
      return appliance
    }

    private var found: String {
      if let path { return path }
      let named = ProcessEnvironment.variables[ApplianceConfiguration.pathVariable] ?? ""
      return named.isEmpty ? StandardPaths.configurationFile : named
    }
  }

  struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "check", abstract: "Find the mistakes in the file.",
      discussion: """
        It prints each mistake on one line, with its place. It checks the file, whether the files of users, tokens and \
        certificate exist that the file names, and whether anybody can log in to servers for other hosts. It does not \
        look for cameras. --strict also reads users, tokens and certificate, with the rights of the user who runs it.
        """)

    @OptionGroup var file: File

    @Flag(
      help:
        "Treat as a mistake what keeps a stream from starting: servers for others without users, missing certificates.")
    var strict = false

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        var faults = ConfigurationFaults()
        let appliance = try file.check(&faults)
        try report(faults.sorted)
        let open = appliance.openToNobody(asIsForUs: strict)
        for warning in appliance.warnings + (strict ? [] : open) { writeError("warning: \(warning)\n") }
        if strict {
          try report(appliance.credentialFailures())
          try report(open.map { ApplianceFailure(kind: .usage, description: $0) })
        }
        let names = appliance.cameras.map(\.name).joined(separator: ", ")
        try writeOutput(
          "\(appliance.path ?? "none"): no mistake found; \(appliance.cameras.count) camera\(appliance.cameras.count == 1 ? "" : "s"): "
            + "\(names)\n")
      }
    }

    /// Writes all failures. If there is one, the command ends with the exit code of the first.
    private func report(_ failures: [any Failure]) throws {
      for failure in failures { FailureOutput.write(failure) }
      if let first = failures.first { throw ExitCode(first.kind.exitCode) }
    }
  }

  struct ShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "show", abstract: "Print the options of file and environment as one file, each with its place."
    )

    @OptionGroup var file: File

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        let appliance = try file.load()
        for warning in appliance.warnings { writeError("warning: \(warning)\n") }
        try writeOutput(Self.text(appliance))
      }
    }

    private static func text(_ appliance: ApplianceConfiguration) -> String {
      let options = OptionTable.stream.options
      var lines = options.compactMap { option in
        option.scope == .appliance ? appliance.options[option.name].map(line) : nil
      }
      for camera in appliance.cameras {
        lines += ["", "[[camera]]"]
        lines += options.compactMap { option in
          option.scope == .appliance ? nil : camera.options[option.name].map(line)
        }
      }
      let isUsual = appliance.cameras.allSatisfy(\.options.isEmpty)
      if isUsual { lines = ["# nothing is set: all is as nightjar config example shows it"] + lines.suffix(1) }
      return lines.drop { $0.isEmpty }.joined(separator: "\n") + "\n"
    }

    private static func line(_ setting: OptionSetting) -> String { "\(setting.line)  # \(setting.origin)" }
  }

  struct ExampleCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "example", abstract: "Print an example file that explains every option.")

    @Flag(
      help: "Print the service's file, as make install writes it: one camera that may appear later, served by RTSP.")
    var service = false

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures { try writeOutput(ExampleConfiguration.text(forService: service)) }
    }
  }
}

extension ApplianceConfiguration {
  /// The options that name a file without which no stream starts.
  private static let requiredFiles = ["users", "tokens", "tls-cert", "tls-key", "webhook-key", "mqtt-ca", "mqtt-login"]

  /// Notes files that are named and missing. A file that only its owner may look for is taken to exist. A relative path
  /// counts from the present directory, as for a stream that starts there.
  fileprivate func noteMissingFiles(_ faults: inout ConfigurationFaults) {
    for option in Self.requiredFiles {
      guard let setting = options[option], let path = setting.text, !path.isEmpty, !ConfigurationFile.mayExist(path)
      else { continue }
      let mend =
        switch option {
        case _ where !path.hasPrefix("/"): " in the present directory; write the absolute path"
        case "users": "; nightjar user add NAME --users \(ShellWord.quoted(path)) makes it"
        case "tokens": "; nightjar token add NAME --tokens \(ShellWord.quoted(path)) makes it"
        case "webhook-key": "; make a key with: echo whsec_$(openssl rand -base64 32)"
        case "mqtt-login": "; write the user on its first line, and the password on its second"
        default: ""
        }
      faults.add(
        ConfigurationError(.noInput, at: "\(setting.origin)", key: option, "there is no file \(path)\(mend)"))
    }
  }
}

extension ApplianceConfiguration {
  /// Reads the files of users, tokens and certificates, as a stream does at its start. Returns the errors, of which a
  /// stream reports the first.
  fileprivate func credentialFailures() throws -> [any Failure] {
    var failures: [any Failure] = events.outputs.fileFailures()
    func note(_ read: () throws -> Void) throws {
      do { try read() } catch let failure as any Failure { failures.append(failure) }
    }
    guard rtsp.isServed || api.https != nil || http.http != nil else { return failures }
    try note { _ = try rtsp.usersFile() }
    if api.https != nil { try note { _ = try api.tokensFile() } }
    if let certificate = rtsp.certificate, let key = rtsp.key {
      try note { _ = try TLSIdentity(certificateFile: certificate, keyFile: key) }
    }
    return failures
  }

  /// Returns a line for each server that is open to other hosts while nobody can log in: a stream would not start with
  /// such a server.
  ///
  /// - Parameter asIsForUs: `true` if root means a stream of its own, and not the service's.
  fileprivate func openToNobody(asIsForUs: Bool) -> [String] {
    // The service may be able to read a file that this user may not.
    guard var hasUsers = try? (rtsp.usersFile(mayBeEmpty: true)?.users.isEmpty == false),
      var hasTokens = try? (api.tokensFile()?.names.isEmpty == false)
    else { return [] }
    // The service's users are not those of root, who looks at the service's file.
    let isOfService = !asIsForUs && ServiceAccount.isBesideRoot
    if isOfService, rtsp.users == nil { hasUsers = ServiceAccount.hasUsers == true }
    if isOfService, api.tokens == nil { hasTokens = ServiceAccount.hasTokens == true }
    let servers = [
      ("rtsp", rtsp.rtsp, hasUsers), ("rtsps", rtsp.rtsps, hasUsers), ("https", api.https, hasUsers || hasTokens),
      ("http", http.http, hasUsers),
    ]
    let adding =
      isOfService ? "sudo -u \(ServiceAccount.name) nightjar user add NAME" : ServiceAccount.addingUser
    return servers.compactMap { name, given, hasAnybody in
      guard let given, given.listeners(port: 1, isEncrypted: false, isOpenToOthers: hasAnybody) == nil else {
        return nil
      }
      return "\(name) \(given): without users nightjar does not serve other hosts, and does not start. Add a user: "
        + adding
    }
  }
}
