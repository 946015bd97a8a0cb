import Platform

/// The limit of the control groups that a process is in (cgroups(7)): the memory that all processes of a group may have. A service gets
/// the limit by `MemoryMax=`, and a container by an option of its own.
package enum MemoryLimit {
  /// The bytes that this process's groups allow; nil if they have no limit.
  package static var ofThisProcess: UInt64? {
    guard let bytes = try? PlainFile.contents(of: "/proc/self/cgroup", limit: 1 << 16, others: .anything).bytes else {
      return nil
    }
    return least(groups: bytes, root: "/sys/fs/cgroup")
  }

  /// Returns the least limit of the groups in `groups`, the content of `/proc/PID/cgroup`, and of the groups above them; nil if none of
  /// them has a limit.
  ///
  /// - Parameter root: the directory at which the control groups are mounted.
  package static func least(groups: [UInt8], root: String) -> UInt64? {
    var least: UInt64?
    // Bytes, because one Character may join a name's last one with the end of its line.
    for line in groups.split(separator: UInt8(ascii: "\n")) {
      // NUMBER:CONTROLLERS:PATH, without controllers in version 2.
      let fields = line.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
      guard fields.count == 3, fields[2].first == UInt8(ascii: "/") else { continue }
      let mount: (directory: String, file: String)
      if fields[1].isEmpty {
        mount = (root, "memory.max")
      } else if fields[1].split(separator: UInt8(ascii: ",")).contains(where: { $0.elementsEqual("memory".utf8) }) {
        mount = (root + "/memory", "memory.limit_in_bytes")
      } else {
        continue
      }
      var path = fields[2]
      // A group outside of what is mounted: only the mount's own group is known.
      if path.split(separator: UInt8(ascii: "/")).contains(where: { $0.elementsEqual("..".utf8) }) { path = [] }
      while true {
        let file = "\(mount.directory)\(String(decoding: path, as: UTF8.self))/\(mount.file)"
        // "max", or in version 1 the last page below the largest number, is no limit.
        if let limit = AttributeFile.integer(file), (0..<unlimited).contains(limit) {
          least = min(least ?? .max, UInt64(limit))
        }
        guard let slash = path.lastIndex(of: UInt8(ascii: "/")) else { break }
        path = path[..<slash]
      }
    }
    return least
  }

  /// The least number of version 1 that means no limit; pages have 64 kB at most.
  private static let unlimited = Int.max - 0xffff
}
