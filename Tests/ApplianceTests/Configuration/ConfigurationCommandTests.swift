import Appliance
import Foundation
import TestSupport
import Testing

@Suite struct ConfigurationCommandTests {
  // MARK: - The table

  private struct Help: Decodable {
    struct Command: Decodable { let arguments: [Argument] }
    struct Argument: Decodable {
      struct Name: Decodable {
        let kind: String
        let name: String
      }
      let kind: String
      let names: [Name]
      let shouldDisplay: Bool
      let isRepeating: Bool
    }
    let command: Command
  }

  @Test func `a file has every option of the command line, and no other`() throws {
    let dump = try Program().run(["stream", "--experimental-dump-help"])
    let arguments = try JSONDecoder().decode(Help.self, from: dump.output).command.arguments
    // Those of tests are hidden, and a file cannot name another.
    let others: Set = ["help", "version", "config"]
    var expected: [String: Bool] = [:]
    var repeated: Set<String> = []
    for argument in arguments where argument.shouldDisplay {
      let names = argument.names.filter { $0.kind == "long" }.map(\.name)
      guard let name = names.first, !others.contains(name) else { continue }
      // An option that may stand without a value is listed a second time, as a flag.
      expected[name] = (expected[name] ?? true) && argument.kind == "flag"
      if argument.isRepeating { repeated.insert(name) }
    }
    for name in expected.keys where name.hasPrefix("no-") && expected[String(name.dropFirst(3))] != nil {
      expected[name] = nil
    }
    let options = OptionTable.stream.options
    #expect(Set(options.map(\.name)) == Set(expected.keys))
    for option in options {
      let isFlag = option.kind == .flag || option.kind == .invertibleFlag
      #expect(isFlag == expected[option.name], "\(option.name)")
      #expect((option.kind == .list || option.kind == .table) == repeated.contains(option.name), "\(option.name)")
    }
  }

  @Test func `no option's variable looks like another's, and those of other things like none`() throws {
    let names = Set(OptionTable.stream.options.map(\.variable))
    #expect(names.count == OptionTable.stream.options.count)
    for name in [
      "NIGHTJAR_RENDER_NODE", "NIGHTJAR_LONG", "NIGHTJAR_RIG", "NIGHTJAR_RIG_CACHE", "NIGHTJAR_BUILT",
      "NIGHTJAR_CONFIG",
    ] {
      let settings = try EnvironmentSettings(
        [name: "1"], options: OptionTable.stream, others: [ApplianceConfiguration.pathVariable])
      #expect(settings.warnings.isEmpty && !names.contains(name))
    }
  }

  // MARK: - The example

