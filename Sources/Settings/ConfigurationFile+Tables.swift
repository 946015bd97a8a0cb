import Media
import TOMLKit

extension ConfigurationFile {
  /// What an option's table says: its keys and values as texts `NAME=VALUE`. Nil where there is no such option.
  ///
  /// - Parameters:
  ///   - keys: those of the table.
  ///   - whole: the document, or its camera.
  /// - Throws: ``ConfigurationError`` with a key's line.
  static func setting(
    of table: TOMLOutline.Table, _ keys: [TOMLOutline.Key], in whole: TOMLTable?, _ options: OptionTable, path: String
  ) throws(ConfigurationError) -> OptionSetting? {
    guard let option = options[table.path.joined(separator: "-")] else { return nil }
    guard keys.count <= ConfigurationLimits.listCount else {
      throw ConfigurationError(
        at: "\(path):\(table.line)", key: option.name, "a table has \(ConfigurationLimits.listCount) entries at most")
    }
    let found = table.path.reduce(whole) { $0?[$1]?.table }
    var texts: [String] = []
    for key in keys {
      let place = "\(path):\(key.line)"
      guard isName(key.name) else {
        throw ConfigurationError(
          at: place, key: OneLine.text(key.name, limit: 64), "a name here has small letters, digits and underscores")
      }
      guard let value = found?[key.name] else {
        throw ConfigurationError(.software, at: place, key: key.name, "the TOML library does not find this key")
      }
      texts.append("\(key.name)=\(try plainText(value, of: key.name, at: place))")
    }
    return OptionSetting(option, .list(texts), .file(path, line: table.line))
  }

  private static func plainText(
    _ value: any TOMLValueConvertible, of key: String, at place: String
  ) throws(ConfigurationError) -> String {
    if value.type == .int, let number = value.int { return "\(number)" }
    if value.type == .bool, let isSet = value.bool { return "\(isSet)" }
    guard value.type == .string, let text = value.string else {
      throw ConfigurationError(
        at: place, key: key, "it takes a whole number, true or false, or a text in quotation marks")
    }
    if let fault = SettingText.fault(in: text) { throw ConfigurationError(at: place, key: key, fault) }
    return text
  }

  private static func isName(_ name: String) -> Bool {
    (1...64).contains(name.utf8.count)
      && name.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F }
  }
}
