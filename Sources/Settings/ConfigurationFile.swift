import Media
import TOMLKit

/// What a configuration file says: TOML, a key for each option.
public struct ConfigurationFile: Sendable {
  /// A `[[camera]]` table.
  public struct Camera: Sendable {
    /// Of its header.
    public let line: Int
    /// What it says.
    public let settings: OptionLayer
  }

  /// As it was named.
  public let path: String
  /// What stands above the cameras: for the box, and for cameras that do not say otherwise.
  public let settings: OptionLayer
  /// The cameras, of which there may be none.
  public let cameras: [Camera]

  /// Reads the text of a file.
  ///
  /// - Parameters:
  ///   - bytes: UTF-8, at most ``ConfigurationLimits/fileSize``.
  ///   - path: what messages call it.
  /// - Throws: ``ConfigurationError`` with the line: the first mistake.
  public init(parsing bytes: [UInt8], path: String, options: OptionTable) throws(ConfigurationError) {
    var faults = ConfigurationFaults(limit: 1)
    self.init(parsing: bytes, path: path, options: options, faults: &faults)
    if let first = faults.errors.first { throw first }
  }

  /// Reads the text of a file as far as it can be understood, and notes its mistakes.
  ///
  /// - Parameters:
  ///   - bytes: UTF-8, at most ``ConfigurationLimits/fileSize``.
  ///   - path: what messages call it.
  public init(parsing bytes: [UInt8], path: String, options: OptionTable, faults: inout ConfigurationFaults) {
    self.path = path
    guard let (outline, document) = Self.parsed(bytes, path: path, options, &faults) else {
      (settings, cameras) = ([:], [])
      return
    }
    // The library never frees a table; without its content it is a few words.
    defer { document.clear() }
    var settings: OptionLayer = [:]
    var cameras = [OptionLayer](repeating: [:], count: outline.cameraLines.count)
    let tables = document["camera"]?.array
    for key in outline.keys where key.table == nil && !faults.isFull {
      let table = key.camera.flatMap { index in
        tables.flatMap { index < $0.count ? $0[index].table : nil }
      }
      do throws(ConfigurationError) {
        let setting = try Self.setting(of: key, in: table ?? document, options, path: path)
        if let camera = key.camera { cameras[camera][key.name] = setting } else { settings[key.name] = setting }
      } catch {
        faults.add(
          error, lost: Set([options[key.name] ?? options.nearest(to: key.name)?.option].compactMap { $0?.name }))
      }
    }
    for (index, table) in outline.tables.enumerated() where !faults.isFull {
      let whole = table.camera.map { index in tables.flatMap { index < $0.count ? $0[index].table : nil } } ?? document
      let keys = outline.keys.filter { $0.table == index }
      let name = table.path.joined(separator: "-")
      do throws(ConfigurationError) {
        guard let setting = try Self.setting(of: table, keys, in: whole, options, path: path) else { continue }
        guard (table.camera.map { cameras[$0] } ?? settings)[name] == nil else {
          throw ConfigurationError(at: "\(path):\(table.line)", key: name, "it stands in this file twice: remove one")
        }
        if let camera = table.camera { cameras[camera][name] = setting } else { settings[name] = setting }
      } catch {
        faults.add(error, lost: [name])
      }
    }
    self.settings = settings
    self.cameras = zip(outline.cameraLines, cameras).map { Camera(line: $0, settings: $1) }
  }

  /// The document without the statements that cannot be read; nil where nothing of it can.
  private static func parsed(
    _ bytes: [UInt8], path: String, _ options: OptionTable, _ faults: inout ConfigurationFaults
  ) -> (TOMLOutline, TOMLTable)? {
    var bytes = bytes
    var statements: ConfigurationStatements?
    while true {
      do throws(ConfigurationError) {
        let text = try text(of: bytes, path: path)
        return (try TOMLOutline(bytes, path: path, tables: options.tables), try document(text, path: path))
      } catch {
        faults.add(error)
        var rest = statements ?? ConfigurationStatements(bytes)
        guard !faults.isFull, let line = error.line, let removed = rest.remove(at: line) else { return nil }
        faults.lose(removed.keys)
        if removed.isTable { faults.loseTables() }
        bytes = rest.bytes
        statements = rest
      }
    }
  }

  private static func text(of bytes: [UInt8], path: String) throws(ConfigurationError) -> String {
    guard bytes.count <= ConfigurationLimits.fileSize else {
      throw ConfigurationError(
        at: path, "it has more than the \(ConfigurationLimits.fileSize) bytes that are read; is it the right file?")
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw ConfigurationError(
        at: "\(path):\(Self.lineThatIsNoText(bytes))", "this is no UTF-8; save the file as UTF-8")
    }
    if let nul = bytes.firstIndex(of: 0) {
      throw ConfigurationError(at: "\(path):\(Self.line(of: nul, in: bytes))", "there is a NUL; is it a text file?")
    }
    return text
  }

  private static func setting(
    of key: TOMLOutline.Key, in table: TOMLTable, _ options: OptionTable, path: String
  ) throws(ConfigurationError) -> OptionSetting {
    let place = "\(path):\(key.line)"
    guard let option = options[key.name] else { throw Self.unknown(key, at: place, options) }
    if key.camera != nil, option.scope == .box {
      throw ConfigurationError(
        at: place, key: key.name, "this is not a camera's but the whole box's; write it above the first [[camera]]")
    }
    guard let value = table[key.name] else {
      throw ConfigurationError(.software, at: place, key: key.name, "the TOML library does not find this key")
    }
    return OptionSetting(option, try Self.value(value, of: option, at: place), .file(path, line: key.line))
  }

