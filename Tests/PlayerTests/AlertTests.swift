import Foundation
import TestSupport
import Testing

/// The alerts of the running program, from the camera to the client.
@Suite struct AlertTests {
  /// The events of the program's history.
  private static func events(_ program: ConfiguredProgram) throws -> [(kind: String, state: String)] {
    let answer = try program.answer("events")
    return (answer["events"] as? [[String: Any]] ?? []).map {
      ($0["kind"] as? String ?? "", $0["state"] as? String ?? "")
    }
  }

  @Test func `movement and darkness are told, a reload ends what nobody looks for, and all survives kill -9`() throws {
    let directory = try TemporaryDirectory()
    let clip = directory.path("dark.y4m")
    let made = try Subprocess.run(
      [
        "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "color=black:s=320x240:r=10", "-t", "2", "-pix_fmt", "yuv420p",
        clip,
      ],
      in: directory)
    try #require(made.status == 0, "\(made.error)")
    let history = directory.path("events.log")
    let port = try TCPPort.free()
    func text(movement: String) -> String {
      """
      events-file = "\(history)"
      quiet-hours = "none"
      rtsp = "127.0.0.1:\(port)"
      always-encode = true
      [[camera]]
      name = "pattern"
      source = "test"
      size = "640x360"
      movement = "\(movement)"
      audio = "none"
      [[camera]]
      name = "cellar"
      source = "file:\(clip)"
      audio = "none"
      """
    }
    let program = try ConfiguredProgram(text(movement: "high"), until: "rtsp ")
    // The test picture has a clock, whose digits move.
    let isTold = try eventually(within: 60) {
      let events = try Self.events(program)
      return events.contains { $0 == ("movement", "began") } && events.contains { $0 == ("camera-dark", "began") }
    }
    let told = try program.control("events").outputText
    try #require(isTold, "\(told) \(program.process.errorSoFar)")
    // The camera that looks for movement has pictures, and the other one has none.
    let pictured = try eventually(within: 60) {
      try program.control("events").outputText.contains(/pattern: movement.*, pictures: before, after/)
    }
    let listed = try program.control("events").outputText
    try #require(pictured && listed.split(separator: "\n").count { $0.contains("pictures") } == 1, "\(listed)")
    let identifier = try #require(listed.firstMatch(of: /(?m)^(\d+) .* pattern: movement.*pictures/)?.1)
    func picture(_ moment: String, of program: ConfiguredProgram) throws -> Data {
      let file = program.directory.path("\(moment).jpg")
      let result = try Subprocess.run(
        [
          "curl", "-sSf", "--unix-socket", program.directory.path("control"), "-o", file,
          "http://localhost/v1/events/\(identifier)/\(moment).jpg",
        ], in: program.directory)
      #expect(result.status == 0, "\(result.error)")
      let probe = try Subprocess.run(
        ["ffprobe", "-v", "error", "-show_entries", "stream=codec_name,width,height", "-of", "csv=p=0", file],
        in: program.directory)
      #expect(probe.outputText == "mjpeg,640,360\n", "\(probe.outputText) \(probe.error)")
      return try Data(contentsOf: URL(fileURLWithPath: file))
    }
    let pictures = try ["before", "after"].map { try picture($0, of: program) }
    #expect(pictures[0] != pictures[1])
    try program.write(text(movement: "off"))
    _ = try program.reload()
    #expect(try eventually(within: 60) { try Self.events(program).contains { $0 == ("movement", "ended") } })
    let before = try program.control("events").outputText
    program.process.send(SIGKILL)
    _ = try program.process.wait()
    // Another run has them in its history, and the numbers go on.
    let next = try ConfiguredProgram(text(movement: "off"), until: "rtsp ")
    let after = try next.control("events").outputText
    #expect(after.hasPrefix(before), "\(before)\n\(after)")
    #expect(try ["before", "after"].map { try picture($0, of: next) } == pictures)
    try next.end()
  }

  @Test func `an event goes to a webhook and to a command, and a reload changes both`() throws {
    let directory = try TemporaryDirectory()
    let (server, other) = (try WebhookServer("ok"), try WebhookServer("ok"))
    let key = try directory.write("0123456789abcdef0123456789abcdef".utf8, as: "key")
    try #require(chmod(key, 0o600) == 0)
    func text(_ outputs: String, movement: String = "high") -> String {
      """
      events-file = "\(directory.path("events.log"))"
      always-encode = true
      source = "test"
      size = "640x360"
      rtsp = "127.0.0.1:\(port)"
      movement = "\(movement)"
      audio = "none"
      webhook-key = "\(key)"
      \(outputs)
      """
    }
    let port = try TCPPort.free()
    let file = directory.path("commands")
    let program = try ConfiguredProgram(
      text(
        """
        webhook = ["http://127.0.0.1:\(server.port)/first"]
        webhook-private = true
        event-command = ["/bin/sh", "-c", 'cat >> "$0"', "\(file)"]
        """), until: "rtsp ")
    // The test picture has a clock, whose digits move.
    let isTold = try eventually(within: 60) {
      try server.requests().contains { $0.body.contains(#""kind":"movement""#) }
    }
    try #require(isTold, "\(program.process.errorSoFar)")
    let request = try #require(server.requests().first)
    #expect(request.path == "/first" && request.headers["webhook-signature"]?.hasPrefix("v1,") == true)
    #expect(eventually { (try? String(contentsOfFile: file, encoding: .utf8))?.contains(request.body + "\n") == true })
    // A webhook that may not go to this host is told, and the stream goes on.
    try program.write(text(#"webhook = ["http://127.0.0.1:\#(other.port)/second"]"#, movement: "off"))
    _ = try program.reload()
    let words = "webhook 127.0.0.1:\(other.port): its address 127.0.0.1 is private; --webhook-private allows"
    #expect(eventually(within: 60) { program.process.errorSoFar.contains(words) }, "\(program.process.errorSoFar)")
    #expect(try other.requests().isEmpty)
    try program.end()
  }
}
