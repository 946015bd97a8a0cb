import Foundation
import TestSupport
import Testing

/// The servers in a reload, watched by players.
@Suite struct ServerReloadTests {
  /// Adds a user, or removes one.
  private static func user(
    _ arguments: String..., password: String = "", file: String, in directory: TemporaryDirectory
  ) throws {
    let command = ["sh", "-c", "printf '%s\\n' \"$0\" | \"$@\"", password, nightjarPath, "user"] + arguments
    let result = try Subprocess.run(command + ["--users", file], in: directory)
    #expect(result.status == 0, "\(result.error)")
  }

  private static func plays(_ url: String, in directory: TemporaryDirectory) throws -> Bool {
    let result = try Subprocess.run(
      ["ffmpeg", "-nostdin", "-v", "error", "-rtsp_transport", "tcp", "-i", url, "-frames:v", "3", "-f", "null", "-"],
      in: directory, limit: 60)
    return result.status == 0
  }

  @Test func `users come and go, and the last one who goes is shut out`() throws {
    let port = try TCPPort.free()
    let users = try TemporaryDirectory()
    let file = users.path("users")
    try Self.user("add", "anna", password: "looking glass", file: file, in: users)
    let program = try ConfiguredProgram(
      "source = 'test'\nsize = '320x240'\nrtsp = '127.0.0.1:\(port)'\nusers = '\(file)'\n", until: "rtsp  ")
    func url(_ name: String) -> String { "rtsp://\(name):looking%20glass@127.0.0.1:\(port)/camera" }
    #expect(try Self.plays(url("anna"), in: users))
    #expect(try !Self.plays(url("bert"), in: users))
    try Self.user("add", "bert", password: "looking glass", file: file, in: users)
    #expect(try program.answer("reload")["server"] as? [String] == ["users changed"])
    #expect(try Self.plays(url("bert"), in: users))
    try Self.user("remove", "anna", file: file, in: users)
    #expect(try program.answer("reload")["server"] as? [String] == ["users changed"])
    #expect(try !Self.plays(url("anna"), in: users))
    // The last one: nobody is to keep a right because nobody is left.
    try Self.user("remove", "bert", file: file, in: users)
    #expect(try program.answer("reload")["server"] as? [String] == ["users changed"])
    #expect(eventually { program.process.log.count(of: "reloaded: users changed") == 3 })
    try program.end()
  }

