import Platform

/// A reader of the options in a document, which rejects everything else.
struct ConfigurationReader {
  let path: String
  let options: OptionTable
  /// The mistakes so far.
  var faults: ConfigurationFaults
  /// The options above the cameras.
  private(set) var settings: OptionLayer = [:]
  /// The cameras so far.
  private(set) var cameras: [ConfigurationFile.Camera] = []

  /// Creates a reader of the file at `path`.
  init(path: String, options: OptionTable, faults: ConfigurationFaults) {
    (self.path, self.options, self.faults) = (path, options, faults)
  }

  /// Reads all options of a document.
  mutating func read(_ document: TOMLDocument) {
    for mistake in document.mistakes {
      faults.add(refusal(at: mistake.line, nil, mistake.reason), lost: Set([mistake.key].compactMap(\.self)))
    }
    settings = layer(of: document.root, isCamera: false)
    for section in document.sections where !faults.isFull {
      do throws(ConfigurationError) {
        if section.path.isEmpty { lose(section.table) } else { try read(section) }
      } catch {
        faults.add(error)
        lose(section.table)
      }
    }
    faults.sort()
  }

  private mutating func lose(_ table: TOMLTable) {
    faults.lose(Set(table.entries.map(\.key)))
    faults.loseTables()
  }

  // MARK: - Tables

  /// Reads `[[camera]]`, or the table of an option: `[night.controls]`, `[camera.night.controls]`.
  private mutating func read(_ section: TOMLDocument.Section) throws(ConfigurationError) {
    let limit = ConfigurationLimits.cameras
    if section.isList, section.path == ["camera"] {
      guard cameras.count < limit else {
        throw refusal(at: section.line, nil, "there may be \(limit) cameras at most; start another nightjar for more")
      }
      let layer = layer(of: section.table, isCamera: true)
      return cameras.append(ConfigurationFile.Camera(line: section.line, settings: layer))
    }
    let isCamera = section.path[0] == "camera"
    let name = section.path.dropFirst(isCamera ? 1 : 0).joined(separator: "-")
    guard let option = options[name], option.kind == .table, !section.isList else {
      if section.path == ["camera"] { throw refusal(at: section.line, nil, "write [[camera]]: there may be several") }
      let others = options.tables.map { "[\($0.split(separator: "-").joined(separator: "."))]" }.joined(separator: ", ")
      throw refusal(
        at: section.line, "[\(OneLine.text(section.path[0], limit: 64))]",
        "the only tables are [[camera]], one for each camera\(others.isEmpty ? "" : ", and \(others)")")
    }
    guard !isCamera || !cameras.isEmpty else {
      let shown = "[\(section.path.joined(separator: "."))]"
      throw refusal(at: section.line, shown, "write its [[camera]] above it")
    }
    do throws(ConfigurationError) {
      guard (isCamera ? cameras[cameras.count - 1].settings : settings)[name] == nil else {
        throw refusal(at: section.line, name, "it is in this file twice: remove one")
      }
      let texts = try texts(of: section.table, option, at: section.line)
      let setting = OptionSetting(option, .list(texts), .file(path, line: section.line))
      if isCamera { cameras[cameras.count - 1].settings[name] = setting } else { settings[name] = setting }
    } catch {
      faults.add(error, lost: [name])
    }
  }

