import Appliance
import ArgumentParser
import Glibc
import Platform
import Serving

/// `nightjar certificate`.
struct CertificateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "certificate",
    abstract: "Let phones and computers trust this host, so that their browsers do not warn.",
    discussion: """
      `make` makes an authority for this host alone, which signs the host's certificate from then on: also for other \
      addresses, and again before it ends. Install the authority's certificate on each phone once: docs/browser.md says \
      how. A running stream takes it over within a second.

      Examples:
        sudo nightjar certificate make
        nightjar certificate show
        nightjar certificate show --pem > nightjar-ca.pem
      """,
    subcommands: [MakeCommand.self, ShowCommand.self], defaultSubcommand: ShowCommand.self)

  struct MakeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "make", abstract: "Make this host's authority, unless there is one.")

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        if try CertificateCommand.isDoneByService(["make"]) { return }
        let (authority, isNew) = try LocalAuthority.make(at: Int64(time(nil)))
        try writeOutput(
          (isNew ? "made" : "there is") + " an authority of this host, in \(StandardPaths.stateDirectory)\n"
            + CertificateCommand.text(authority))
      }
    }
  }

  struct ShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "show", abstract: "Show the authority's fingerprint, and how devices get its certificate.")

    @Flag(help: "Print the authority's certificate itself, in PEM.")
    var pem = false

    func run() throws {
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        if try CertificateCommand.isDoneByService(["show"] + (pem ? ["--pem"] : [])) { return }
        guard let authority = try LocalAuthority() else {
          throw ApplianceFailure(
            kind: .noInput, description: "this host has no authority yet: make one with nightjar certificate make")
        }
        try writeOutput(pem ? authority.pem : CertificateCommand.text(authority))
      }
    }
  }

  private static func text(_ authority: LocalAuthority) -> String {
    """
    SHA-256      \(authority.fingerprint)
    on a phone   open https://BOX:8443/ca.crt, and install it: docs/browser.md says how. Compare the SHA-256.
    computers    nightjar certificate show --pem > nightjar-ca.pem

    """
  }

  /// Root means the service's certificate, where there is the service. Its account does the work, as the files are its
  /// own. Returns `true` if that is done.
  private static func isDoneByService(_ words: [String]) throws -> Bool {
    guard ServiceAccount.isBesideRoot, getenv("STATE_DIRECTORY") == nil else { return false }
    let command = [
      "runuser", "-u", ServiceAccount.name, "--", "env", "STATE_DIRECTORY=\(ServiceAccount.stateDirectory)",
    ]
    let result = CommandOutput.run(command + [Program.path, "certificate"] + words, patience: Duration(seconds: 30))
    guard let result else { throw ApplianceFailure(kind: .unavailable, description: "runuser does not run") }
    guard result.status == 0 else {
      writeError(result.text)
      throw ExitCode(result.status)
    }
    try writeOutput(result.text)
    return true
  }
}
