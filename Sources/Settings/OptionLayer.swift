/// What one place says of the options: by their names.
public typealias OptionLayer = [String: OptionSetting]

/// What is said of an option, and where.
public struct OptionSetting: Hashable, Sendable {
  /// What is said.
  public enum Value: Hashable, Sendable {
    /// That it is there, or that it is not.
    case flag(Bool)
    /// A text.
    case text(String)
    /// A number, as it is written on the command line.
    case number(String)
    /// Texts.
    case list([String])
  }

  /// Where it is said.
  public enum Origin: Hashable, Sendable {
    /// In a file, at a line that counts from 1.
    case file(String, line: Int)
    /// In the environment: the variable's name.
    case environment(String)
  }

  /// Of which option.
  public let option: ConfigurationOption
  /// What is said.
  public let value: Value
  /// Where it is said.
  public let origin: Origin

  /// A setting.
  public init(_ option: ConfigurationOption, _ value: Value, _ origin: Origin) {
    self.option = option
    self.value = value
    self.origin = origin
  }

  /// The words of the command line that say the same. Values are joined to their options by `=`, so that none is taken for
  /// an option.
  public var words: [String] {
    switch value {
    case .flag(true): ["--\(option.name)"]
    case .flag(false): option.kind == .invertibleFlag ? ["--no-\(option.name)"] : []
    case .text(let text), .number(let text): ["--\(option.name)=\(text)"]
    case .list(let texts): texts.map { "--\(option.name)=\($0)" }
    }
  }

  /// The text that is said; nil where it is none.
  public var text: String? {
    if case .text(let text) = value { return text }
    return nil
  }

  /// The line of a file that says the same.
  public var line: String {
    switch value {
    case .flag(let isSet): "\(option.name) = \(isSet)"
    case .text(let text): "\(option.name) = \(Self.quoted(text))"
    case .number(let text): "\(option.name) = \(text)"
    case .list(let texts): "\(option.name) = [\(texts.map(Self.quoted).joined(separator: ", "))]"
    }
  }

  /// A basic string of TOML 1.0. There are no control characters in settings.
  private static func quoted(_ text: String) -> String {
    // By scalars: a quotation mark with an accent on it is another character, and ends a string all the same.
    "\"" + text.unicodeScalars.map { $0 == "\"" || $0 == "\\" ? "\\\($0)" : String($0) }.joined() + "\""
  }
}

extension OptionSetting.Origin: CustomStringConvertible {
  /// `FILE:LINE`, or the variable's name.
  public var description: String {
    switch self {
    case .file(let path, let line): "\(path):\(line)"
    case .environment(let variable): variable
    }
  }
}