  @Test func `a port that is taken leaves the server where it is, and another one is taken`() throws {
    let (port, other) = (try TCPPort.free(), try TCPListener())
    let text = "source = 'test'\nsize = '320x240'\nrtsp = '127.0.0.1:"
    let program = try ConfiguredProgram(text + "\(port)'", until: "rtsp  ")
    try program.write(text + "\(other.port)'")
    let warnings = try program.answer("reload")["warnings"] as? [String] ?? []
    #expect(
      warnings == [
        "RTSP is not changed: cannot listen for RTSP at 127.0.0.1 port \(other.port): another program listens there; "
          + "choose another port, or end that program (sudo ss -ltnp sport = :\(other.port) shows it)"
      ])
    #expect(try Self.plays("rtsp://127.0.0.1:\(port)/camera", in: program.directory))
    let free = try TCPPort.free()
    try program.write(text + "\(free)'")
    #expect(try program.answer("reload")["server"] as? [String] == ["RTSP restarted"])
    #expect(try Self.plays("rtsp://127.0.0.1:\(free)/camera", in: program.directory))
    // What is taken out of the file is taken back, and no camera begins anew for it.
    try program.write("source = 'test'\nsize = '320x240'\nrtsp = '127.0.0.1:\(free)'\nduration = '1h'\n")
    #expect((try program.answer("reload")["warnings"] as? [String])?.first?.hasPrefix("duration: ") == true)
    try program.write("source = 'test'\nsize = '320x240'\nrtsp = '127.0.0.1:\(free)'\n")
    #expect(try program.reload() == ["camera": "unchanged"])
    try program.end()
  }

  @Test func `despite a port in use, removed users lose access, and each server follows on its own`() throws {
    let (port, other, taken) = (try TCPPort.free(), try TCPPort.free(), try TCPListener())
    let tokens = try TemporaryDirectory()
    func token(_ name: String, _ command: String = "add") throws -> String {
      let made = try Subprocess.run(
        [nightjarPath, "token", command, name, "--tokens", tokens.path("tokens")], in: tokens)
      #expect(made.status == 0, "\(made.error)")
      return made.outputText.trimmingCharacters(in: .whitespacesAndNewlines)
    }
    let (gone, kept) = (try token("gone"), try token("kept"))
    func text(_ port: Int, _ more: String = "") -> String {
      "source = 'test'\nsize = '320x240'\nhttps = '127.0.0.1:\(port)'\nwebrtc-port = 0\ntokens = '\(tokens.path("tokens"))'\n\(more)"
    }
    let program = try ConfiguredProgram(
      text(port), environment: ["STATE_DIRECTORY": tokens.path("state")], until: "https  ")
    func status(_ token: String, _ port: Int) throws -> String {
      try Subprocess.run(
        [
          "curl", "-sk", "-m", "20", "-o", tokens.path("answer"), "-w", "%{http_code}", "-H",
          "Authorization: Bearer \(token)",
          "https://127.0.0.1:\(port)/v1/status",
        ], in: tokens
      ).outputText
    }
    #expect(try status(gone, port) == "200")
    _ = try token("gone", "remove")
    try program.write(text(Int(taken.port)))
    let warnings = try program.answer("reload")["warnings"] as? [String] ?? []
    #expect(
      warnings == [
        "HTTPS is not changed: cannot listen for the control API at 127.0.0.1 port \(taken.port): another program "
          + "listens there; choose another port, or end that program (sudo ss -ltnp sport = :\(taken.port) shows it)"
      ])
    #expect(try status(gone, port) == "401")
    #expect(try status(kept, port) == "200")
    // RTSP cannot be had, and HTTPS moves.
    try program.write(text(other, "rtsp = '127.0.0.1:\(taken.port)'\n"))
    #expect(try program.answer("reload")["server"] as? [String] == ["HTTPS restarts"])
    #expect(try eventually { try status(kept, other) == "200" })
    try program.end()
  }

  @Test func `a reload by HTTPS that exchanges that server is answered`() throws {
    let (first, second) = (try TCPPort.free(), try TCPPort.free())
    let tokens = try TemporaryDirectory()
    let made = try Subprocess.run(
      [nightjarPath, "token", "add", "test", "--role", "control", "--tokens", tokens.path("tokens")], in: tokens)
    let token = made.outputText.trimmingCharacters(in: .whitespacesAndNewlines)
    func text(_ port: Int) -> String {
      "source = 'test'\nsize = '320x240'\nhttps = '127.0.0.1:\(port)'\nwebrtc-port = 0\ntokens = '\(tokens.path("tokens"))'\n"
    }
    let program = try ConfiguredProgram(
      text(first), environment: ["STATE_DIRECTORY": tokens.path("state")], until: "https  ")
    func ask(_ port: Int, _ arguments: String...) throws -> [String: Any] {
      let result = try Subprocess.run(
        ["curl", "-sk", "-m", "20", "-H", "Authorization: Bearer \(token)"] + arguments
          + ["https://127.0.0.1:\(port)/v1/" + (arguments.isEmpty ? "status" : "reload")], in: tokens)
      return (try? JSONSerialization.jsonObject(with: result.output)) as? [String: Any] ?? [:]
    }
    #expect(try ask(first)["reloads"] as? Int == 0)
    try program.write(text(second))
    #expect(try ask(first, "-X", "POST")["server"] as? [String] == ["HTTPS restarts"])
    #expect(try eventually { try ask(second)["reloads"] as? Int == 1 })
    let cameras = try #require(try ask(second, "-X", "POST")["cameras"] as? [[String: Any]])
    #expect(cameras.map { $0["outcome"] as? String } == ["unchanged"])
    try program.end()
  }
}
