/// A value that a setting does not take, or settings that contradict each other.
package struct SettingFault: Error, Hashable {
  /// The setting at fault, by its option's name. Nil where the reason names the settings by itself.
  var subject: String?
  /// The refused value.
  var value: String?
  /// The reason, and the remedy.
  let reason: SettingReason

  /// The names of all options that the fault is about. The place of the first one is the place of the fault.
  package var options: [String] { [subject].compactMap(\.self) + reason.options.filter { $0 != subject } }

  /// The message where all of the options are on the command line, or nowhere.
  var commandLineText: String {
    let text = reason.text { "--\($0)" }
    guard let subject else { return text }
    // A script may pass on what somebody else has written.
    return "--\(subject)\(value.map { " " + OneLine.text($0, limit: 200) } ?? ""): \(text)"
  }

  /// Returns the message behind the place and key of a setting. The options in `given` are on the command line.
  func text(given: Set<String>) -> String {
    (value.map { "'\($0)': " } ?? "") + reason.text { given.contains($0) ? "--\($0)" : $0 }
  }
}

/// A reason that may name options. The place of a fault decides how they are written: `--fps`, or `fps` in a file.
package struct SettingReason: Hashable, Sendable, ExpressibleByStringInterpolation {
  fileprivate enum Part: Hashable, Sendable {
    case text(String)
    case option(String)
  }

  private let parts: [Part]

  /// The text, and between its words `\(.fps)` for an option.
  package struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var parts: [Part] = []

    package init(literalCapacity: Int, interpolationCount: Int) {}

    package mutating func appendLiteral(_ text: String) { parts.append(.text(text)) }
    package mutating func appendInterpolation(_ text: some CustomStringConvertible) { parts.append(.text("\(text)")) }
    mutating func appendInterpolation(_ setting: CameraSetting) { parts.append(.option(setting.rawValue)) }
    mutating func appendInterpolation(_ setting: ApplianceSetting) { parts.append(.option(setting.rawValue)) }
    mutating func appendInterpolation(option name: String) { parts.append(.option(name)) }
  }

  package init(stringLiteral text: String) { parts = [.text(text)] }
  package init(stringInterpolation: StringInterpolation) { parts = stringInterpolation.parts }

  /// The names of the options, in the order of the text.
  var options: [String] {
    parts.compactMap { part in
      if case .option(let name) = part { return name }
      return nil
    }
  }

  /// Returns the text, with options as `written` returns them.
  func text(_ written: (String) -> String) -> String {
    parts.map { part in
      switch part {
      case .text(let text): text
      case .option(let name): written(name)
      }
    }.joined()
  }
}

/// An error of a text that is no value of its kind.
package struct ValueError: Error, CustomStringConvertible {
  /// The remedy: the texts that are values.
  let reason: SettingReason

  init(_ reason: SettingReason) { self.reason = reason }

  package var description: String { reason.text { "--\($0)" } }
}
