import Appliance
import Foundation
import Testing

/// A case of toml-test.
struct TOMLCase: CustomTestStringConvertible, @unchecked Sendable {
  let name: String
  let toml: [UInt8]
  /// The values, as toml-test tags them; nil where the text is no TOML. Nothing changes them.
  let values: Any?

  var testDescription: String { name }

  /// The cases whose names begin with `prefix`.
  static func all(_ prefix: String) throws -> [TOMLCase] {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    let lines = try Data(contentsOf: folder.appendingPathComponent("TOMLTest/cases.jsonl")).split(separator: 0x0A)
    return try lines.compactMap { line in
      let parts = try #require(JSONSerialization.jsonObject(with: line) as? [String: Any])
      let name = try #require(parts["name"] as? String)
      let text = (parts["toml"] as? String).map { Array($0.utf8) }
      let toml = try text ?? bytes(#require(parts["hexadecimal"] as? String))
      return name.hasPrefix(prefix) ? TOMLCase(name: name, toml: toml, values: parts["json"]) : nil
    }
  }

  private static func bytes(_ digits: String) -> [UInt8] {
    stride(from: 0, to: digits.utf8.count, by: 2).compactMap { UInt8(digits.dropFirst($0).prefix(2), radix: 16) }
  }
}

/// All cases of toml-test for TOML 1.0.0, and what they do not ask.
@Suite struct TOMLDocumentTests {
  @Test(arguments: try TOMLCase.all("valid/"))
  func `what is TOML has the values that toml-test says`(valid: TOMLCase) throws {
    let document = TOMLDocument(valid.toml)
    #expect(document.mistakes.isEmpty)
    let values = try #require(valid.values)
    #expect(Self.isSame(.table(document.root), values), "\(document.root.entries) instead of \(values)")
  }

  @Test(arguments: try TOMLCase.all("invalid/"))
  func `invalid TOML is refused with its line`(invalid: TOMLCase) throws {
    let mistake = try #require(TOMLDocument(invalid.toml).mistakes.first)
    let lines = invalid.toml.count { $0 == 0x0A } + 1
    #expect((1...lines).contains(mistake.line) && !mistake.reason.isEmpty, "\(mistake)")
  }

  @Test func `no case is missing`() throws {
    #expect(try TOMLCase.all("valid/").count == 210 && TOMLCase.all("invalid/").count == 499)
  }

  private static func isSame(_ value: TOMLValue, _ other: Any) -> Bool {
    switch value {
    case .table(let table):
      guard let other = other as? [String: Any], table.entries.count == other.count else { return false }
      return table.entries.allSatisfy { entry in other[entry.key].map { isSame(entry.value, $0) } ?? false }
    case .tables(let list): return isSame(.array(list.tables.map { .table($0) }), other)
    case .array(let elements):
      guard let other = other as? [Any], elements.count == other.count else { return false }
      return zip(elements, other).allSatisfy { isSame($0, $1) }
    case .string(let text): return tagged("string", other).map { Array($0.utf8) } == Array(text.utf8)
    case .integer(let number): return tagged("integer", other) == "\(number)"
    case .boolean(let isTrue): return tagged("bool", other) == "\(isTrue)"
    case .float(let number):
      guard let other = tagged("float", other).flatMap(Double.init) else { return false }
      return number == other || number.isNaN && other.isNaN
    case .dateTime(let date):
      let type =
        switch date.kind {
        case .offsetDateTime: "datetime"
        case .localDateTime: "datetime-local"
        case .localDate: "date-local"
        case .localTime: "time-local"
        }
      return tagged(type, other).map(plain) == plain(date.text)
    }
  }

  private static func tagged(_ type: String, _ value: Any) -> String? {
    guard let value = value as? [String: String], value["type"] == type else { return nil }
    return value["value"]
  }

  /// A date or time in the one of its spellings that RFC 3339 prefers, without zeros at the end of a fraction.
  private static func plain(_ date: String) -> String {
    date.uppercased().replacing(" ", with: "T").replacing(/\.(\d*?)0*(?=\D|$)/) {
      $0.output.1.isEmpty ? "" : ".\($0.output.1)"
    }
  }

  // MARK: - Lines, mistakes, limits

  @Test func `each key and each header has its line`() {
    let document = TOMLDocument(Array("a = 1\r\nb.c = [\n1,\n]\n\"d\" = '''\n\n'''\n[e]\nf = 1\n[[g.h]]\n".utf8))
    #expect(document.root.entries.map(\.key) == ["a", "b", "d", "e", "g"])
    #expect(document.root.entries.map(\.line) == [1, 2, 5, 8, 10])
    #expect(document.sections.map(\.line) == [8, 10] && document.sections.map(\.isList) == [false, true])
    #expect(document.sections[0].table.entries.map(\.line) == [9])
  }

  @Test func `behind each mistake the next statement is read`() {
    let text = """
      a = [
        1
      b = 2
      c = "x
      'd.e' = 4 5
      \u{0} = 6
      f = 7
      [g
      h = 8 # \u{1}
      i.j = 9
      [k]
      l = '''
      a = 10
      b = { x = 1, x = 2 }
      "m" = 11
      j = [ # ]
        "c = 3",
        oops,
      ]
      n = 12
      n = { }
      =
      """
    let document = TOMLDocument(Array(text.utf8), mistakes: 50)
    #expect(document.mistakes.map(\.line) == [3, 4, 5, 6, 8, 9, 12, 14, 18, 21, 22])
    #expect(document.mistakes.map(\.key) == ["a", "c", "d.e", nil, nil, "h", "l", "b", "j", "n", nil])
    #expect(document.root.entries.map(\.key) == ["b", "f", "k"])
    #expect(document.sections.map(\.path) == [[], ["k"]])
    #expect(document.sections.map { $0.table.entries.map(\.key) } == [["i"], ["a", "m", "n"]])
    #expect(TOMLDocument(Array(text.utf8), mistakes: 2).mistakes == Array(document.mistakes.prefix(2)))
  }

  @Test(arguments: [63, 64, 65])
  func `tables and arrays are nested 64 deep at most`(depth: Int) {
    func text(_ part: String, _ count: Int) -> String { String(repeating: part, count: count) }
    for toml in [
      "a" + text(".a", depth - 1) + " = 1", "[a" + text(".a", depth - 1) + "]",
      "[a]\n[[a.b" + text(".a", depth - 2) + "]]", "a = " + text("[", depth) + text("]", depth),
      "a = " + text("{ a = ", depth - 1) + "1" + text("}", depth - 1),
      "[a.a]\na.a = " + text("{ a.a = ", depth / 2 - 2) + (depth % 2 == 0 ? "1" : "[1]") + text("}", depth / 2 - 2),
    ] {
      #expect(TOMLDocument(Array(toml.utf8)).mistakes.isEmpty == (depth < 65), "\(toml)")
    }
  }

  @Test func `letters that only look the same are different keys`() {
    let document = TOMLDocument(Array("'\u{E9}' = 1\n'e\u{301}' = 2".utf8))
    #expect(document.mistakes.isEmpty && document.root.entries.count == 2)
  }
}
