import Foundation
import TestSupport
import Testing

@testable import Appliance

/// A configuration file, and what the program makes of it.
private struct Program {
  let directory: TemporaryDirectory
  let file: String

  init(_ text: String? = nil) throws {
    directory = try TemporaryDirectory()
    file = directory.path("box.toml")
    if let text { try text.write(toFile: file, atomically: false, encoding: .utf8) }
  }

  func run(_ arguments: [String], _ environment: [String: String] = [:]) throws -> Subprocess.Result {
    try Subprocess.run(
      [nightjarPath] + arguments, in: directory,
      environment: ["NIGHTJAR_CONFIG": file].merging(environment) { $1 }, limit: 60)
  }
}

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

  @Test func `A file has every option of the command line, and no other`() throws {
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

  @Test func `No option's variable looks like another's, and those of other things like none`() throws {
    let names = Set(OptionTable.stream.options.map(\.variable))
    #expect(names.count == OptionTable.stream.options.count)
    for name in ["NIGHTJAR_RENDER_NODE", "NIGHTJAR_LONG", "NIGHTJAR_RIG", "NIGHTJAR_RIG_CACHE", "NIGHTJAR_CONFIG"] {
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
    let text = text.replacing(/(?m)^((?:users|tokens|tls-cert|tls-key) = )".*"$/) { "\($0.output.1)\"/dev/null\"" }
    #if X264
      return text
    #else
      return text.split(separator: "\n", omittingEmptySubsequences: false).filter { !$0.hasPrefix("x264-preset") }
        .joined(separator: "\n")
    #endif
  }

  @Test func `Each paragraph of the example can be taken in, and all of them together`() throws {
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

  @Test func `The example alone changes nothing, and the service's has a camera that is served`() throws {
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

  @Test func `Values from file and environment are shown with their origin, as a file with the same values`() throws {
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

  @Test func `A stream goes by its file, and by the command line before that`() throws {
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

  @Test func `The usual file is read where it is there`() throws {
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

  @Test func `A relative path causes a warning`() throws {
    let program = try Program("source = 'file:clip.y4m'\nusers = '/dev/null'\nsdp = 'x/c.sdp'\nrtsp = true\n")
    let result = try program.run(["config", "check"])
    #expect(result.status == 0, "\(result.error)")
    let lines = [":1: source: clip.y4m", ":3: sdp: x/c.sdp"].map {
      "warning: \(program.file)\($0) is relative to the directory that nightjar starts in; write the absolute path\n"
    }
    #expect(result.error == lines.joined())
  }

  @Test func `A server for others without users is told, as a stream would not start with it`() throws {
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

  @Test func `A users file that is named but missing is a mistake, and the message says how to make the file`() throws {
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

  /// Files with several mistakes, and the beginnings of all the lines that they are worth: no consequence is one.
  private static let severalMistakes: [(text: String, lines: [String])] = [
    (
      "fps = 0\nbitrat = 1\nencoder = \"nvenc\"",
      [
        ":1: fps: '0': choose 0.1 to 240", ":2: bitrat: there is no such option; the nearest is bitrate",
        ":3: encoder: 'nvenc': choose one of 'auto', ",
      ]
    ),
    // What is no TOML, of one line and of several, and what stands behind it.
    (
      "fps = \nto = [\n  \"rtp://h:2\",\n  5x,\n]\nsize = \"1281x720\"\nusers = \"a\nwait = yes\nslices = true",
      [
        ":1: invalid TOML", ":4: to: 5x is not a number", ":6: size: '1281x720': width and height",
        ":7: a text ends with a quotation mark", ":8: wait: yes: write true or false",
        ":9: slices: this is true or false",
      ]
    ),
    // What goes with an option that is wrong is not wrong for that.
    ("rtsp = 1.5\nalways-encode = true\nfps = 0", [":1: rtsp: this is a number", ":3: fps: '0'"]),
    ("rtsp = \"nowhere\"\nalways-encode = true\nfps = 0", [":1: rtsp: 'nowhere': write", ":3: fps: '0'"]),
    // Of several cameras: the one that is wrong, what is wrong for all of them, and what two of them want.
    (
      "rtsp = true\nbitrate = \"2m\"\n[[camera]]\nname = \"a\"\nsource = \"test\"\nfps = 0\n[[camera]]\n"
        + "name = \"b\"\nsorce = \"test\"\n[[camera]]\nname = \"b\"\nsource = \"test\"",
      [
        ":2: bitrate: '2m': choose auto, or bits a second from ", ":6: fps: '0'",
        ":9: sorce: there is no such option; the nearest is source", ":11: name: 'b': give each",
      ]
    ),
    (
      "rtsp = true\n[[kamera]]\nname = \"x\"\n[[camera]]\nfps = 0\n[[camera]]\nfps = 1e3",
      [":2: [kamera]: the only tables", ":5: fps: '0'", ":7: fps: '1000.0'"]
    ),
    (
      "[[camera]]\n[[camera]]",
      [
        ":1: source: camera 'camera' has none", ":1: camera has no destination", ":2: name: 'camera': give each",
        ":2: source: camera 'camera' has none", ":2: camera has no destination",
      ]
    ),
  ]

  @Test(arguments: severalMistakes.indices)
  func `All mistakes are found at once, by file and line`(index: Int) throws {
    let (text, lines) = Self.severalMistakes[index]
    let program = try Program(text)
    let result = try program.run(["config", "check"])
    #expect(result.status == 65)
    let found = result.error.split(separator: "\n")
    #expect(found.count == lines.count, "\(result.error)")
    for (found, expected) in zip(found, lines) {
      #expect(found.hasPrefix("nightjar: \(program.file)\(expected)"), "\(found) instead of \(expected)")
    }
    #expect(!result.error.contains(".;") && !result.error.contains("that is camera"), "\(result.error)")
    // A stream says one of them, and is not begun.
    let stream = try program.run(["stream", "--duration", "1s"])
    #expect(stream.status == 65 && stream.error.split(separator: "\n").count == 1, "\(stream.error)")
    #expect(result.error.contains(stream.error), "\(stream.error)")
  }

  // MARK: - Mistakes

  private static let mistakes: [(text: String, arguments: [String], words: String)] = [
    ("\nfps = 0", [], ":2: fps: '0': choose 0.1 to 240"),
    ("fps = 1e3", [], ":1: fps: '1000.0': choose 0.1 to 240"),
    ("size = \"1281x720\"", [], ":1: size: '1281x720': width and height must be even"),
    ("encoder = \"nvenc\"", [], ":1: encoder: 'nvenc': choose one of 'auto'"),
    ("rtsp = \"nowhere\"", [], ":1: rtsp: 'nowhere': write ADDRESS:PORT"),
    ("rtsp = 70000", [], ":1: rtsp: '70000': write ADDRESS:PORT"),
    ("\n\nalways-encode = true", [], ":3: always-encode: always-encode is for rtsp and rtsps only"),
    ("rtsps = true\ntls-cert = \"x\"", [], ":2: tls-cert: tls-cert and tls-key: give both"),
    ("to = [\"rtp://h:2\", \"http://x\"]", [], ":1: to: 'http://x': "),
    ("on-loss = \"exit\"", ["--wait"], ":1: on-loss: --wait and on-loss exit exclude each other"),
    ("name = \"a/b\"", [], ":1: name: 'a/b': choose 1 to 64 letters"),
    ("name = \"\"", [], ":1: name: it is empty; write a value"),
    ("sdp = \"\"", [], ":1: sdp: it is empty"),
    ("rtsp = \"-x\"", [], ":1: rtsp: '-x': write ADDRESS:PORT"),
    ("source = \"test\"\nfps = 25\nrate = \"max\"", [], ":3: rate: rate is for source file: only"),
    ("source = \"--help\"", [], ":1: source: '--help': choose auto"),
    ("bitrate = -5", [], ":1: bitrate: '-5': choose auto"),
    (
      "[[camera]]\nname=\"a\"\nsource=\"test\"\n[[camera]]\nsource = \"test\"\nname = \"a\"", [],
      ":6: name: 'a': give each"
    ),
    ("[[camera]]\n[[camera]]", [], ":2: name: 'camera': give each camera its own name"),
    ("[[camera]]\nname=\"a\"\n[[camera]]\nsource = \"test\"", [], ":1: source: camera 'a' has none"),
    (
      "rtsp=true\n[[camera]]\nname=\"a\"\nsource=\"/dev/x\"\n[[camera]]\nsource=\"/dev/x\"", [],
      ":6: source: '/dev/x': another camera has it already"
    ),
    (
      "[[camera]]\nname=\"a\"\nsource=\"test\"\nto=\"rtp://h:2\"\n[[camera]]\nsource=\"test\"\nto=\"rtp://h:2?mtu=600\"",
      [],
      ":7: to: 'h port 2': another camera streams there already"
    ),
    ("[[camera]]\nname=\"a\"\nsource=\"test\"\n[[camera]]\nsource=\"test\"", [], ":1: a has no destination"),
    (
      "rtsp=true\nsize=\"320x240\"\n[[camera]]\nname=\"a\"\nsource=\"test\"\n[[camera]]\nname=\"b\"\nsource=\"file:/x\"",
      [], ":2: size: a file has its own size; that is camera 'b': write it into the tables of the others"
    ),
    (
      "rtsp=true\n[[camera]]\nname=\"a\"\nsource=\"test\"\nrtsp-multicast=\"239.1.2.3:5004\"\n[[camera]]\nname=\"b\"\nsource="
        + "\"test\"\nto=\"rtp://239.1.2.3:5005\"", [],
      ":9: to: '239.1.2.3 port 5005' is the rtsp-multicast of camera 'a'"
    ),
    (
      "rtsp=true\n[[camera]]\nname=\"a\"\nsource=\"test\"\nrtsp-multicast=\"239.1.2.3:5004\"\n[[camera]]\nname=\"b\"\nsource="
        + "\"test\"\nrtsp-multicast=\"239.1.2.3:5006\"", [],
      ":9: rtsp-multicast: '239.1.2.3 port 5006': another camera uses this group"
    ),
    (
      "[[camera]]\nname=\"a\"\nsource=\"test\"\nto=\"rtp://h:2?audio=10\"\n[[camera]]\nsource=\"test\"\nto=\"rtp://h:10\"",
      [],
      ":7: to: 'h port 10': another camera streams there already"
    ),
    (
      "rtsp=true\nstats-json=\"f\"\n[[camera]]\nname=\"a\"\nsource=\"test\"\n[[camera]]\nsource=\"test\"\nsdp=\"f\"",
      [],
      ":8: sdp: stats-json writes this file"
    ),
  ]

  @Test(arguments: mistakes.indices)
  func `A wrong value is told by file, line and key`(index: Int) throws {
    let (text, arguments, words) = Self.mistakes[index]
    let program = try Program(text)
    let result = try program.run(["stream", "--duration", "1s"] + arguments)
    #expect(result.status == 65 && result.error.hasPrefix("nightjar: \(program.file)\(words)"), "\(result.error)")
    #expect(result.error.split(separator: "\n").count == 1, "\(result.error)")
    guard arguments.isEmpty else { return }
    let checked = try program.run(["config", "check"])
    #expect(checked.status == 65 && checked.error.contains(result.error), "\(checked.error)")
  }

  @Test(arguments: [
    ("NIGHTJAR_FPS", "0", "NIGHTJAR_FPS: '0': choose 0.1 to 240"),
    ("NIGHTJAR_WAIT", "2", "NIGHTJAR_WAIT: '2': write true"),
    ("NIGHTJAR_ALWAYS_ENCODE", "true", "NIGHTJAR_ALWAYS_ENCODE: always-encode is for rtsp"),
  ])
  func `A wrong variable is told by its name`(name: String, value: String, words: String) throws {
    let result = try Program("").run(["stream", "--source", "test", "--duration", "1s"], [name: value])
    #expect(result.status == 64 && result.error.hasPrefix("nightjar: \(words)"), "\(result.error)")
    #expect(result.error.split(separator: "\n").count == 1)
  }

  @Test(arguments: [(["--fps", "0"], "--fps"), (["--nonsense"], "--nonsense"), (["--config"], "--config")])
  func `A mistake on the command line is reported as without a file`(arguments: [String], words: String) throws {
    let result = try Program("wait = true").run(["stream"] + arguments)
    let usages = result.error.split(separator: "\n").count { $0.hasPrefix("Usage: nightjar stream") }
    #expect(result.status == 64 && result.error.contains(words) && usages == 1, "\(result.error)")
  }

  @Test func `A file that is missing, a directory, unreadable or no text is refused in one line`() throws {
    let program = try Program("fps = 25")
    func expect(_ result: Subprocess.Result, _ status: Int32, _ words: String) {
      #expect(result.status == status && result.error.contains(words), "\(result.error)")
      #expect(result.error.split(separator: "\n").count == 1 && result.error.hasPrefix("nightjar: "), "\(result.error)")
    }
    for arguments in [["stream"], ["config", "check"], ["config", "show"]] {
      expect(
        try program.run(arguments + ["--config", "/nonexistent/x.toml"]), 66, "/nonexistent/x.toml: there is no such")
      expect(try program.run(arguments + ["--config", "/"]), 65, "/: this is a directory")
      expect(try program.run(arguments + ["--config", "/dev/null"]), 65, "/dev/null: this is not a plain file")
    }
    expect(try program.run(["stream", "--config="]), 64, "--config: name a file, or none")
    try Data([0x61, 0xFF]).write(to: URL(fileURLWithPath: program.file))
    expect(try program.run(["stream"]), 65, "box.toml:1: the file is not UTF-8")
    try Data(count: ConfigurationLimits.fileSize + 1).write(to: URL(fileURLWithPath: program.file))
    expect(try program.run(["stream"]), 65, "1048576 bytes")
    try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: program.file)
    // Root may read everything, unless that is taken from it.
    let bound = geteuid() == 0 ? ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] : []
    expect(
      try Subprocess.run(bound + [nightjarPath, "stream", "--config", program.file], in: program.directory), 77,
      "may not read it")
  }

  @Test func `An address behind an equals sign is taken wherever it stands`() throws {
    let arguments = ["--source", "test", "--control", "none", "--rtsp=nowhere", "--duration", "1s"]
    let result = try Program("").run(["stream"] + arguments)
    #expect(result.status == 64 && result.error.contains("--rtsp nowhere: write ADDRESS:PORT"), "\(result.error)")
  }

  @Test func `A question is answered whatever the file says`() throws {
    let program = try Program("nonsense")
    for arguments in [
      ["stream", "--help"], ["stream", "-h"], ["--version"], ["config", "example"], ["help", "stream"],
    ] {
      #expect(try program.run(arguments).status == 0)
    }
    #expect(try program.run(["stream", "--help"]).outputText.contains("--config"))
  }
}
