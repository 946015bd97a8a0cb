import Platform

/// The options from the environment: `NIGHTJAR_BITRATE=2M`, and so on for each option.
package struct EnvironmentSettings: Sendable {
  /// The options.
  package let settings: OptionLayer
  /// A one-line warning for each variable that is probably misspelled.
  package let warnings: [String]

  /// - Parameters:
  ///   - variables: the whole environment; empty variables count as missing.
  ///   - others: variables of the same prefix with another meaning.
  /// - Throws: ``ConfigurationError`` where a flag is neither true nor false, or a value is too long.
  package init(
    _ variables: [String: String], options: OptionTable, others: Set<String> = []
  ) throws(ConfigurationError) {
    var settings: OptionLayer = [:]
    var known = others
    for option in options.options {
      known.insert(option.variable)
      guard let text = variables[option.variable], !text.isEmpty else { continue }
      settings[option.name] = OptionSetting(
        option, try Self.value(text, of: option), .environment(option.variable))
    }
    self.settings = settings
    let prefix = OptionTable.variablePrefix
    warnings = variables.keys.sorted().compactMap { name in
      guard name.hasPrefix(prefix), !known.contains(name) else { return nil }
      // Other variables belong to other programs, so only names close to an option's get a warning.
      guard let nearest = options.nearest(to: String(name.dropFirst(prefix.count))) else { return nil }
      return "\(OneLine.text(name, limit: 80)) is unknown; the nearest is \(nearest.variable)"
    }
  }

  private static func value(
    _ text: String, of option: ConfigurationOption
  ) throws(ConfigurationError) -> OptionSetting.Value {
    if let fault = SettingText.fault(in: text) { throw ConfigurationError(.usage, at: option.variable, fault) }
    switch option.kind {
    case .flag, .invertibleFlag:
      guard let isSet = flag(text) else {
        throw ConfigurationError(.usage, at: option.variable, "'\(OneLine.text(text, limit: 64))': write true or false")
      }
      return .flag(isSet)
    case .optionalText: return flag(text).map(OptionSetting.Value.flag) ?? .text(text)
    case .text, .integer, .number: return .text(text)
    case .list, .table:
      let texts = text.split(separator: " ").map(String.init)
      guard texts.count <= ConfigurationLimits.listCount else {
        throw ConfigurationError(
          .usage, at: option.variable, "a list has \(ConfigurationLimits.listCount) entries at most")
      }
      return .list(texts)
    }
  }

  /// `1` and `0` are no flags, because an option that also takes a port reads them as numbers.
  private static func flag(_ text: String) -> Bool? {
    switch text {
    case "true", "yes", "on": true
    case "false", "no", "off": false
    default: nil
    }
  }
}
