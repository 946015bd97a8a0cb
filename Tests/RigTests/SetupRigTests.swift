import Foundation
import TestSupport
import Testing

/// `nightjar setup` on a terminal, with two cameras of the kernel's to choose from.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct SetupRigTests {
  @Test(.enabled(if: runsLong, "takes long: make check-long"))
  func `setup asks for the camera, the user and the password, and writes what was answered`() throws {
    let directory = try TemporaryDirectory()
    // What the host's file system gets from the guest belongs to root, whoever made it.
    // Its output would lie below the mount.
    let mounted = try Subprocess.run(
      ["mount", "-t", "tmpfs", "none", directory.url.path], in: TemporaryDirectory())
    #expect(mounted.status == 0, "\(mounted.error)")
    defer { _ = try? Subprocess.run(["umount", "-l", directory.url.path], in: TemporaryDirectory()) }
    let second = try Vivid.node(1)
    // As a user of this host: root's configuration is the host's.
    for path in [directory.url.path, try Vivid.node(0), second] {
      #expect(chmod(path, 0o777) == 0, "\(path)")
    }
    // setup lists cameras alone, by the numbers of their nodes.
    let place = try #require([try Vivid.node(0), second].sorted().firstIndex(of: second))
    let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    let terminal = try Terminal.run(
      [nightjarPath, "setup"], as: user,
      answering: [
        ("Number [1]: ", "77"), ("Number [1]: ", "\(place + 1)"), ("Name", "not a name: at all"), ("Name", "anna"),
        ("Password for anna", "correct horse"), ("The same again: ", "correct horse"),
      ], in: directory,
      environment: ["HOME": directory.url.path, "XDG_CONFIG_HOME": directory.path("config"), "NIGHTJAR_CONFIG": ""])
    #expect(terminal.status == 0 && terminal.unasked.isEmpty, "\(terminal.shown)")
    let lines = terminal.shown.split(whereSeparator: \.isNewline)
    #expect(lines.count { $0 == "Which camera?" } == 1, "\(terminal.shown)")
    #expect(lines.count { $0.hasPrefix("choose 1 to ") } == 1, "\(terminal.shown)")
    #expect(!terminal.shown.contains("correct horse"), "\(terminal.shown)")
    let next = "Next: nightjar stream; then, for a phone: nightjar ctl phone add"
    #expect(lines.count { $0 == next } == 1, "\(terminal.shown)")
    let text = try String(contentsOfFile: directory.path("config/nightjar/nightjar.toml"), encoding: .utf8)
    let source = try #require(text.firstMatch(of: /\n *source = "([^"]+)"/)).1
    // By a path that stays, if the kernel has one.
    #expect(try realpath(String(source)) == realpath(second), "\(source)")
    let settings = text.split(separator: "\n")
    for option in ["rtsp", "https", "announce"] { #expect(settings.count { $0 == "\(option) = true" } == 1, "\(text)") }
    let users = try Subprocess.run(
      user + [nightjarPath, "user", "list", "--users", directory.path("config/nightjar/users")], in: directory)
    let list = users.outputText
    #expect(list.contains("anna") && list.contains("control"), "\(list)\(users.error)")
  }

  private func realpath(_ path: String) throws -> String {
    URL(fileURLWithPath: path).resolvingSymlinksInPath().path
  }
}
