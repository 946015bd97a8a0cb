import Appliance
import Foundation
import TestSupport
import Testing

@Suite struct ConfigurationMistakeTests {
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
    (
      "source = \"test\"\nrtsp = true\nnight = \"x\"",
      [
        ":3: night: 'x': choose from and to, as in from=19:30 to=06:30, or below and above, as in below=20 above=30; in a "
          + "file, write a table [night] with the lines from = \"19:30\" and to = \"06:30\""
      ]
    ),
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
  func `all mistakes are found at once, by file and line`(index: Int) throws {
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
  func `a wrong value is told by file, line and key`(index: Int) throws {
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
  func `a wrong variable is told by its name`(name: String, value: String, words: String) throws {
    let result = try Program("").run(["stream", "--source", "test", "--duration", "1s"], [name: value])
    #expect(result.status == 64 && result.error.hasPrefix("nightjar: \(words)"), "\(result.error)")
    #expect(result.error.split(separator: "\n").count == 1)
  }

  @Test(arguments: [(["--fps", "0"], "--fps"), (["--nonsense"], "--nonsense"), (["--config"], "--config")])
  func `a mistake on the command line is reported as without a file`(arguments: [String], words: String) throws {
    let result = try Program("wait = true").run(["stream"] + arguments)
    let usages = result.error.split(separator: "\n").count { $0.hasPrefix("Usage: nightjar stream") }
    #expect(result.status == 64 && result.error.contains(words) && usages == 1, "\(result.error)")
  }

  @Test func `a file that is missing, a directory, unreadable or no text is refused in one line`() throws {
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

  @Test func `an address behind an equals sign is taken wherever it stands`() throws {
    let arguments = ["--source", "test", "--control", "none", "--rtsp=nowhere", "--duration", "1s"]
    let result = try Program("").run(["stream"] + arguments)
    let mend = "write ADDRESS:PORT, :PORT or ADDRESS, numeric, ports from 1 to 65535, as in 192.168.1.5:8554"
    #expect(result.status == 64 && result.log.lines.first == "Error: --rtsp nowhere: \(mend)", "\(result.error)")
  }
}
