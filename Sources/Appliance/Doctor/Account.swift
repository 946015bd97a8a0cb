import CLinux
import Glibc

/// A user of this machine, by passwd(5) and group(5).
package struct Account: Sendable {
  /// The user's name, or the number where there is no name.
  package let name: String
  /// The numbers of all the user's groups.
  let groups: Set<gid_t>

  /// The user of this process.
  package static var current: Account {
    Account(user: geteuid())
  }

  /// Creates the account of the user of `process`; nil where the process does not exist.
  init?(ofProcess process: Int32) {
    var file = nightjar_file()
    guard nightjar_path_status("/proc/\(process)", &file) == 0 else { return nil }
    self.init(user: file.user)
  }

  private init(user: uid_t) {
    guard let entry = getpwuid(user) else {
      self.init(name: "\(user)", groups: [])
      return
    }
    self.init(name: String(cString: entry.pointee.pw_name), primary: entry.pointee.pw_gid)
  }

  /// Creates the account of the user `name`; nil where there is none.
  package init?(named name: String) {
    guard let entry = getpwnam(name) else { return nil }
    self.init(name: name, primary: entry.pointee.pw_gid)
  }

  private init(name: String, groups: Set<gid_t>) {
    (self.name, self.groups) = (name, groups)
  }

  private init(name: String, primary: gid_t) {
    self.name = name
    var count = CInt(256)
    var list = [gid_t](repeating: 0, count: Int(count))
    while getgrouplist(name, primary, &list, &count) < 0, count > list.count, count <= 65_536 {
      list = [gid_t](repeating: 0, count: Int(count))
    }
    groups = Set(list.prefix(max(0, min(Int(count), list.count)))).union([primary])
  }

  static func name(ofGroup identifier: gid_t) -> String {
    guard let entry = getgrgid(identifier), let name = entry.pointee.gr_name else { return "\(identifier)" }
    return String(cString: name)
  }
}
