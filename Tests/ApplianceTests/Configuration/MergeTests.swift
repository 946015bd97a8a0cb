import Appliance
import Media
import Platform
import Testing

@Suite struct MergeTests {
  private func merge(
    _ text: String?, _ environment: [String: String] = [:], _ arguments: [String] = []
  ) throws -> [[String: [String]]] {
    let file = try text.map { try parse($0) }
    let variables = try EnvironmentSettings(environment, options: table)
    let words = CommandLineWords(arguments, options: table)
    return try ConfigurationMerge(file: file, environment: variables.settings, given: words.given, options: table)
      .cameras.map { $0.settings.mapValues(\.words) }
  }

  @Test func `the command line goes before the environment, and that before the file`() throws {
    let text = "fps = 10\nslices = 2\nwait = true\nto = [\"a\", \"b\"]"
    #expect(
      try merge(text) == [
        ["fps": ["--fps=10"], "slices": ["--slices=2"], "wait": ["--wait"], "to": ["--to=a", "--to=b"]]
      ])
    let environment = ["NIGHTJAR_FPS": "20", "NIGHTJAR_WAIT": "no", "NIGHTJAR_TO": "c d", "NIGHTJAR_SLICES": ""]
    #expect(
      try merge(text, environment) == [
        ["fps": ["--fps=20"], "slices": ["--slices=2"], "wait": [], "to": ["--to=c", "--to=d"]]
      ])
    #expect(
      try merge(text, environment, ["--fps", "30", "--to=e", "--no-load-adaptation"]) == [
        ["slices": ["--slices=2"], "wait": []]
      ])
    #expect(try merge("load-adaptation = true", [:], ["--no-load-adaptation"]) == [[:]])
    #expect(try merge(nil, ["NIGHTJAR_RTSP": "yes"]) == [["rtsp": ["--rtsp"]]])
    #expect(try merge(nil, ["NIGHTJAR_RTSP": "8555"]) == [["rtsp": ["--rtsp=8555"]]])
  }

  @Test func `a camera's table goes before what stands above it`() throws {
    let text = """
      fps = 10
      rtsp = true
      [[camera]]
      source = "a"
      [[camera]]
      source = "b"
      fps = 5
      """
    #expect(
      try merge(text) == [
        ["rtsp": ["--rtsp"], "fps": ["--fps=10"], "source": ["--source=a"]],
        ["rtsp": ["--rtsp"], "fps": ["--fps=5"], "source": ["--source=b"]],
      ])
    #expect(try merge(text, ["NIGHTJAR_FPS": "7"]).map { $0["fps"] } == [["--fps=7"], ["--fps=7"]])
  }

  @Test(arguments: [
    (
      "[[camera]]\n[[camera]]", [:], ["--source", "test"], "--source: it cannot be the same for 2 cameras",
      FailureKind.usage
    ),
    ("[[camera]]\n[[camera]]", ["NIGHTJAR_NAME": "x"], [], "NIGHTJAR_NAME: it cannot be", .usage),
    ("source = \"a\"\n[[camera]]\n[[camera]]", [:], [], "f:1: source: it cannot be the same for 2", .data),
    ("source = \"a\"\n[[camera]]\nsource = \"b\"", [:], [], "f:1: source: each [[camera]] has its own", .data),
  ])
  func `two cameras are not given what only one can have`(
    text: String, environment: [String: String], arguments: [String], words: String, kind: FailureKind
  ) {
    let error = #expect(throws: ConfigurationError.self) { try merge(text, environment, arguments) }
    #expect(error?.description.hasPrefix(words) == true, "\(String(describing: error))")
    #expect(error?.kind == kind)
  }

  @Test func `a single camera table takes options from above it, and the command line overrides it`() throws {
    #expect(try merge("source = \"a\"\n[[camera]]\nfps = 1") == [["source": ["--source=a"], "fps": ["--fps=1"]]])
    #expect(try merge("[[camera]]\nsource = \"a\"", [:], ["--source", "b"]) == [[:]])
  }

  @Test func `what the command line goes before is known`() throws {
    let merged = try ConfigurationMerge(
      file: parse("slices = 5\n[[camera]]\nfps = 1\n"), environment: [:], given: ["fps", "wait"], options: table)
    #expect(merged.overridden.map { "\($0.origin): \($0.option.name)" } == ["f:3: fps"])
  }

  @Test func `a variable that is nearly an option's is told`() throws {
    let settings = try EnvironmentSettings(
      [
        "NIGHTJAR_KEYFRAME_INTERVALL": "1", "NIGHTJAR_SOURC": "x", "NIGHTJAR_RENDER_NODE": "x", "NIGHTJAR_RIG": "1",
        "NIGHTJAR_LONG": "1", "NIGHTJAR_RIG_CACHE": "x", "NIGHTJAR_EVENT": "x", "HOME": "/", "NIGHTJAR_TOO": "x",
        "NIGHTJAR_": "",
      ], options: table, others: ["NIGHTJAR_TOO"])
    #expect(settings.settings.isEmpty)
    #expect(
      settings.warnings == [
        "NIGHTJAR_KEYFRAME_INTERVALL is unknown; the nearest is NIGHTJAR_KEYFRAME_INTERVAL",
        "NIGHTJAR_SOURC is unknown; the nearest is NIGHTJAR_SOURCE",
      ])
  }

  @Test(arguments: [("NIGHTJAR_WAIT", "maybe"), ("NIGHTJAR_USERS", "a\nb")])
  func `a variable that makes no sense is refused by its name`(name: String, text: String) {
    let error = #expect(throws: ConfigurationError.self) { try EnvironmentSettings([name: text], options: table) }
    #expect(error?.description.hasPrefix("\(name): ") == true && error?.kind == .usage)
  }

  @Test func `the file is named in either spelling, and the last one counts`() {
    for (words, path) in [
      (["--config", "a"], "a"), (["--config=b", "--wait"], "b"), (["--config", "a", "--config=c"], "c"),
      (["--config", "--wait"], nil), (["--", "--config", "a"], nil), (["--config="], ""),
    ] as [([String], String?)] {
      #expect(CommandLineWords(words, options: table).configuration == path)
    }
  }

  @Test func `a negative number is a value, and any other word with a dash is none`() {
    let options = OptionTable.commandLine
    for (words, text) in [
      (["--audio-gain", "-6"], "-6"), (["--audio-gain", "-.5"], "-.5"), (["--audio-gain=-6"], "-6"),
      (["--audio-gain", "--wait"], ""), (["--audio-gain", "-x"], ""),
    ] {
      #expect(CommandLineWords(words, options: options).layer["audio-gain"]?.value == .text(text), "\(words)")
    }
  }

  @Test func `a setting is written as it was read`() throws {
    let text = """
      rtsp = true
      users = "/a \\"b\\" \\\\c"
      load-adaptation = false
      fps = 29.97
      to = ["a", "b"]
      name = '"\u{301}'
      """
    let settings = try parse(text).settings
    let written = table.options.compactMap { settings[$0.name]?.line }.joined(separator: "\n")
    #expect(try parse(written).settings.mapValues(\.words) == settings.mapValues(\.words))
    #expect(settings["users"]?.line == "users = \"/a \\\"b\\\" \\\\c\"")
  }
}