  /// The example's paragraphs with their options taken in.
  private func paragraphs(_ text: String) -> [(text: String, isInstead: Bool, count: Int)] {
    text.split(separator: "\n", omittingEmptySubsequences: false).split(separator: "").map { lines in
      var count = 0
      let taken = lines.map { line in
        guard line.contains(/^#(\[\[|[a-z0-9-]+ = )/) else { return String(line) }
        count += 1
        return String(line.dropFirst())
      }
      return (taken.joined(separator: "\n"), lines.first?.hasPrefix("# Instead") == true, count)
    }
  }

  /// A build without x264 has no presets of x264.
  private func usable(_ text: String) -> String {
    // Files that are named have to be there.
    let text = text.replacing(/(?m)^((?:users|tokens|tls-cert|tls-key|webhook-key|mqtt-ca|mqtt-login) = )".*"$/) {
      "\($0.output.1)\"/dev/null\""
    }
    #if X264
      return text
    #else
      return text.split(separator: "\n", omittingEmptySubsequences: false).filter { !$0.hasPrefix("x264-preset") }
        .joined(separator: "\n")
    #endif
  }

  @Test func `each paragraph of the example can be taken in, and all of them together`() throws {
    let example = try Program().run(["config", "example"])
    #expect(example.status == 0 && example.outputText.hasSuffix("\n"))
    let paragraphs = paragraphs(example.outputText)
    var seen: Set<String> = []
    for paragraph in paragraphs where paragraph.count > 0 {
      let program = try Program(usable(paragraph.text))
      let result = try program.run(["config", "check"])
      #expect(result.status == 0, "\(result.error)\(paragraph.text)")
      for line in paragraph.text.split(separator: "\n") where !line.hasPrefix("#") {
        seen.insert(String(line.prefix { $0 != " " }))
      }
    }
    #expect(seen == Set(OptionTable.stream.options.map(\.name)).union(["[[camera]]"]))
    let whole = paragraphs.filter { !$0.isInstead }.map { usable($0.text) }.joined(separator: "\n\n")
    let program = try Program(whole)
    let result = try program.run(["config", "check"])
    #expect(result.outputText == "\(program.file): no mistake found; 1 camera: camera\n", "\(result.error)")
    #expect(result.status == 0)
    #expect(paragraphs.count { $0.isInstead } == 4)
  }

  @Test func `the example alone changes nothing, and the service's has a camera that is served`() throws {
    let example = try Program().run(["config", "example"]).outputText
    #expect(example.split(separator: "\n").allSatisfy { $0.hasPrefix("#") && $0.count <= 120 })
    let service = try Program().run(["config", "example", "--service"]).outputText
    let lines = service.split(separator: "\n").filter { !$0.hasPrefix("#") }
    #expect(
      lines == ["rtsp = true", "wait = true", "[[camera]]", "name = \"camera\"", "source = \"/dev/nightjar/camera\""])
    #expect(service.split(separator: "\n").count == example.split(separator: "\n").count)
    // One more camera at its end, as the README has it.
    let program = try Program(service + "[[camera]]\nname = \"door\"\nsource = \"/dev/nightjar/usb-2\"\n")
    #expect(
      try program.run(["config", "check"]).outputText
        == "\(program.file): no mistake found; 2 cameras: camera, door\n")
  }

  // MARK: - Precedence

  @Test func `values from file and environment are shown with their origin, as a file with the same values`() throws {
    let program = try Program(
      """
      rtsp = true
      bitrate = "1M"
      fps = 25
      [[camera]]
      name = "a"
      source = "test"
      fps = 10
      [[camera]]
      name = "b"
      source = "file:/x y.y4m"
      """)
    // A file has the rate that it has: the second camera's fps is wrong, and that is told.
    let refused = try program.run(["config", "show"])
    #expect(refused.status == 65)
    #expect(refused.error == "nightjar: \(program.file):3: fps: a file has its own rate\n")
    let text = try String(contentsOfFile: program.file, encoding: .utf8)
      .replacing("fps = 25\n", with: "").replacing("file:/x y.y4m", with: "test")
    try text.write(toFile: program.file, atomically: false, encoding: .utf8)
    let shown = try program.run(["config", "show"], ["NIGHTJAR_BITRATE": "2M", "NIGHTJAR_BITRAT": "x"])
    #expect(
      shown.outputText == """
        rtsp = true  # \(program.file):1

        [[camera]]
        name = "a"  # \(program.file):4
        source = "test"  # \(program.file):5
        fps = 10  # \(program.file):6
        bitrate = "2M"  # NIGHTJAR_BITRATE

        [[camera]]
        name = "b"  # \(program.file):8
        source = "test"  # \(program.file):9
        bitrate = "2M"  # NIGHTJAR_BITRATE

        """, "\(shown.error)")
    #expect(shown.error == "warning: NIGHTJAR_BITRAT is unknown; the nearest is NIGHTJAR_BITRATE\n")
    try shown.output.write(to: URL(fileURLWithPath: program.file))
    #expect(try program.run(["config", "check"]).status == 0)
  }

  @Test func `a stream goes by its file, and by the command line before that`() throws {
    let program = try Program(
      "source = \"test\"\nsize = \"320x240\"\nduration = \"500ms\"\nto = []\ncontrol = \"none\"\n")
    let report = program.directory.path("report.json")
    let port = try UDPPort.free()
    let result = try program.run(
      ["stream", "--to", "rtp://127.0.0.1:\(port)", "--stats-json", report], ["NIGHTJAR_FPS": "10"])
    #expect(result.status == 0, "\(result.error)")
    let log = result.log
    #expect(log.values(of: "config") == [program.file], "\(result.error)")
    #expect(log.values(of: "format").first?.hasPrefix("320x240 at 10 fps, ") == true, "\(result.error)")
    let destinations = log.values(of: "to").map { $0.prefix { $0 != " " } }
    #expect(destinations == ["rtp://127.0.0.1:\(port)"], "\(result.error)")
    #expect(FileManager.default.fileExists(atPath: report))
    let other = try program.run(["stream", "--config", "none", "--source", "test", "--size", "99x99"])
    let mistake = try #require(other.error.split(separator: "\n").first)
    #expect(other.status == 64 && mistake.hasSuffix("; the nearest is 98x98"), "\(other.error)")
  }

  @Test func `the usual file is read where it is there`() throws {
    let program = try Program("fps = true\n")
    try FileManager.default.createDirectory(
      atPath: program.directory.path("nightjar"), withIntermediateDirectories: true)
    try FileManager.default.copyItem(atPath: program.file, toPath: program.directory.path("nightjar/nightjar.toml"))
    let environment = ["XDG_CONFIG_HOME": program.directory.url.path, "NIGHTJAR_CONFIG": ""]
    // Root has its own place, which is not a test's to write to.
    guard geteuid() != 0 else { return }
    let result = try program.run(["stream", "--source", "test", "--duration", "1s"], environment)
    let place = "\(program.directory.path("nightjar/nightjar.toml")):1: fps: "
    #expect(result.status == 65 && result.error.hasPrefix("nightjar: \(place)"), "\(result.error)")
  }

  @Test func `a relative path causes a warning`() throws {
    let program = try Program("source = 'file:clip.y4m'\nusers = '/dev/null'\nsdp = 'x/c.sdp'\nrtsp = true\n")
    let result = try program.run(["config", "check"])
    #expect(result.status == 0, "\(result.error)")
    let lines = [":1: source: clip.y4m", ":3: sdp: x/c.sdp"].map {
      "warning: \(program.file)\($0) is relative to the directory that nightjar starts in; write the absolute path\n"
    }
    #expect(result.error == lines.joined())
  }

  @Test func `a server for others without users is told, as a stream would not start with it`() throws {
    let program = try Program()
    let users = program.directory.path("users")
    try Data().write(to: URL(fileURLWithPath: users))
    #expect(chmod(users, 0o600) == 0)
    let others = "0.0.0.0:\(try UDPPort.free())"
    for server in ["rtsp", "rtsps", "https", "http"] {
      let text = "source = 'test'\nto = []\nusers = '\(users)'\n\(server) = '\(others)'\n"
      try text.write(toFile: program.file, atomically: false, encoding: .utf8)
      let checked = try program.run(["config", "check"])
      let warning = "warning: \(server) \(others): without users "
      #expect(checked.status == 0 && checked.error.hasPrefix(warning), "\(checked.error)")
      #expect(checked.error.split(separator: "\n").count == 1, "\(checked.error)")
      let refused = try program.run(["stream", "--duration", "1s"])
      #expect(refused.status != 0)
      #expect(try program.run(["config", "check", "--strict"]).status != 0)
      try text.replacing(others, with: "127.0.0.1:1").write(toFile: program.file, atomically: false, encoding: .utf8)
      #expect(try program.run(["config", "check"]).error.isEmpty)
    }
    let adding = "echo long enough | \(nightjarPath) user add anna --users \(users)"
    #expect(try Subprocess.run(["sh", "-c", adding], in: program.directory, limit: 60).status == 0)
    try "users = '\(users)'\nhttp = '\(others)'\n".write(toFile: program.file, atomically: false, encoding: .utf8)
    #expect(try program.run(["config", "check", "--strict"]).error.isEmpty)
    try "rtsps = true\ntls-cert = '/nowhere/c'\ntls-key = '/nowhere/k'\n".write(
      toFile: program.file, atomically: false, encoding: .utf8)
    for arguments in [[], ["--strict"]] {
      let missing = try program.run(["config", "check"] + arguments)
      #expect(missing.status == 66, "\(missing.error)")
      #expect(
        missing.error == "nightjar: \(program.file):2: tls-cert: there is no file /nowhere/c\n"
          + "nightjar: \(program.file):3: tls-key: there is no file /nowhere/k\n")
    }
  }

  @Test func `the file is an argument or an option, and not both`() throws {
    let program = try Program("no-such-key = 1\n")
    for command in ["check", "show"] {
      let byArgument = try program.run(["config", command, program.file], ["NIGHTJAR_CONFIG": "/nowhere/file"])
      #expect(byArgument.status == 65 && byArgument.error.contains("\(program.file):1: no-such-key"), "\(byArgument)")
      let both = try program.run(["config", command, program.file, "--config", program.file])
      #expect(both.status == 64 && both.error.contains("leave one of them out"), "\(both.error)")
    }
  }

  @Test func `a users file that is named but missing is a mistake, and the message says how to make the file`() throws {
    let program = try Program("rtsp = true\nhttps = true\nusers = '/nowhere/u s'\ntokens = '/nowhere/t'\n")
    let result = try program.run(["config", "check"])
    #expect(result.status == 66)
    let users = "users: there is no file /nowhere/u s; nightjar user add NAME --users '/nowhere/u s' makes it"
    let tokens = "tokens: there is no file /nowhere/t; nightjar token add NAME --tokens /nowhere/t makes it"
    #expect(result.error == "nightjar: \(program.file):3: \(users)\nnightjar: \(program.file):4: \(tokens)\n")
    // As a stream sees it.
    let stream = try program.run(["stream", "--source", "test", "--duration", "1s", "--control", "none"])
    let missing = "there is no users file /nowhere/u s: make one with nightjar user add NAME --users '/nowhere/u s'"
    #expect(stream.status == 66 && stream.log.failures == [missing], "\(stream.error)")
  }

  @Test func `a missing file is a mistake by a relative path, too, and a file that is there a warning`() throws {
    let program = try Program("rtsp = true\nusers = 'users'\nmqtt = 'mqtts://box.example'\nmqtt-login = 'x/login'\n")
    // In the directory of a stream that starts there.
    let arguments = ["env", "-C", program.directory.url.path, nightjarPath, "config", "check", program.file]
    func check() throws -> Subprocess.Result { try Subprocess.run(arguments, in: program.directory, limit: 60) }
    let missing = try check()
    #expect(missing.status == 66)
    let lines = [":2: users: there is no file users", ":4: mqtt-login: there is no file x/login"].map {
      "nightjar: \(program.file)\($0) in the present directory; write the absolute path\n"
    }
    #expect(missing.error == lines.joined())
    try FileManager.default.createDirectory(
      atPath: program.directory.path("x"), withIntermediateDirectories: false)
    for name in ["users", "x/login"] { try Data().write(to: URL(fileURLWithPath: program.directory.path(name))) }
    let present = try check()
    #expect(present.status == 0, "\(present.error)")
    let warnings = present.error.split(separator: "\n")
    #expect(warnings.count == 2 && warnings.allSatisfy { $0.contains(" is relative to ") }, "\(present.error)")
  }

  @Test func `--strict reports each secret file that others can read`() throws {
    let program = try Program()
    let paths = ["users", "tokens", "c.pem", "k.pem", "login"].map { program.directory.path($0) }
    for path in paths {
      try Data("nonsense\n".utf8).write(to: URL(fileURLWithPath: path))
      #expect(chmod(path, 0o644) == 0)
    }
    try """
    rtsps = true
    https = true
    users = '\(paths[0])'
    tokens = '\(paths[1])'
    tls-cert = '\(paths[2])'
    tls-key = '\(paths[3])'
    mqtt = 'mqtts://box.example'
    mqtt-login = '\(paths[4])'

    """.write(toFile: program.file, atomically: false, encoding: .utf8)
    #expect(try program.run(["config", "check"]).status == 0)
    let strict = try program.run(["config", "check", "--strict"])
    #expect(strict.status != 0 && strict.outputText.isEmpty)
    // Secrets that others can read.
    for path in [paths[0], paths[1], paths[3], paths[4]] {
      #expect(strict.log.failures.count { $0.contains(path) } == 1, "\(path): \(strict.error)")
    }
    #expect(strict.log.failures.count == 4, "\(strict.error)")
  }

  @Test func `a question is answered whatever the file says`() throws {
    let program = try Program("nonsense")
    for arguments in [
      ["stream", "--help"], ["stream", "-h"], ["--version"], ["config", "example"], ["help", "stream"],
    ] {
      #expect(try program.run(arguments).status == 0)
    }
    #expect(try program.run(["stream", "--help"]).outputText.contains("--config"))
  }
}
