import Appliance
import Foundation
import Media
import Platform
import TestSupport
import Testing

func parse(_ text: String) throws(ConfigurationError) -> ConfigurationFile {
  try ConfigurationFile(parsing: Array(text.utf8), path: "f", options: table)
}

@Suite struct ConfigurationFileTests {
  @Test func `values become the words of the command line`() throws {
    let file = try parse(
      """
      rtsp = true            # a comment
      'users' = '/etc/a b'
      "wait" = false
      load-adaptation = false
      slices = 4
      fps = 29.97
      keyframe-interval = "500ms"
      to = [
        "rtp://h:1",  # one [ " ' {
        'rtp://h:3',
      ]
      """)
    let words = file.settings.mapValues(\.words)
    #expect(
      words == [
        "rtsp": ["--rtsp"], "users": ["--users=/etc/a b"], "wait": [], "load-adaptation": ["--no-load-adaptation"],
        "slices": ["--slices=4"], "fps": ["--fps=29.97"], "keyframe-interval": ["--keyframe-interval=500ms"],
        "to": ["--to=rtp://h:1", "--to=rtp://h:3"],
      ])
    #expect(file.settings["keyframe-interval"]?.origin == .file("f", line: 7))
    #expect(file.settings["to"]?.origin == .file("f", line: 8))
    #expect(file.cameras.isEmpty)
  }

  @Test func `cameras have tables of their own`() throws {
    let file = try parse(
      "fps = 25\n[[camera]]\nname = \"a\"\nsource='x'\n\n[[ 'camera' ]] # second\nname = \"b\"\nfps = 50\n")
    #expect(file.settings.mapValues(\.words) == ["fps": ["--fps=25"]])
    #expect(file.cameras.map(\.line) == [2, 6])
    #expect(file.cameras[0].settings.mapValues(\.words) == ["name": ["--name=a"], "source": ["--source=x"]])
    #expect(file.cameras[1].settings.mapValues(\.words) == ["name": ["--name=b"], "fps": ["--fps=50"]])
    #expect(file.cameras[1].settings["fps"]?.origin == .file("f", line: 8))
  }

  @Test func `a file with nothing in it says nothing`() throws {
    for text in ["", "\n\n", "# only\r\n", "\u{FEFF}"] { #expect(try parse(text).settings.isEmpty) }
  }

  @Test(arguments: [
    // Text, line, words.
    ("\nvolume = 1\n", 2, "volume: there is no such option; nightjar config example lists them"),
    ("\nsorce = 1\n", 2, "sorce: there is no such option; the nearest is source"),
    ("wait = true\nfps = 1\n\nkeyframe_interval = 1", 4, "the nearest is keyframe-interval"),
    ("# x\nwait = \"true\"", 2, "wait: this is a text; it takes true or false"),
    ("slices = 4.5", 1, "slices: this is a number with a point; it takes a whole number"),
    ("slices = true", 1, "true or false; it takes a whole number"),
    ("users = 5", 1, "users: this is a whole number; it takes a text"),
    ("users = [\"a\"]", 1, "users: this is a list; it takes a text"),
    ("rtsp = 1.5", 1, "rtsp: this is a number with a point"),
    ("to = [\"a\", 1]", 1, "to: the list contains a whole number"),
    ("to = 5", 1, "to: this is a whole number; it takes texts"),
    ("fps = 2024-01-01", 1, "fps: 2024-01-01 is not a number, true or false; put a text into straight"),
    ("fps = 12:00:00", 1, "fps: 12:00:00 is not a number"),
    ("wait = yes", 1, "wait: yes: write true or false, in small letters"),
    ("wait = true\nwait = false", 2, "wait"),
    ("fps = 1\n\n\nsource = /dev/video0", 4, "source: /dev/video0 is not a number, true or false; put a text into"),
    ("fps = ", 1, "invalid TOML: expected"),
    ("users = \"a\nfps = 1", 1, "a text ends with a quotation mark, and here is none"),
    ("to = [\"a\"\n\nfps = 1", 3, "a list ends with ]"),
    ("to = [\"a\"\n\n", 2, "invalid TOML: expected"),
    ("a\n", 1, "invalid TOML: expected"),
    ("fps = 1\n[camera]\nfps = 2", 2, "write [[camera]]"),
    ("fps = 1\n[[camera]]\n[[kamera]]\nfps = 2", 3, "[kamera]: the only tables are [[camera]]"),
    ("[a.b.c]", 1, "[a]: the only tables are [[camera]]"),
    ("[[camera]]\n[[camera.x]]", 2, "the only tables are [[camera]]"),
    ("\n[[camera]]\nrtsp = true", 3, "rtsp: this is for all cameras together; write it"),
    ("camera = 5", 1, "camera: write a line [[camera]]"),
    ("config = \"x\"", 1, "config: a file cannot name another"),
    ("source.x = 5", 1, "source.…: there are no keys within keys"),
    ("users = { a = 1 }", 1, "users: there are no tables within tables"),
    ("camera = [{ name = \"x\" }]", 1, "camera: there are no tables within tables"),
    ("to = [[\"x\"]]", 1, "to: there are no lists within lists"),
    ("\"so\\u0075rce\" = 1", 1, "source: this is a whole number; it takes a text"),
    ("users = \"a\\u0000b\"", 1, "users: a text has no NUL in it"),
    ("users = \"\"\"\n\\U00000000\"\"\"", 1, "users: a text has no NUL in it"),
    ("users = \"a\\nb\"", 1, "users: a text has no line ends"),
    ("users = \"\"\"a\nb\"\"\"\nfps = true", 1, "users: a text has no line ends"),
    ("users = '''a'''\n\nfps = true", 3, "fps: this is true or false; it takes a number"),
    ("users = \"\"\"a\\\n  b\"\"\"\nfps = true", 3, "fps: this is true or false"),
    ("users = \"\"\"a\"\"\"\"\"\nfps = true", 2, "fps: this is true or false"),
    ("users = \"# [[ \\\" {\" # \" {\nfps = true", 2, "fps: this is true or false"),
    ("to = [ # [\n  \"]\",\n]\nfps = true", 4, "fps: this is true or false"),
    ("users = \"\(String(repeating: "x", count: 5000))\"", 1, "users: a text has 4096 bytes at most"),
    ("to = [\(String(repeating: "\"x\",", count: 65))]", 1, "to: a list has 64 entries at most"),
    (String(repeating: "[[camera]]\n", count: 9), 9, "8 cameras at most"),
    ("fps = 1\n\u{0}", 2, "NUL"),
    ("\"a\u{1b}[2Jb\" = 5", 1, "invalid TOML: expected"),
    ("\u{202E} = 5", 1, "invalid TOML: expected"),
  ])
  func `a mistake is told by line, key and mend, in one line`(text: String, line: Int, words: String) {
    let error = #expect(throws: ConfigurationError.self) { try parse(text) }
    let description = error?.description ?? ""
    #expect(description.hasPrefix("f:\(line): "), "\(description)")
    #expect(description.contains(words), "\(description)")
    #expect(description.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }, "\(description)")
    #expect(error?.kind == .data)
  }

  @Test func `text that is not UTF-8, or too long, is refused`() {
    let error = #expect(throws: ConfigurationError.self) {
      try ConfigurationFile(parsing: Array("fps = 1\nusers = \"".utf8) + [0xFF, 0x22], path: "f", options: table)
    }
    #expect(error?.description.hasPrefix("f:2: the file is not UTF-8") == true, "\(String(describing: error))")
    let comment = [UInt8](repeating: UInt8(ascii: "#"), count: ConfigurationLimits.fileSize)
    #expect(throws: Never.self) { try ConfigurationFile(parsing: comment, path: "f", options: table) }
    #expect(throws: ConfigurationError.self) {
      try ConfigurationFile(parsing: comment + comment, path: "f", options: table)
    }
  }

  private static let deep = [
    "[" + String(repeating: "a.", count: 500_000) + "a]\n", String(repeating: "a.", count: 500_000) + "a = 1\n",
    "to = " + String(repeating: "[", count: 1_000_000), "to = " + String(repeating: "{a=", count: 300_000),
    "camera.x = {" + String(repeating: "a.", count: 500_000) + "a = 1}\n",
    String(repeating: "[[camera]]\n", count: 90_000), String(repeating: "\"", count: 1_000_000),
    String(repeating: "a = '''\n", count: 120_000), "[", "[[", "[,", "[[[", "[é", "fps = ::", "fps = 1-", "fps = 2020-",
    "fps = 12:", "[[camera", "[[camera]", "\"", "'", "\"\"\"", "a = \"\"\"\\", "a = \"\\u", "a = \"\\U0011FFFF\"",
    "a = [,",
  ]

  @Test(arguments: deep.indices)
  func `deep, endless and broken documents end in one line, not in a crash`(index: Int) {
    #expect(throws: ConfigurationError.self) { try parse(Self.deep[index]) }
  }

  @Test func `files that cannot be read say why`() throws {
    let directory = try TemporaryDirectory()
    func kind(_ path: String) -> FailureKind? {
      do throws(ConfigurationError) {
        _ = try ConfigurationFile(contentsOf: path, options: table)
        return nil
      } catch {
        return error.kind
      }
    }
    #expect(kind(directory.path("none")) == .noInput)
    #expect(kind(directory.url.path) == .data)
    #expect(kind("/dev/null") == .data)
    try #require(mkfifo(directory.path("pipe"), 0o600) == 0)
    #expect(kind(directory.path("pipe")) == .data)
    try "fps = 1".write(toFile: directory.path("file"), atomically: false, encoding: .utf8)
    #expect(kind(directory.path("file")) == nil)
    #expect(kind(directory.path("file/below")) == .noInput)
    #expect(kind("") == .usage)
  }
}
