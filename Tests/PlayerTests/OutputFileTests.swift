import Foundation
import TestSupport
import Testing

/// The files that a person names for output.
@Suite struct OutputFileTests {
  private static let short = ["stream", "--source", "test", "--size", "320x240", "--duration", "300ms"]

  private func stream(_ arguments: [String], in directory: TemporaryDirectory) throws -> Subprocess.Result {
    let port = try UDPPort.free()
    // As long as it takes to stream: a busy machine may have no picture within a time that is given.
    let program = try Subprocess(
      [nightjarPath] + Self.short.dropLast(2) + ["--to", "rtp://127.0.0.1:\(port)"] + arguments, in: directory)
    _ = eventually(within: 60) { program.log.isStreaming || !program.isRunning }
    program.send(SIGTERM)
    return try program.wait()
  }

  private func type(of path: String) throws -> FileAttributeType? {
    try FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType
  }

  private func figures(_ data: Data) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
  }

  /// Whatever is streamed, players read its description that refuse what others pass over.
  @Test func `each destination has a description that live555 and Media3 read`() throws {
    let directory = try TemporaryDirectory()
    let destinations = [
      "rtp://127.0.0.1:5004", "srtp://127.0.0.1:5006", "rtp://\(hasIPv6 ? "[::1]" : "127.0.0.1"):5008?rtcp=mux",
      "rtp://239.195.7.21:5010?interface=lo&ttl=2", "rtp://232.1.2.3:5012?interface=lo",
      "srtp://239.195.7.21:5014?interface=lo&rtcp=mux",
    ]
    let result = try stream(
      ["--sdp", directory.path("d.sdp")] + destinations.flatMap { ["--to", $0] }, in: directory)
    #expect(result.status == 0, "\(result.error)")
    for (index, destination) in destinations.enumerated() {
      // The first is the one that all tests here have.
      let text = try String(contentsOfFile: directory.path("d-\(index + 2).sdp"), encoding: .utf8)
      let live555 = try Live555Description(text)
      let medium = try #require(live555.media.first, "\(text)")
      #expect(live555.complaints.isEmpty && medium.codec == "H264" && medium.port == 5004 + 2 * index, "\(text)")
      #expect(medium.protocolName == (destination.hasPrefix("srtp") ? "SRTP" : "RTP"))
      #expect(medium.isMultiplexed == destination.contains("mux"))
      #expect(try Media3Description(text).media.first?.encoding == "H264", "\(text)")
    }
  }

  @Test func `a link stays, and the file that it leads to is replaced`() throws {
    let directory = try TemporaryDirectory()
    let (file, link, dangling) = (directory.path("real.json"), directory.path("link.json"), directory.path("new.sdp"))
    try Data("old".utf8).write(to: URL(fileURLWithPath: file))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "real.json")
    try FileManager.default.createSymbolicLink(atPath: dangling, withDestinationPath: "here/later.sdp")
    // A directory on the way is a link, too.
    try FileManager.default.createSymbolicLink(atPath: directory.path("here"), withDestinationPath: "./")
    let result = try stream(["--stats-json", link, "--sdp", dangling], in: directory)
    #expect(result.status == 0, "\(result.error)")
    #expect(try type(of: link) == .typeSymbolicLink)
    #expect(try type(of: dangling) == .typeSymbolicLink)
    #expect(try figures(Data(contentsOf: URL(fileURLWithPath: file)))["frames"] != nil)
    let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    #expect(try String(contentsOfFile: directory.path("later.sdp"), encoding: .utf8).hasPrefix("v=0"))
  }

  @Test(.enabled(if: geteuid() == 0, "needs root, which writes where another user has put a link"))
  func `a link of another user in a directory for all is refused, wherever it leads`() throws {
    let directory = try TemporaryDirectory()
    try FileManager.default.setAttributes([.posixPermissions: 0o711], ofItemAtPath: directory.url.path)
    let (shared, own) = (directory.path("shared"), directory.path("own.json"))
    try FileManager.default.createDirectory(atPath: shared, withIntermediateDirectories: false)
    try #require(chmod(shared, 0o1777) == 0)
    try Data("mine".utf8).write(to: URL(fileURLWithPath: own))
    let targets = [own, directory.path("new.json"), "second", "/dev/null"]
    for (index, target) in (targets + [own]).enumerated() {
      let name = index < targets.count ? "link\(index)" : "second"
      let made = try Subprocess.run(
        [
          "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "ln", "-s", target, "\(shared)/\(name)",
        ], in: directory)
      try #require(made.status == 0, "\(made.error)")
      // A link of our own that leads to one of another's is no better.
      try FileManager.default.createSymbolicLink(
        atPath: directory.path("to-\(name)"), withDestinationPath: "\(shared)/\(name)")
    }
    for name in ["link0", "link1", "link2", "link3", "second"] {
      for path in ["\(shared)/\(name)", directory.path("to-\(name)")] {
        let result = try stream(["--stats-json", path], in: directory)
        #expect(result.status == 77, "\(path): \(result.error)")
        let failures = result.log.failures
        #expect(failures.count == 1 && failures.allSatisfy { $0.hasPrefix("cannot write \(path): ") }, "\(failures)")
      }
    }
    #expect(try String(contentsOfFile: own, encoding: .utf8) == "mine")
    #expect(!FileManager.default.fileExists(atPath: directory.path("new.json")))
    #expect(try FileManager.default.contentsOfDirectory(atPath: shared).count == 5)
    // One of our own there leads on, and so does another's where nobody else may write.
    try FileManager.default.createSymbolicLink(atPath: "\(shared)/ours", withDestinationPath: own)
    let result = try stream(["--stats-json", "\(shared)/ours"], in: directory)
    #expect(result.status == 0, "\(result.error)")
    #expect(try figures(Data(contentsOf: URL(fileURLWithPath: own)))["frames"] != nil)
    try #require(chmod(shared, 0o755) == 0)
    #expect(try stream(["--stats-json", "\(shared)/link0"], in: directory).status == 0)
  }

  @Test(.enabled(if: geteuid() == 0, "needs root, which writes where another user has put a link"))
  func `a link of another user to a directory is refused in a directory for all`() throws {
    let directory = try TemporaryDirectory()
    try FileManager.default.setAttributes([.posixPermissions: 0o711], ofItemAtPath: directory.url.path)
    let (shared, home) = (directory.path("shared"), directory.path("home"))
    for path in [shared, home] {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }
    try #require(chmod(shared, 0o1777) == 0)
    let made = try Subprocess.run(
      ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "ln", "-s", home, "\(shared)/evil"],
      in: directory)
    try #require(made.status == 0, "\(made.error)")
    for (name, target) in [("to-evil", "shared/evil"), ("to-file", "to-evil/s.json")] {
      try FileManager.default.createSymbolicLink(atPath: directory.path(name), withDestinationPath: target)
    }
    let paths = ["\(shared)/evil/s.json", "\(shared)/evil/../home/s.json"]
    for path in paths + ["to-evil/s.json", "to-evil/../shared//evil/s.json", "to-file"].map(directory.path) {
      let result = try stream(["--stats-json", path], in: directory)
      #expect(result.status == 77, "\(path): \(result.error)")
      let failures = result.log.failures
      #expect(
        failures.count == 1 && failures.allSatisfy { $0.contains("shared/evil is a link of another user (uid 65534)") },
        "\(failures)")
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: home).isEmpty)
  }

  @Test(.enabled(if: geteuid() == 0, "needs root, which writes where another user has put a file"))
  func `a file of another user is refused in a directory for all, and lends its permissions nowhere`() throws {
    let directory = try TemporaryDirectory()
    try FileManager.default.setAttributes([.posixPermissions: 0o711], ofItemAtPath: directory.url.path)
    let shared = directory.path("shared")
    try FileManager.default.createDirectory(atPath: shared, withIntermediateDirectories: false)
    try #require(chmod(shared, 0o1777) == 0)
    let script = "umask 0; echo theirs > \"$0/file\"; mkfifo \"$0/pipe\""
    let made = try Subprocess.run(
      ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", script, shared], in: directory)
    try #require(made.status == 0, "\(made.error)")
    for kind in ["file", "pipe"] {
      let path = "\(shared)/\(kind)"
      let result = try stream(["--stats-json", path], in: directory)
      #expect(result.status == 77, "\(path): \(result.error)")
      let reason =
        "\(path) is a \(kind) of another user (uid 65534) in a directory for all; "
        + "choose a file in a directory of your own"
      #expect(result.log.failures == ["cannot write \(path): \(reason)"])
    }
    let path = "\(shared)/file"
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "theirs\n")
    // Where nobody else may write, it is replaced by one that only this user may write.
    try #require(chmod(shared, 0o755) == 0)
    let result = try stream(["--stats-json", path], in: directory)
    #expect(result.status == 0, "\(result.error)")
    let safe = try Subprocess.run(["find", path, "-uid", "0", "!", "-perm", "/022"], in: directory)
    #expect(safe.outputText == path + "\n")
  }

  @Test func `a pipe is written to and stays a pipe`() throws {
    let directory = try TemporaryDirectory()
    let pipe = directory.path("pipe")
    try #require(mkfifo(pipe, 0o600) == 0)
    // A reader from the start; another process might come only after the program's end. What is written fits in the pipe.
    let reader = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    try #require(reader >= 0)
    let result = try stream(["--stats-json", pipe], in: directory)
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = read(reader, &bytes, bytes.count)
    close(reader)
    #expect(result.status == 0, "\(result.error)")
    #expect(try figures(Data(bytes.prefix(max(0, count))))["frames"] != nil)
    #expect(try type(of: pipe) != .typeRegular)
    let unread = try stream(["--stats-json", pipe], in: directory)
    #expect(unread.status == 74, "\(unread.error)")
    #expect(unread.log.failures == ["cannot write \(pipe): nobody reads from this pipe"])
  }

  @Test func `a device is written to, and its refusal told`() throws {
    let directory = try TemporaryDirectory()
    // By way of links, so that a program that replaced them would do no harm to the machine.
    for (device, status) in [("/dev/null", Int32(0)), ("/dev/full", 74)] {
      let link = directory.path(String(device.dropFirst(5)))
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: device)
      let result = try stream(["--stats-json", link], in: directory)
      #expect(result.status == status, "\(result.error)")
      #expect(try type(of: link) == .typeSymbolicLink)
      #expect(try type(of: device) == .typeCharacterSpecial)
    }
  }

  @Test func `standard output that cannot be written is a failure`() throws {
    let directory = try TemporaryDirectory()
    let port = try UDPPort.free()
    let commands = [
      "devices", "devices --json",
      Self.short.joined(separator: " ") + " --to rtp://127.0.0.1:\(port) --stats-json -",
    ]
    for command in commands {
      let full = try Subprocess.run(
        ["sh", "-c", "exec \"$0\" \(command) >/dev/full", nightjarPath], in: directory, limit: 60)
      #expect(full.status == 74, "\(command): \(full.error)")
      let reason = "cannot write standard output: No space left on device"
      if command.hasSuffix(" --json") {
        let failure = try JSONSerialization.jsonObject(with: Data(full.error.utf8)) as? [String: Any]
        #expect(failure?["error"] as? String == reason, "\(full.error)")
      } else {
        #expect(full.log.failures == [reason], "\(full.error)")
      }
      // A reader that goes away early is not the program's affair.
      let gone = try Subprocess.run(
        ["bash", "-c", "set -o pipefail; \"$0\" \(command) | exec 0<&-", nightjarPath], in: directory, limit: 60)
      #expect(gone.status == 0, "\(command): \(gone.error)")
    }
  }

  @Test func `a start that fails leaves the files that were there`() throws {
    let directory = try TemporaryDirectory()
    let (old, new) = (directory.path("old.sdp"), directory.path("new.sdp"))
    try Data("mine".utf8).write(to: URL(fileURLWithPath: old))
    for path in [old, new] {
      let result = try stream(["--sdp", path, "--stats-json", "/nonexistent/s.json"], in: directory)
      #expect(result.status == 73, "\(result.error)")
    }
    #expect(try String(contentsOfFile: old, encoding: .utf8) == "mine")
    #expect(!FileManager.default.fileExists(atPath: new))
  }

  @Test func `two outputs in one file are refused, by whatever name`() throws {
    let directory = try TemporaryDirectory()
    let names = ["x", "./x", "link"]
    try FileManager.default.createSymbolicLink(atPath: directory.path("link"), withDestinationPath: "x")
    for name in names {
      let result = try stream(["--sdp", directory.path("x"), "--stats-json", directory.path(name)], in: directory)
      #expect(result.status == 64, "\(result.error)")
      let failures = result.log.failures
      #expect(failures == ["--sdp and --stats-json are the same file, \(directory.path("x"))"], "\(result.error)")
      #expect(!FileManager.default.fileExists(atPath: directory.path("x")))
    }
  }

  @Test(arguments: ["--sdp", "--stats-json"])
  func `a file without a name is refused at the start`(option: String) throws {
    let directory = try TemporaryDirectory()
    let result = try stream([option, ""], in: directory)
    #expect(result.status == 64, "\(result.error)")
    #expect(!result.error.contains("streaming"), "\(result.error)")
  }

  @Test func `nothing stays in the directory for temporary files`() throws {
    let directory = try TemporaryDirectory()
    let port = try UDPPort.free()
    let program = try Subprocess.run(
      [nightjarPath] + Self.short + ["--to", "rtp://127.0.0.1:\(port)"], in: directory,
      environment: ["XDG_RUNTIME_DIR": ""], limit: 60)
    #expect(program.status == 0, "\(program.error)")
    let match = try #require(program.error.firstMatch(of: /(\/tmp\/nightjar-[^\/]+)\/nightjar-/), "\(program.error)")
    #expect(!FileManager.default.fileExists(atPath: String(match.1)))
  }
}
