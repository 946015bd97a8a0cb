import Appliance
import Foundation
import Media
import Platform
import TestSupport
import Testing

/// Texts of TOML, read by Python's tomllib too: it is another implementation of TOML 1.0.
@Suite struct OutsideJudgeTests {
  /// Reads files that follow each other in one, and prints a line of JSON for each: null where it is no TOML.
  private static let script = """
    import json, sys, tomllib
    def plain(value):
        if isinstance(value, bool): return {"flag": value}
        if isinstance(value, (int, float)): return {"number": repr(value)}
        if isinstance(value, str): return {"text": value}
        if isinstance(value, list): return {"list": [plain(entry) for entry in value]}
        if isinstance(value, dict): return {"table": {name: plain(entry) for name, entry in value.items()}}
        return {"date": str(value)}
    for document in json.load(open(sys.argv[1])):
        try:
            print(json.dumps(plain(tomllib.loads(document))))
        except (tomllib.TOMLDecodeError, RecursionError):
            print("null")
    """

  /// The judge's values by key; nil for what it refuses.
  private func judge(_ documents: [String]) throws -> [[String: Any]?] {
    let directory = try TemporaryDirectory()
    let file = directory.path("documents.json")
    try JSONEncoder().encode(documents).write(to: URL(fileURLWithPath: file))
    let result = try Subprocess.run(["python3", "-c", Self.script, file], in: directory)
    try #require(result.status == 0, "\(result.error)")
    let answers = result.outputText.split(separator: "\n").map { line in
      (try? JSONSerialization.jsonObject(with: Data(line.utf8))) as? [String: Any]
    }
    try #require(answers.count == documents.count)
    return answers.map { $0?["table"] as? [String: Any] }
  }

  private static let written = [
    "fps = 1_000", "fps = 0x1F", "fps = 0o17", "fps = 0b11", "fps = 01", "fps = +5", "fps = -0", "fps = 1e3",
    "fps = 1.",
    "fps = .5", "fps = 1__0", "fps = inf", "fps = -nan", "fps = 5e-7", "fps = 6.626e-34", "fps = 9223372036854775807",
    "wait = TRUE", "wait = true false", "wait=true", "wait\t=\ttrue\t#\tc", "wait = true\r\nfps = 1\r\n",
    "users = 'a' # b", "users = 'a' b", "users = \"\\e\"", "users = \"\\u00e9\\U0001F426\"", "users = \"\\uD800\"",
    "users = 'C:\\x'", "users = \"C:\\x\"", "users = ''", "users = \"\"", "users = \"\"\"\na\"\"\"",
    "users = '''a'b''c'''",
    "users = \"\"\"a\"\"\"\"\"\"", "users = \"\"\"a \\\n   b\"\"\"", "users = \"tab\there\"",
    "to = []", "to = [,]", "to = ['a',]", "to = ['a' 'b']", "to = [\n# c\n'a'\n,\n'b' # d\n]", "to = ['a', 'b'",
    "to = 'a'\nto = 'b'", "= 1", "fps", "fps = # c", "fps = 1 = 2", "fps 1", "'fps' = 1", "\"fps\" = 1",
    "fps = 1\nfps = 1",
    "\"\" = 1", "[[camera]]\nname = 'a'\n[[camera]]\nname = 'b'", "[[camera]\nname = 'a'", "[[camera]] x\nname = 'a'",
    "[ [camera]]", "[[ camera ]] # c\nname = 'a'", "users = \"a\u{7f}\"", "# c\u{1}\nfps = 1", "fps\n= 1",
    "fps = 1\u{85}",
    "[controls]\nbrightness = 10\n[[camera]]\nname = 'a'", "[ controls ] # c\na = true\nb = 'x y'\nc = -0x1F",
    "[controls]\na = 1\na = 2", "[controls]\n[controls]",
    "[[camera]]\n[camera.controls]\na = 1\n[[camera]]\nname = 'b'",
    "[controls] x\na = 1", "[controls\na = 1", "['controls']\na = 1", "controls = ['a=1']",
    "users = é", "é = 1", "users = \"é\"", "fps = 2020-02-30", "fps = 1979-05-27T07:32:00Z", "\u{FEFF}fps = é",
  ]

  /// Documents with a few bytes changed, doubled, swapped or left out.
  static func mutations(of seeds: [String], count: Int, seed: UInt64) -> [[UInt8]] {
    var generator = SeededGenerator(seed: seed)
    let pieces = [
      "\"", "'", "\"\"\"", "'''", "[", "]", "[[", "]]", "{", "}", "=", "#", "\n", "\r\n", "\\", ".", ",", "true", "1e9",
      "0x",
      "\u{0}", "é", "[[camera]]\n", "[controls]\n", "[camera.controls]\n", "\\u0000", "-", "_", "2020-01-01",
    ].map { Array($0.utf8) }
    return (0..<count).map { _ in
      var bytes = Array((seeds.randomElement(using: &generator) ?? "").utf8)
      for _ in 0..<Int.random(in: 1...6, using: &generator) {
        let start = Int.random(in: 0...bytes.count, using: &generator)
        let end = min(bytes.count, start + Int.random(in: 0...8, using: &generator))
        switch Int.random(in: 0...3, using: &generator) {
        case 0: bytes.replaceSubrange(start..<end, with: pieces.randomElement(using: &generator) ?? [])
        case 1: bytes.removeSubrange(start..<end)
        case 2: bytes.insert(contentsOf: bytes[start..<end], at: Int.random(in: 0...bytes.count, using: &generator))
        default: if start < bytes.count { bytes[start] = UInt8.random(in: 0...255, using: &generator) }
        }
      }
      return bytes
    }
  }

