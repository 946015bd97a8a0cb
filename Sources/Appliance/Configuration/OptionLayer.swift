/// The options from one place, by name.
package typealias OptionLayer = [String: OptionSetting]

/// An option's value and its origin.
package struct OptionSetting: Hashable, Sendable {
  /// The value of an option.
  package enum Value: Hashable, Sendable {
    /// The option's presence or absence.
    case flag(Bool)
    /// A text.
    case text(String)
    /// A number, in the form of the command line.
    case number(String)
    /// Texts.
    case list([String])
  }

  /// The origin of a setting.
  package enum Origin: Hashable, Sendable {
    /// A file, at a line that counts from 1.
    case file(String, line: Int)
    /// An environment variable, by name.
    case environment(String)
    /// The command line.
    case commandLine
  }

  /// The option.
  package let option: ConfigurationOption
  /// The value.
  package let value: Value
  /// The origin.
  package let origin: Origin

  /// Creates a setting.
  package init(_ option: ConfigurationOption, _ value: Value, _ origin: Origin) {
    self.option = option
    self.value = value
    self.origin = origin
  }

  /// The equivalent words of the command line. An `=` joins a value to its option, so that no value is taken for an
  /// option.
  package var words: [String] {
    switch value {
    case .flag(true): ["--\(option.name)"]
    case .flag(false): option.kind == .invertibleFlag ? ["--no-\(option.name)"] : []
    case .text(let text), .number(let text): ["--\(option.name)=\(text)"]
    case .list(let texts): texts.map { "--\(option.name)=\($0)" }
    }
  }

  /// The text value; nil for another kind of value.
  package var text: String? {
    if case .text(let text) = value { return text }
    return nil
  }

  /// The equivalent line of a file.
  package var line: String {
    switch value {
    case .flag(let isSet): "\(option.name) = \(isSet)"
    case .text(let text): "\(option.name) = \(Self.quoted(text))"
    case .number(let text): "\(option.name) = \(text)"
    case .list(let texts): "\(option.name) = [\(texts.map(Self.quoted).joined(separator: ", "))]"
    }
  }

  /// Returns a basic string of TOML 1.0. Settings contain no control characters.
  private static func quoted(_ text: String) -> String {
    // Escapes by scalars: a quotation mark with a combining accent is another character, but it still ends a string.
    "\"" + text.unicodeScalars.map { $0 == "\"" || $0 == "\\" ? "\\\($0)" : String($0) }.joined() + "\""
  }
}

extension OptionSetting.Origin: CustomStringConvertible {
  /// The origin as text: `FILE:LINE`, the variable's name, or `the command line`.
  package var description: String {
    switch self {
    case .file(let path, let line): "\(path):\(line)"
    case .environment(let variable): variable
    case .commandLine: "the command line"
    }
  }
}