  /// Returns an option's table as texts `NAME=VALUE`.
  private func texts(
    of table: TOMLTable, _ option: ConfigurationOption, at line: Int
  ) throws(ConfigurationError) -> [String] {
    let entries = table.entries.filter { !$0.value.isOfHeader }
    guard entries.count <= ConfigurationLimits.listCount else {
      throw refusal(at: line, option.name, "a table has \(ConfigurationLimits.listCount) entries at most")
    }
    var texts: [String] = []
    for entry in entries {
      try check(entry)
      let isName = entry.key.utf8.allSatisfy {
        (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F
      }
      guard isName, (1...64).contains(entry.key.utf8.count) else {
        throw refusal(of: entry, "a name here has small letters, digits and underscores")
      }
      switch entry.value {
      case .integer(let number): texts.append("\(entry.key)=\(number)")
      case .boolean(let isSet): texts.append("\(entry.key)=\(isSet)")
      case .string(let text): texts.append("\(entry.key)=\(try plain(text, of: entry))")
      default: throw refusal(of: entry, "it takes a whole number, true or false, or a text in quotation marks")
      }
    }
    return texts
  }

  /// Reads the options of the document itself, or of a `[[camera]]` table.
  private mutating func layer(of table: TOMLTable, isCamera: Bool) -> OptionLayer {
    var layer: OptionLayer = [:]
    for entry in table.entries where !faults.isFull && !entry.value.isOfHeader {
      do throws(ConfigurationError) {
        try check(entry)
        guard let option = options[entry.key] else { throw unknown(entry) }
        if isCamera, option.scope == .appliance {
          throw refusal(
            of: entry, "this is for all cameras together; write it above the first [[camera]]")
        }
        layer[entry.key] = OptionSetting(option, try value(of: entry, option), .file(path, line: entry.line))
      } catch {
        let option = options[entry.key] ?? options.nearest(to: entry.key)
        faults.add(error, lost: Set([option?.name].compactMap(\.self)))
      }
    }
    return layer
  }

  // MARK: - Values

  private func value(
    of entry: TOMLTable.Entry, _ option: ConfigurationOption
  ) throws(ConfigurationError) -> OptionSetting.Value {
    switch (option.kind, entry.value) {
    case (.flag, .boolean(let isSet)), (.invertibleFlag, .boolean(let isSet)), (.optionalText, .boolean(let isSet)):
      return .flag(isSet)
    case (.integer, .integer(let number)), (.number, .integer(let number)), (.optionalText, .integer(let number)):
      return .number("\(number)")
    case (.number, .float(let number)): return .number("\(number)")
    case (.text, .string(let text)), (.integer, .string(let text)), (.number, .string(let text)),
      (.optionalText, .string(let text)):
      return .text(try plain(text, of: entry))
    case (.list, .string(let text)), (.table, .string(let text)): return .list([try plain(text, of: entry)])
    case (.list, .array(let elements)), (.table, .array(let elements)):
      guard elements.count <= ConfigurationLimits.listCount else {
        throw refusal(of: entry, "a list has \(ConfigurationLimits.listCount) entries at most")
      }
      var texts: [String] = []
      for element in elements {
        guard case .string(let text) = element else {
          throw refusal(of: entry, "the list contains \(element.name); it takes \(option.kind.expectation)")
        }
        texts.append(try plain(text, of: entry))
      }
      return .list(texts)
    default: throw refusal(of: entry, "this is \(entry.value.name); it takes \(option.kind.expectation)")
    }
  }

  private func plain(_ text: String, of entry: TOMLTable.Entry) throws(ConfigurationError) -> String {
    if let fault = SettingText.fault(in: text) { throw refusal(of: entry, fault) }
    return text
  }

  /// Rejects a value that no option can have, whatever its key is.
  private func check(_ entry: TOMLTable.Entry) throws(ConfigurationError) {
    if case .table(let table) = entry.value, table.kind == .dottedKey {
      throw refusal(
        at: entry.line, "\(OneLine.text(entry.key, limit: 64)).…",
        "there are no keys within keys; write one word before the equals sign")
    }
    if let fault = entry.value.fault { throw refusal(of: entry, fault) }
  }

  // MARK: - Mistakes

  private func refusal(at line: Int, _ key: String?, _ reason: String) -> ConfigurationError {
    ConfigurationError(at: "\(path):\(line)", key: key, reason)
  }

  private func refusal(of entry: TOMLTable.Entry, _ reason: String) -> ConfigurationError {
    refusal(at: entry.line, entry.key.isEmpty ? "\"\"" : OneLine.text(entry.key, limit: 64), reason)
  }

  private func unknown(_ entry: TOMLTable.Entry) -> ConfigurationError {
    switch entry.key {
    case "camera": return refusal(of: entry, "write a line [[camera]], and the camera's options below it")
    case "config": return refusal(of: entry, "a file cannot name another; use --config or NIGHTJAR_CONFIG")
    default:
      let nearest = options.nearest(to: entry.key)?.name
      let mend = nearest.map { "the nearest is \($0)" } ?? "nightjar config example lists them"
      return refusal(of: entry, "there is no such option; \(mend)")
    }
  }
}

extension TOMLValue {
  /// `true` for tables that have headers of their own.
  fileprivate var isOfHeader: Bool {
    switch self {
    case .table(let table): table.kind == .header || table.kind == .superTable
    case .tables: true
    default: false
    }
  }

  /// The reason why no option accepts this value; nil where an option may.
  fileprivate var fault: String? {
    switch self {
    case .table: "there are no tables within tables; a camera is a [[camera]]"
    case .dateTime(let date): TOMLDocument.noValue(date.text)
    case .array(let elements):
      elements.lazy.compactMap { element in
        if case .array = element { "there are no lists within lists" } else { element.fault }
      }.first
    default: nil
    }
  }

  fileprivate var name: String {
    switch self {
    case .boolean: "true or false"
    case .integer: "a whole number"
    case .float: "a number with a point"
    case .string: "a text"
    case .array: "a list"
    case .table, .tables: "a table"
    case .dateTime: "a date or time"
    }
  }
}

extension ConfigurationOption.Kind {
  fileprivate var expectation: String {
    switch self {
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