  private static let seeds =
    written + [
      """
      # A box with two cameras.
      rtsp = true
      users = "/etc/nightjar/users"   # who may watch
      fps = 29.97
      to = ["rtp://192.168.1.20:5004", 'rtp://192.168.1.21:5004']
      load-adaptation = false

      [[camera]]
      name = "nursery"
      source = "/dev/video0"
      keyframe-interval = "500ms"

      [[camera]]
      name = 'door'
      source = \"\"\"/dev/video2\"\"\"
      slices = 4
      [camera.controls]
      brightness = -7
      auto_exposure = "Manual Mode"
      """
    ]

  @Test func `Python's tomllib accepts the same documents, with the same values`() throws {
    let mutated = Self.mutations(of: Self.seeds, count: 25_000, seed: 9).compactMap {
      String(validating: $0, as: UTF8.self)
    }
    let documents = Self.seeds + mutated
    var counts = (taken: 0, refused: 0, otherwise: 0)
    for (document, answer) in zip(documents, try judge(documents)) {
      let mistake = TOMLDocument(Array(document.utf8)).mistakes.first
      // A byte order mark is none of TOML 1.0's. TOML wants a number of more bits refused; Python's have no end.
      if document.unicodeScalars.first == "\u{FEFF}" || mistake?.reason.contains("does not fit 64 bits") == true {
        continue
      }
      let reason = mistake?.reason ?? "taken here alone"
      #expect((mistake == nil) == (answer != nil), "\(document.debugDescription): \(reason)")
      do throws(ConfigurationError) {
        let file = try parse(document)
        counts.taken += 1
        let isSame = answer.map { Self.isSame(file, $0) } ?? false
        #expect(isSame, "taken here: \(document.debugDescription), and there: \(String(describing: answer))")
      } catch {
        if mistake == nil { counts.otherwise += 1 } else { counts.refused += 1 }
      }
    }
    // All three are worth something only where they happen.
    #expect(counts.taken > 200 && counts.refused > 500 && counts.otherwise > 500, "\(counts)")
  }

  private static func isSame(_ file: ConfigurationFile, _ values: [String: Any]) -> Bool {
    var values = values
    let tables = ((values.removeValue(forKey: "camera") as? [String: Any])?["list"] as? [[String: Any]]) ?? []
    guard isSame(file.settings, values), tables.count == file.cameras.count else { return false }
    return zip(file.cameras, tables).allSatisfy { isSame($0.settings, $1["table"] as? [String: Any] ?? [:]) }
  }

  private static func isSame(_ settings: OptionLayer, _ values: [String: Any]) -> Bool {
    settings.count == values.count
      && settings.allSatisfy { name, setting in
        guard let value = values[name] as? [String: Any] else { return false }
        switch setting.value {
        case .flag(let isSet): return value["flag"] as? Bool == isSet
        case .text(let text): return value["text"] as? String == text
        case .number(let text):
          guard let other = (value["number"] as? String).flatMap(Double.init), let own = Double(text) else {
            return false
          }
          return own == other || own.isNaN && other.isNaN
        case .list(let texts):
          if let text = value["text"] as? String { return [text] == texts }
          if let entries = value["table"] as? [String: [String: Any]] { return isSame(texts, entries) }
          return (value["list"] as? [[String: Any]])?.map { $0["text"] as? String } == texts
        }
      }
  }

  /// A table's entries as `NAME=VALUE`.
  private static func isSame(_ texts: [String], _ entries: [String: [String: Any]]) -> Bool {
    let others = entries.compactMap { name, value -> String? in
      if let flag = value["flag"] as? Bool { return "\(name)=\(flag)" }
      return ((value["number"] ?? value["text"]) as? String).map { "\(name)=\($0)" }
    }
    return others.count == entries.count && others.sorted() == texts.sorted()
  }

  @Test func `ten thousand malformed files end in one line each`() {
    for bytes in Self.mutations(of: Self.seeds, count: 10_000, seed: 10) {
      do throws(ConfigurationError) {
        let file = try ConfigurationFile(parsing: bytes, path: "f", options: table)
        let merged = try ConfigurationMerge(file: file, environment: [:], given: [], options: table)
        #expect(merged.cameras.count <= ConfigurationLimits.cameras)
      } catch {
        #expect(error.description.hasPrefix("f") && !error.description.contains("\n"), "\(error)")
        #expect(error.kind == .data, "\(error)")
      }
    }
  }
}
