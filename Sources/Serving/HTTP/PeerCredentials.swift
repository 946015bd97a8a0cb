import Glibc

/// The process at the other end of a connected Unix socket, as the kernel noted it at connect(2) (unix(7)).
struct PeerCredentials {
  let user: uid_t
  /// The process at that time: another process may have received the socket since.
  let process: pid_t
  let groups: [gid_t]

  /// Reads the credentials of the peer of `socket`; nil if the kernel does not report them.
  init?(socket: CInt) {
    // struct ucred, which the headers hide without _GNU_SOURCE: pid, uid, gid.
    var credentials: (pid_t, uid_t, gid_t) = (0, uid_t.max, gid_t.max)
    var length = socklen_t(MemoryLayout.size(ofValue: credentials))
    guard getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 else { return nil }
    (process, user) = (credentials.0, credentials.1)
    groups = [credentials.2] + Self.supplementaryGroups(socket)
  }

  private static func supplementaryGroups(_ socket: CInt) -> [gid_t] {
    var groups: [gid_t] = []
    var length = socklen_t(0)
    // If there is too little room, the kernel reports the needed size; NGROUPS_MAX bounds that to 256 kB.
    while getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, &groups, &length) != 0 {
      guard errno == ERANGE, Int(length) > groups.count * MemoryLayout<gid_t>.size else { return [] }
      groups = [gid_t](repeating: 0, count: Int(length) / MemoryLayout<gid_t>.size)
    }
    return Array(groups.prefix(Int(length) / MemoryLayout<gid_t>.size))
  }

  /// Returns `true` if the peer may use a socket of the group `group` that runs under this process's user. The file's
  /// mode says the same; this check holds even if the mode has been widened.
  func mayUse(group: gid_t) -> Bool {
    user == 0 || user == geteuid() || groups.contains(group)
  }
}
