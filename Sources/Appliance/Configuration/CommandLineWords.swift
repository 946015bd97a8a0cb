/// The words of a command line of `nightjar stream`, whose syntax is known to be right.
package struct CommandLineWords: Sendable {
  /// The values of the options.
  package let layer: OptionLayer
  /// The names of the given options.
  package let given: Set<String>
  /// The value of `--config`; the last one where it is repeated.
  package let configuration: String?

  /// - Parameter words: the words after the program and the command.
  package init(_ words: [String], options: OptionTable = .commandLine) {
    var layer: OptionLayer = [:]
    var given: Set<String> = []
    var configuration: String?
    for (index, word) in words.enumerated() {
      if word == "--" { break }
      guard word.hasPrefix("--") else { continue }
      let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = String(parts[0])
      let next = words[(index + 1)...].first.flatMap { Self.isValue($0) ? $0 : nil }
      let text = parts.count > 1 ? String(parts[1]) : next
      if name == "config" { configuration = text ?? configuration }
      let opposite = options[name] == nil && name.hasPrefix("no-") ? options[String(name.dropFirst(3))] : nil
      if let opposite, opposite.kind == .invertibleFlag {
        given.insert(opposite.name)
        layer[opposite.name] = OptionSetting(opposite, .flag(false), .commandLine)
        continue
      }
      given.insert(name)
      guard let option = options[name] else { continue }
      layer[name] = OptionSetting(option, Self.value(text, of: option, after: layer[name]?.value), .commandLine)
    }
    (self.layer, self.given, self.configuration) = (layer, given, configuration)
  }

  /// Returns `true` for a word that can be a value: one without a dash, the dash alone, and a negative number. For options
  /// that take no negative number, ArgumentParser has refused the command line before.
  private static func isValue(_ word: String) -> Bool {
    guard word.hasPrefix("-"), word != "-" else { return true }
    return word.dropFirst().first.map { "0123456789.".contains($0) } ?? false
  }

  private static func value(
    _ text: String?, of option: ConfigurationOption, after former: OptionSetting.Value?
  ) -> OptionSetting.Value {
    switch option.kind {
    case .flag, .invertibleFlag: return .flag(true)
    case .optionalText: return text.map(OptionSetting.Value.text) ?? .flag(true)
    case .text, .integer, .number: return .text(text ?? "")
    case .list, .table:
      if case .list(let texts) = former { return .list(texts + [text ?? ""]) }
      return .list([text ?? ""])
    }
  }
}
