import Foundation
import Serving
import TestSupport
import Testing

/// The socket's file: who may use it, and who gets the path.
@Suite struct ControlSocketTests {
  private static let isRoot = geteuid() == 0
  /// Somebody else: neither the owner nor in the group, unless told.
  private static let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

  private static func mode(_ path: String) -> mode_t? {
    var file = stat()
    return lstat(path, &file) == 0 ? file.st_mode : nil
  }

  @Test(arguments: [0o000, 0o022, 0o077, 0o177])
  func `owner and group alone may connect, whatever the umask`(_ mask: mode_t) throws {
    let directory = try TemporaryDirectory()
    let made = directory.path("made")
    let process = try Subprocess(
      ["sh", "-c", "umask \(String(mask, radix: 8)); exec \(ServedControl.tool) \(made)/control.sock"], in: directory)
    // Not even while it is being made does anyone else get in.
    var seen: Set<mode_t> = []
    _ = eventually {
      if let mode = Self.mode(made + "/control.sock") { seen.insert(mode & 0o777) }
      return !process.isRunning || ServedControl.answers(made + "/control.sock")
    }
    #expect(seen.allSatisfy { $0 & 0o007 == 0 })
    #expect(Self.mode(made + "/control.sock") == S_IFSOCK | 0o660)
    #expect(Self.mode(made) == S_IFDIR | (0o750 & ~mask))
    process.send(SIGTERM)
    #expect(try process.wait().outputText == "listening\nstopped\n")
    #expect(try FileManager.default.contentsOfDirectory(atPath: made).isEmpty)
  }

