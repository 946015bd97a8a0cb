/// The mistakes of a configuration, in the order in which they are found, and what is not known for their sake.
public struct ConfigurationFaults: Sendable {
  /// A line for each.
  public private(set) var errors: [ConfigurationError] = []
  /// Options whose value is wrong or unreadable: what lacks them, or contradicts them, is a consequence and no mistake.
  public private(set) var lost: Set<String> = []
  /// Whether tables are missing, so that cameras cannot be compared.
  public private(set) var lacksTables = false
  /// The most that are looked for.
  private let limit: Int

  /// The most that anybody reads.
  public static let usualLimit = 50

  /// Creates an empty list.
  public init(limit: Int = Self.usualLimit) { self.limit = limit }

  /// Whether no more are looked for.
  public var isFull: Bool { errors.count >= limit }

  /// Notes a mistake, and which options it takes away; one that stands there already is not repeated.
  public mutating func add(_ error: ConfigurationError, lost options: Set<String> = []) {
    if !isFull, !errors.contains(error) { errors.append(error) }
    lose(options)
  }

  /// Notes options whose value is not known.
  public mutating func lose(_ options: Set<String>) { lost.formUnion(options) }

  /// Notes that tables are missing.
  mutating func loseTables() { lacksTables = true }

  /// By lines; what has none comes last.
  public var sorted: [ConfigurationError] {
    errors.enumerated().sorted {
      let (left, right) = ($0.element.line ?? .max, $1.element.line ?? .max)
      return left == right ? $0.offset < $1.offset : left < right
    }.map(\.element)
  }
}

/// The lines of a file that are one statement: a table's header with all below it, or a key with its value.
struct ConfigurationStatements {
  private var lines: [[UInt8]]

  init(_ bytes: [UInt8]) {
    lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map(Array.init)
  }

  /// The text, with as many lines as before.
  var bytes: [UInt8] { Array(lines.joined(separator: [0x0A])) }

  /// Empties the lines of the statement that `line`, from 1, belongs to.
  ///
  /// - Returns: The keys of these lines, and whether a table was among them; nil where nothing was left to empty.
  mutating func remove(at line: Int) -> (keys: Set<String>, isTable: Bool)? {
    guard !lines.isEmpty else { return nil }
    let place = min(max(line, 1), lines.count) - 1
    let start = (0...place).last { Self.begins(lines[$0]) } ?? 0
    let isTable = Self.isHeader(lines[start])
    let rest = lines[(start + 1)...]
    let end = rest.firstIndex { isTable ? Self.isHeader($0) : Self.begins($0) } ?? lines.count
    guard lines[start..<end].contains(where: { !$0.isEmpty }) else { return nil }
    let keys = Set(lines[start..<end].compactMap(Self.key))
    for index in start..<end { lines[index] = [] }
    return (keys, isTable)
  }

  private static func begins(_ line: [UInt8]) -> Bool { isHeader(line) || key(of: line) != nil }

  /// `[[camera]]`, and not the second line of a list, which has a comma or a quotation mark.
  private static func isHeader(_ line: [UInt8]) -> Bool {
    let text = line.drop { $0 == 0x20 || $0 == 0x09 }
    return text.first == UInt8(ascii: "[") && !text.contains(UInt8(ascii: ",")) && !text.contains(UInt8(ascii: "\""))
  }

  /// The bare key before an equals sign; nil where there is none.
  private static func key(of line: [UInt8]) -> String? {
    let text = line.drop { $0 == 0x20 || $0 == 0x09 }
    let name = text.prefix { byte in
      (0x61...0x7A).contains(byte | 0x20) || (0x30...0x39).contains(byte) || byte == 0x2D || byte == 0x5F
    }
    let sign = text.dropFirst(name.count).first { $0 != 0x20 && $0 != 0x09 }
    return !name.isEmpty && sign == UInt8(ascii: "=") ? String(decoding: name, as: UTF8.self) : nil
  }
}