  private static func document(_ text: String, path: String) throws(ConfigurationError) -> TOMLTable {
    do {
      return try TOMLTable(string: text)
    } catch let error as TOMLParseError {
      let opening = "Error while parsing "
      let reason =
        error.description.hasPrefix(opening) ? error.description.dropFirst(opening.count) : error.description[...]
      let lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      let line = lines.dropFirst(max(0, Int(error.source.begin.line) - 1)).first
      throw ConfigurationError(at: "\(path):\(error.source.begin.line)", Self.words(for: String(reason), of: line))
    } catch {
      throw ConfigurationError(at: path, "this is no TOML: \(error)")
    }
  }

  /// The commonest mistakes in words of our own; of the others the library's.
  private static func words(for reason: String, of line: Substring.UTF8View?) -> String {
    let isText = line?.allSatisfy { $0 >= 0x20 || $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: "\r") } ?? true
    if isText, reason.contains("string"), reason.contains("control characters") || reason.contains("end-of-file") {
      return "a text ends with a quotation mark, and here is none"
    }
    return "this is no TOML: " + reason.replacing("saw '\\n'", with: "but the line ends")
  }

  private static func unknown(
    _ key: TOMLOutline.Key, at place: String, _ options: OptionTable
  ) -> ConfigurationError {
    let shown = key.name.isEmpty ? "\"\"" : OneLine.text(key.name, limit: 64)
    if key.name == "camera" {
      return ConfigurationError(at: place, key: shown, "write a line [[camera]], and the camera's options below it")
    }
    if key.name == "config" {
      return ConfigurationError(at: place, key: shown, "a file cannot name another; use --config or NIGHTJAR_CONFIG")
    }
    let nearest = options.nearest(to: key.name).map { "; the nearest is \($0.option.name)" } ?? ""
    return ConfigurationError(at: place, key: shown, "there is no such option\(nearest)")
  }

  /// The line that is not UTF-8.
  private static func lineThatIsNoText(_ bytes: [UInt8]) -> Int {
    var number = 0
    for line in bytes.split(separator: 0x0A, omittingEmptySubsequences: false) {
      number += 1
      // A newline is never within a character.
      if String(validating: line, as: UTF8.self) == nil { break }
    }
    return number
  }

  private static func line(of index: Int, in bytes: [UInt8]) -> Int {
    bytes[..<index].reduce(1) { $1 == 0x0A ? $0 + 1 : $0 }
  }
}

// MARK: - Values

extension ConfigurationFile {
  private static func value(
    _ value: any TOMLValueConvertible, of option: ConfigurationOption, at place: String
  ) throws(ConfigurationError) -> OptionSetting.Value {
    switch (option.kind, value.type) {
    case (.flag, .bool), (.invertibleFlag, .bool), (.optionalText, .bool):
      if let isSet = value.bool { return .flag(isSet) }
    case (.integer, .int), (.number, .int), (.optionalText, .int):
      if let number = value.int { return .number("\(number)") }
    case (.number, .double):
      if let number = value.double { return .number("\(number)") }
    case (.text, .string), (.integer, .string), (.number, .string), (.optionalText, .string):
      return .text(try text(value, of: option, at: place))
    case (.list, .string), (.table, .string):
      return .list([try text(value, of: option, at: place)])
    case (.list, .array), (.table, .array):
      if let array = value.array { return .list(try texts(array, of: option, at: place)) }
    default: break
    }
    throw ConfigurationError(
      at: place, key: option.name, "this is \(Self.name(of: value.type)); it takes \(Self.expectation(of: option))")
  }

  private static func text(
    _ value: any TOMLValueConvertible, of option: ConfigurationOption, at place: String
  ) throws(ConfigurationError) -> String {
    guard let text = value.string else {
      throw ConfigurationError(at: place, key: option.name, "it takes \(expectation(of: option))")
    }
    if let fault = SettingText.fault(in: text) { throw ConfigurationError(at: place, key: option.name, fault) }
    return text
  }

  private static func texts(
    _ array: TOMLArray, of option: ConfigurationOption, at place: String
  ) throws(ConfigurationError) -> [String] {
    guard array.count <= ConfigurationLimits.listCount else {
      throw ConfigurationError(
        at: place, key: option.name, "a list has \(ConfigurationLimits.listCount) entries at most")
    }
    var texts: [String] = []
    for element in array {
      guard element.type == .string else {
        throw ConfigurationError(
          at: place, key: option.name,
          "there is \(name(of: element.type)) in the list; it takes \(expectation(of: option))")
      }
      texts.append(try text(element, of: option, at: place))
    }
    return texts
  }

  private static func name(of type: TOMLType) -> String {
    switch type {
    case .bool: "true or false"
    case .int: "a whole number"
    case .double: "a number with a point"
    case .string: "a text"
    case .array: "a list"
    case .table: "a table"
    case .date, .time, .dateTime: "a date or time"
    }
  }

  private static func expectation(of option: ConfigurationOption) -> String {
    switch option.kind {
    case .flag, .invertibleFlag: "true or false, without quotation marks"
    case .text: "a text, in quotation marks"
    case .integer: "a whole number, or a text in quotation marks"
    case .number: "a number, or a text in quotation marks"
    case .table: "a table, or texts in quotation marks, as in [\"NAME=VALUE\", …]"
    case .list: "texts in quotation marks, as in [\"…\", \"…\"]"
    case .optionalText: "true, false, or a text in quotation marks"
    }
  }
}

enum SettingText {
  /// Why `text` cannot be an option's value, whatever option it is; nil where it can.
  static func fault(in text: String) -> String? {
    guard text.utf8.count <= ConfigurationLimits.valueSize else {
      return "a text has \(ConfigurationLimits.valueSize) bytes at most"
    }
    let isControl = text.unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }
    return isControl ? "a text has no line ends, tabs or other control characters" : nil
  }
}
