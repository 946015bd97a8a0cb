import Appliance
import Foundation
import TestSupport
import Testing

/// The limit of a process's control groups, as files of both versions of cgroups(7) tell it, and the kernel's own.
@Suite struct MemoryLimitTests {
  @Test(
    arguments: [
      ("0::/system.slice/nightjar.service\n", ["system.slice/nightjar.service/memory.max": "536870912"], 512 << 20),
      // The least of a group and those above it.
      ("0::/a/b\n", ["a/b/memory.max": "max", "a/memory.max": "1048576", "memory.max": "2097152"], 1 << 20),
      ("0::/a\n", ["a/memory.max": "max", "b/memory.max": "1"], nil),
      // A container sees its own group as the root.
      ("0::/\n", ["memory.max": "67108864"], 64 << 20),
      // A group outside of that: its files are not in the mount, and what is beside the mount is none of them.
      ("0::/../b\n", ["memory.max": "8192", "../memory.max": "1", "../b/memory.max": "2"], 8192),
      // Version 1 beside an empty version 2.
      (
        "4:cpu,cpuacct:/c\n3:memory:/c/d\n0::/\n",
        ["memory/c/d/memory.limit_in_bytes": "4096", "memory/memory.limit_in_bytes": "9223372036854771712"], 4096
      ),
      ("3:hugetlb,memory:/c:d\n", ["memory/c:d/memory.limit_in_bytes": "8192"], 8192),
      // No limit, with pages of 4 and of 64 kB.
      ("3:memory:/c\n", ["memory/c/memory.limit_in_bytes": "9223372036854771712"], nil),
      ("3:memory:/c\n", ["memory/c/memory.limit_in_bytes": "9223372036854710272"], nil),
      // A name that ends as a line of other systems does.
      ("0::/a\r\n3:memory:/b\n", ["memory/b/memory.limit_in_bytes": "1"], 1),
      ("0::/gone\n", [:], nil), ("", ["memory.max": "1"], nil), ("0::\n:\n::::\n", ["memory.max": "1"], nil),
      ("0::/a\n", ["a/memory.max": "-1"], nil), ("0::/a\n", ["a/memory.max": ""], nil),
    ] as [(String, [String: String], UInt64?)])
  func `the least limit of the groups is the process's`(
    groups: String, files: [String: String], limit: UInt64?
  ) throws {
    let directory = try TemporaryDirectory()
    for (name, value) in files {
      let file = directory.url.appending(path: "root/\(name)").standardizedFileURL
      try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data("\(value)\n".utf8).write(to: file)
    }
    #expect(MemoryLimit.least(groups: Array(groups.utf8), root: directory.path("root")) == limit)
  }

  /// The directory of this process's group, in version 1, in which another group may be made; nil without the right to.
  private static let group: String? = {
    let text = (try? String(contentsOfFile: "/proc/self/cgroup", encoding: .utf8)) ?? ""
    let groups = text.split(separator: "\n").map { $0.split(separator: ":", maxSplits: 2) }
    guard let path = groups.first(where: { $0.count == 3 && $0[1] == "memory" })?[2] else { return nil }
    let directory = "/sys/fs/cgroup/memory\(path)"
    return access(directory, W_OK) == 0 ? directory : nil
  }()

  @Test(.enabled(if: group != nil, "needs a control group of version 1 that this user may write to"))
  func `the kernel's limit of a group is found by a process in it`() throws {
    let directory = try TemporaryDirectory()
    let group = try #require(Self.group) + "/nightjar-\(UUID().uuidString)"
    try #require(mkdir(group, 0o755) == 0)
    defer { rmdir(group) }
    let script = """
      echo 67108864 > \(group)/memory.limit_in_bytes && echo $$ > \(group)/cgroup.procs && cat /proc/$$/cgroup
      """
    let result = try Subprocess.run(["sh", "-c", script], in: directory)
    try #require(result.status == 0, "\(result.error)")
    #expect(MemoryLimit.least(groups: Array(result.outputText.utf8), root: "/sys/fs/cgroup") == 64 << 20)
  }
}
