import Appliance
import ArgumentParser
import Capture
import Glibc
import Platform
import Serving

/// `nightjar setup`.
struct SetupCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "setup",
    abstract: "Make this host a camera for phones: ask a few questions, then start the service.",
    discussion: """
      It asks for the camera, if there are several, and for a user with a password. It then serves the page for browsers, \
      RTSP and announcements, starts the service now and at each boot, and ends with the page's address and a QR code for \
      the first phone. Run it again at any time: what is set up already stays.

        sudo nightjar setup

      Without sudo, or without the service, it sets up the streams that you start yourself.

      If standard input is not a terminal, it asks nothing: --user names the user, and the first line of standard input is \
      the password.
      """)

  @Option(help: ArgumentHelp("The camera, as nightjar devices lists it.", valueName: "path"))
  var source: String?

  @Option(
    help: ArgumentHelp("The user who may watch and change things.", valueName: "name"),
    transform: UserCommand.Name.checked)
  var user: UserName?

  func run() throws {
    signal(SIGPIPE, SIG_IGN)
    try reportingFailures { try Setup(source: source, user: user).run() }
  }
}

/// One run of `nightjar setup`. Nothing changes before all questions are answered.
private struct Setup {
  let source: String?
  let user: UserName?
  private let isAsking = isatty(STDIN_FILENO) == 1
  /// `true` if the service is set up, `false` for the streams of this user.
  private let isForService = geteuid() == 0 && ServiceState.hasSystemd && ServiceState.ask()?.isInstalled == true

  private static let unit = "nightjar.service"
  /// The time for the service to start, and to serve its page.
  private static let patience = Duration(seconds: 30)

  init(source: String?, user: UserName?) {
    (self.source, self.user) = (source, user)
  }

  func run() throws {
    let path = StandardPaths.configurationFile
    let former = try ConfigurationFile.mayExist(path) ? Self.text(of: path) : nil
    // A mistake is told before anything changes.
    let users = try former.flatMap { try Self.check($0, path: path).settings["users"]?.text }
    let camera = try chosenCamera()
    let login = try chosenLogin(users)

    // From here on things change.
    if let login { try add(login.name, login.password, to: users) }
    try configure(path, former, camera)
    guard isForService else {
      return try writeOutput(
        "Next: nightjar stream; then, for a phone: nightjar ctl phone add\n"
          + (geteuid() == 0 ? "" : "For a stream from boot on, install the service, and run sudo nightjar setup\n"))
    }
    try startService()
    try letPhoneIn()
  }

  // MARK: Questions

  /// Returns the camera to write down; nil for the one that is configured, or the first that there is.
  private func chosenCamera() throws -> String? {
    if let source { return source }
    let cameras = CameraList().entries.filter { $0.obstacle == nil }
    guard isAsking, cameras.count > 1 else {
      if let only = cameras.first { writeError("camera     \(Self.name(of: only))\n") }
      if cameras.isEmpty {
        writeError("camera     none now: the stream begins when one is plugged in; see nightjar devices\n")
      }
      return nil
    }
    writeError("Which camera?\n")
    for (index, camera) in cameras.enumerated() { writeError("  \(index + 1)  \(Self.name(of: camera))\n") }
    while true {
      let answer = try ask("Number [1]: ")
      guard !answer.isEmpty else { return Self.lasting(cameras[0]) }
      if let number = Int(answer), cameras.indices.contains(number - 1) { return Self.lasting(cameras[number - 1]) }
      writeError("choose 1 to \(cameras.count)\n")
    }
  }

  private static func name(of camera: CameraListing) -> String {
    "\(camera.path)\(camera.identity.map { "  \($0.card)" } ?? "")"
  }

  /// The path by which a camera is found again, whatever the order in which cameras are plugged in.
  private static func lasting(_ camera: CameraListing) -> String { camera.links.first ?? camera.path }

  /// Returns the user to add; nil if there are users.
  ///
  /// - Parameter file: the users file that the configuration names.
  private func chosenLogin(_ file: String?) throws -> (name: UserName, password: String)? {
    let hasUsers =
      isForService && file == nil
      ? ServiceAccount.hasUsers == true
      : (try? UsersFile(contentsOf: file ?? StandardPaths.usersFile).users.isEmpty) == false
    if user == nil, hasUsers {
      writeError("user       there are users; nightjar user list lists them\n")
      return nil
    }
    guard let name = try user ?? askedName() else {
      throw ApplianceFailure(
        kind: .usage, description: "there is no user yet: name one with --user NAME, and send the password's line")
    }
    return (name, try PasswordPrompt.password(of: name))
  }

  private func askedName() throws -> UserName? {
    guard isAsking else { return nil }
    writeError("Who may watch, and change things? Phones get log-ins of their own later.\n")
    let proposed = getenv("SUDO_USER").flatMap { try? UserName(String(cString: $0)) }
    while true {
      let answer = try ask("Name\(proposed.map { " [\($0)]" } ?? ""): ")
      if answer.isEmpty, let proposed { return proposed }
      do throws(UserNameError) {
        return try UserName(answer)
      } catch {
        writeError("\(error)\n")
      }
    }
  }

