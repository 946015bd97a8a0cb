import Glibc

/// The account of the service, whose users, tokens and certificate are not those of whoever else starts the program.
public enum ServiceAccount {
  /// Its name, as `systemd/nightjar.sysusers` makes it.
  public static let name = "nightjar"

  /// Whether this process is the service's, or one of its account.
  public static var isOurs: Bool { isService(geteuid()) }

  /// Whether root asks on a machine that has the service.
  public static var isBesideRoot: Bool { geteuid() == 0 && getpwnam(name) != nil }

  /// Whether a user of this number is the service's account.
  public static func isService(_ user: UInt32) -> Bool {
    guard let entry = getpwuid(user) else { return false }
    return String(cString: entry.pointee.pw_name) == name
  }

  /// Whether there are users that may watch the service's stream, as far as root sees it from outside; nil where there is
  /// no such account.
  public static var hasUsers: Bool? { hasContent("users") }
  /// The same of tokens.
  public static var hasTokens: Bool? { hasContent("tokens") }

  /// What adds a user to whom a stream of this process lets in: ready to be pasted, but for the name.
  public static var addingUser: String { isOurs ? "sudo -u \(name) nightjar user add NAME" : "nightjar user add NAME" }
  /// What has a stream of this process take that in.
  public static var reloading: String { isOurs ? "sudo systemctl reload nightjar" : "nightjar ctl reload" }

  /// A command for the users and tokens of this process, ready to be pasted: as the service's account where it is that.
  public static func command(_ words: String) -> String {
    isOurs ? "sudo -u \(name) nightjar \(words)" : "nightjar \(words)"
  }

  private static func hasContent(_ file: String) -> Bool? {
    guard let home = getpwnam(name)?.pointee.pw_dir else { return nil }
    var status = stat()
    return stat("\(String(cString: home))/.config/nightjar/\(file)", &status) == 0 && status.st_size > 0
  }
}
