import Glibc

/// The default paths: by the XDG base directory specification for a user, by the file hierarchy standard for root,
/// whatever root has inherited from the user that became root.
package enum StandardPaths {
  /// The users file: `/etc/nightjar/users` for root, else `nightjar/users` under `$XDG_CONFIG_HOME` or `~/.config`.
  package static var usersFile: String { "\(configurationDirectory)/users" }

  /// The tokens file, beside the users file.
  package static var tokensFile: String { "\(configurationDirectory)/tokens" }

  /// The configuration file: `/etc/nightjar/nightjar.toml` for root, else `nightjar/nightjar.toml` under
  /// `$XDG_CONFIG_HOME` or `~/.config`.
  package static var configurationFile: String { "\(configurationDirectory)/nightjar.toml" }

  private static var configurationDirectory: String {
    geteuid() == 0 ? "/etc/nightjar" : "\(directory("XDG_CONFIG_HOME", else: ".config"))/nightjar"
  }

  /// The directory for data that survives the program: `$STATE_DIRECTORY` (systemd.exec(5); the first of several), else
  /// `/var/lib/nightjar` for root, else `nightjar` under `$XDG_STATE_HOME` or `~/.local/state`.
  package static var stateDirectory: String {
    if let given = variable("STATE_DIRECTORY")?.split(separator: ":").first { return String(given) }
    return geteuid() == 0 ? "/var/lib/nightjar" : "\(directory("XDG_STATE_HOME", else: ".local/state"))/nightjar"
  }

  private static func directory(_ name: String, else below: String) -> String { variable(name) ?? "\(home)/\(below)" }

  /// Returns a variable's absolute path; the specification says that relative paths are ignored.
  private static func variable(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }.flatMap { $0.hasPrefix("/") ? $0 : nil }
  }

  private static var home: String {
    variable("HOME") ?? getpwuid(geteuid())?.pointee.pw_dir.map { String(cString: $0) } ?? "/"
  }
}