  /// Asks on the terminal. Returns the answer without spaces around.
  private func ask(_ question: String) throws -> String {
    writeError(question)
    guard let line = readLine() else {
      throw ApplianceFailure(kind: .usage, description: "no answer; nothing was changed")
    }
    return String(line.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
  }

  // MARK: Changes

  private func add(_ name: UserName, _ password: String, to file: String?) throws {
    guard isForService, file == nil else {
      let path = file ?? StandardPaths.usersFile
      try UsersFile.edit(path, mayCreate: true) { users in
        var entry = try UsersFile.User(name: name, password: password)
        entry.role = .control
        _ = try users.set(entry)
      }
      return writeError("user       \(name), in \(path)\n")
    }
    // The file must belong to the service's account.
    let adding = [Program.path, "user", "add", "\(name)", "--role", Role.control.rawValue]
    try Self.run(
      ["runuser", "-u", ServiceAccount.name, "--"] + adding, input: Array((password + "\n").utf8),
      "adding the user \(name)")
    writeError("user       \(name), of the service\n")
  }

  private func configure(_ path: String, _ former: String?, _ camera: String?) throws {
    var text = ConfigurationText(former ?? ExampleConfiguration.text(forService: isForService))
    let present = former.flatMap { try? Self.check($0, path: path) }
    for option in ["rtsp", "https", "announce"] {
      // An address that is configured stays.
      let value = present?.settings[option]?.value
      if value == nil || value == .flag(false) { text.set(option, to: "true") }
    }
    if let camera { text.setOfFirstCamera("source", to: Self.quoted(camera)) }
    guard text.text != former else { return writeError("config     \(path), as it was\n") }
    _ = try Self.check(text.text, path: path)
    let file = try OutputFile(checking: path)
    try file.write(text.text)
    if former == nil { chmod(path, 0o644) }
    writeError("config     \(path)\n")
  }

  /// Reads the text of a configuration.
  ///
  /// - Throws: ``ConfigurationError``: its first mistake.
  private static func check(_ text: String, path: String) throws -> ConfigurationFile {
    try ConfigurationFile(parsing: Array(text.utf8), path: path, options: OptionTable.stream)
  }

  private static func text(of path: String) throws -> String {
    let bytes: [UInt8]
    do throws(PlainFileError) {
      bytes = try PlainFile.contents(of: path, limit: 1 << 20, others: .anything).bytes
    } catch {
      throw ApplianceFailure(kind: .noInput, description: "\(path) cannot be read: \(error)")
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw ApplianceFailure(kind: .data, description: "\(path) is not UTF-8: is it the right file?")
    }
    return text
  }

  private static func quoted(_ text: String) -> String {
    "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
  }

  private func startService() throws {
    let asking = ["systemctl", "--quiet", "is-active", Self.unit]
    let isActive = CommandOutput.run(asking, patience: Self.patience)?.status == 0
    try Self.run(["systemctl", "enable", "--now", Self.unit], "starting the service")
    if isActive { try Self.run(["systemctl", "reload", Self.unit], "applying the configuration") }
    writeError("service    starts now, and at each boot\n")
  }

  /// Shows the address and the code of the first phone, once the page is served.
  private func letPhoneIn() throws {
    let client = ControlClient(path: "/run/nightjar/control.sock")
    let deadline = Instant.now() + Self.patience
    while true {
      do {
        let answer = try client.makePhoneCode(.control)
        return try writeOutput("\n" + PhoneText.text(answer.value, withCode: isatty(STDOUT_FILENO) == 1) + Self.advice)
      } catch {
        guard Instant.now() < deadline else {
          throw ApplianceFailure(
            kind: .unavailable,
            description: "the service does not serve its page: \(error); sudo nightjar doctor finds the reason")
        }
        usleep(300_000)
      }
    }
  }

  private static let advice = """
    The browser warns of the certificate once: the service has made it itself (docs/browser.md).
    With a firewall: sudo ufw allow 8443/tcp && sudo ufw allow 8189
    The next phone: sudo nightjar ctl phone add; or Phones on the page.

    """

  /// Runs a program of the system.
  ///
  /// - Throws: ``ApplianceFailure`` with its last line, if it fails.
  private static func run(_ words: [String], input: [UInt8] = [], _ what: String) throws {
    guard let result = CommandOutput.run(words, input: input, patience: Duration(seconds: 90)) else {
      throw ApplianceFailure(kind: .unavailable, description: "\(what): \(words[0]) does not run")
    }
    guard result.status == 0 else {
      let last = result.text.split(separator: "\n").last.map { ": \($0)" } ?? ""
      throw ApplianceFailure(kind: .unavailable, description: "\(what) failed\(last)")
    }
  }
}
