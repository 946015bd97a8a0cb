import Glibc

/// The account of the service. Its users, tokens and certificate are not those of other users that start the program.
package enum ServiceAccount {
  /// The account's name, as `systemd/nightjar.sysusers` creates it.
  package static let name = "nightjar"

  /// The service's state directory, as `systemd/nightjar.service` names it.
  package static let stateDirectory = "/var/lib/nightjar"

  /// `true` if this process runs under the service's account.
  package static var isOurs: Bool { isService(geteuid()) }

  /// `true` if root runs this process on a machine that has the service.
  package static var isBesideRoot: Bool { geteuid() == 0 && getpwnam(name) != nil }

  /// Returns `true` if the user of this number is the service's account.
  package static func isService(_ user: UInt32) -> Bool {
    guard let entry = getpwuid(user) else { return false }
    return String(cString: entry.pointee.pw_name) == name
  }

  /// `true` if there are users that may watch the service's stream, as root sees the file from outside; nil if there is
  /// no such account.
  package static var hasUsers: Bool? { hasContent("users") }
  /// `true` if there are tokens for the service, as for ``hasUsers``.
  package static var hasTokens: Bool? { hasContent("tokens") }

  /// The command that adds a user to this process's users: ready to be pasted, except for the name.
  package static var addingUser: String { isOurs ? "sudo -u \(name) nightjar user add NAME" : "nightjar user add NAME" }

  /// Returns a command for the users and tokens of this process, ready to be pasted: as the service's account if the
  /// process runs under it.
  package static func command(_ words: String) -> String {
    isOurs ? "sudo -u \(name) nightjar \(words)" : "nightjar \(words)"
  }

  private static func hasContent(_ file: String) -> Bool? {
    guard let home = getpwnam(name)?.pointee.pw_dir else { return nil }
    var status = stat()
    return stat("\(String(cString: home))/.config/nightjar/\(file)", &status) == 0 && status.st_size > 0
  }
}