  @Test(.enabled(if: isRoot)) func `others are refused by the file, and by their credentials where it is wide open`()
    throws
  {
    let served = try ServedControl()
    #expect(chmod(served.directory.url.path, 0o777) == 0)
    let refused = try served.curl([], "/v1/status", before: Self.nobody)
    #expect(refused.curl == 7)
    let ctl = try served.ctl("status", before: Self.nobody)
    #expect(ctl.status == 77)
    #expect(
      ctl.log.failures == [
        "no permission to use the control socket \(served.socket): only its owner and its group may; for the service "
          + "write sudo before it"
      ])
    // A member of the group, as a supplementary one.
    let member = ["setpriv", "--reuid=65534", "--regid=65534", "--groups=\(getegid())"]
    let served200 = try served.curl([], "/v1/status", before: member)
    #expect(served200.status == 200)
    // A careless administrator.
    #expect(chmod(served.socket, 0o777) == 0)
    let forbidden = try served.curl([], "/v1/status", before: Self.nobody)
    #expect(forbidden.status == 403)
    #expect(forbidden["failure"] == "no_permission")
    let command = try served.ctl("rotate", "90", before: Self.nobody)
    #expect(command.status == 77)
    #expect(try served.finish() == ["listening", "stopped"])
  }

  @Test func `a dead process's socket is replaced`() throws {
    let first = try ServedControl()
    first.process.send(SIGKILL)
    _ = try first.process.wait()
    #expect(Self.mode(first.socket) != nil && Self.mode(first.socket + ".lock") != nil)
    let dead = try first.ctl("status")
    #expect(dead.status == 69)
    #expect(
      dead.log.failures
        == ["no program listens at the control socket \(first.socket): is nightjar stream running?"])
    let second = try ServedControl(in: first.directory)
    let answer = try second.curl([], "/v1/status")
    #expect(answer.status == 200)
    #expect(try second.finish() == ["listening", "stopped"])
    #expect(Self.mode(first.socket) == nil && Self.mode(first.socket + ".lock") == nil)
  }

  @Test func `a second server is refused, and the first goes on`() throws {
    let first = try ServedControl()
    let second = try ServedControl.start(first.socket, in: first.directory).wait()
    #expect(second.status == 1)
    #expect(
      second.outputText.hasPrefix(
        "temporary: another nightjar streams here already, with the control socket \(first.socket)"))
    #expect(second.outputText.contains("--control"))
    let answer = try first.curl([], "/v1/status")
    #expect(answer.status == 200)
    #expect(try first.finish() == ["listening", "stopped"])
  }

  @Test func `of many that start at once over a dead socket, one gets it`() throws {
    let directory = try TemporaryDirectory()
    let socket = directory.path("control.sock")
    for _ in 0..<3 {
      let started = try (0..<8).map { _ in try ServedControl.start(socket, in: directory) }
      #expect(eventually { started.filter(\.isRunning).count == 1 && ServedControl.answers(socket) })
      let running = started.first { $0.isRunning }
      let winner = try #require(running)
      for loser in started where loser.isRunning == false {
        #expect(
          try loser.wait().outputText
            == "temporary: another nightjar streams here already, with the control socket \(socket): end it, or give "
            + "this one its own socket (--control) and its own destination (--to)\n")
      }
      #expect(ServedControl.answers(socket))
      winner.send(SIGKILL)
      _ = try winner.wait()
    }
  }

  @Test func `a socket of another program that answers is left alone`() throws {
    let directory = try TemporaryDirectory()
    let socket = directory.path("control.sock")
    let other = try Subprocess(
      [
        "python3", "-c",
        "import socket,sys,time; s=socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); time.sleep(60)",
        socket,
      ], in: directory)
    defer { other.send(SIGKILL) }
    #expect(eventually { ServedControl.answers(socket) })
    let refused = try ServedControl.start(socket, in: directory).wait()
    #expect(refused.outputText.hasPrefix("temporary: another nightjar streams here already"))
    #expect(ServedControl.answers(socket))
  }

  @Test func `files and symbolic links are never replaced or followed`() throws {
    let directory = try TemporaryDirectory()
    let precious = directory.url.appendingPathComponent("precious")
    try Data("mine".utf8).write(to: precious)
    let socket = directory.path("control.sock")

    for link in [false, true] {
      if link {
        #expect(symlink(precious.path, socket) == 0)
      } else {
        try Data("mine".utf8).write(to: URL(fileURLWithPath: socket))
      }
      let refused = try ServedControl.start(socket, in: directory).wait()
      let mend = "remove it, or choose another path with --control"
      #expect(refused.outputText == "cannotCreate: \(socket) exists and is not a socket: \(mend)\n")
      #expect(Self.mode(socket) != nil)
      unlink(socket)
    }
    #expect(symlink(precious.path, socket + ".lock") == 0)
    let refused = try ServedControl.start(socket, in: directory).wait()
    #expect(refused.outputText.hasPrefix("noPermission:"), "\(refused.outputText)")
    unlink(socket + ".lock")
    // A dangling link would make a file elsewhere, were it followed.
    #expect(symlink(directory.path("elsewhere"), socket) == 0)
    _ = try ServedControl.start(socket, in: directory).wait()
    #expect(Self.mode(directory.path("elsewhere")) == nil)
    #expect(try String(contentsOf: precious, encoding: .utf8) == "mine")
  }

  @Test func `a file that another program has put at the path stays`() throws {
    let served = try ServedControl()
    unlink(served.socket)
    try Data("mine".utf8).write(to: URL(fileURLWithPath: served.socket))
    #expect(try served.finish() == ["listening", "stopped"])
    #expect(try String(contentsOfFile: served.socket, encoding: .utf8) == "mine")
  }

  @Test func `a path is as long as the kernel takes, and no longer`() throws {
    let directory = try TemporaryDirectory()
    let base = directory.path("")
    for length in [ControlSocket.pathLimit, ControlSocket.pathLimit + 1] {
      let path = base + String(repeating: "s", count: length - base.utf8.count)
      let process = try ServedControl.start(path, in: directory)
      #expect(eventually { !process.isRunning || ServedControl.answers(String(path.prefix(107))) })
      process.send(SIGTERM)
      let result = try process.wait()
      if length == 107 {
        #expect(result.outputText == "listening\nstopped\n")
      } else {
        #expect(
          result.outputText
            == "usage: control socket \(path): the path has 108 bytes, at most 107 are possible: choose a shorter "
            + "one\n")
      }
    }
  }

  @Test(arguments: [
    ("/proc/nightjar/control.sock", "making the directory /proc/nightjar"), ("/dev/null/x", "cannotCreate"),
    ("", "is not a file's path"), ("/tmp/", "is not a file's path"),
  ])
  func `a place that takes no socket is named`(_ path: String, _ reason: String) throws {
    let directory = try TemporaryDirectory()
    let result = try ServedControl.start(path, in: directory).wait()
    #expect(result.status == 1)
    #expect(result.outputText.contains(reason), "\(result.outputText)")
  }

  @Test func `without a path, server and client meet under XDG_RUNTIME_DIR`() throws {
    let directory = try TemporaryDirectory()
    let environment = ["XDG_RUNTIME_DIR": directory.url.path]
    let process = try ServedControl.start("default", in: directory, environment: environment)
    let socket = directory.path("nightjar/control.sock")
    #expect(eventually { ServedControl.answers(socket) })
    let status = try Subprocess.run([nightjarPath, "ctl", "status"], in: directory, environment: environment)
    #expect(status.status == 0)
    process.send(SIGTERM)
    #expect(try process.wait().status == 0)
  }
}
