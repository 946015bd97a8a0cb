import Platform

/// A configuration file's content: TOML, with a key for each option.
package struct ConfigurationFile: Sendable {
  /// A `[[camera]]` table.
  package struct Camera: Sendable {
    /// The line of the table's header.
    package let line: Int
    /// The camera's options.
    package internal(set) var settings: OptionLayer
  }

  /// The file's path, as the user gave it.
  package let path: String
  /// The options above the cameras: those of the appliance, and the cameras' defaults.
  package let settings: OptionLayer
  /// The cameras; may be empty.
  package let cameras: [Camera]

  /// Parses the text of a file.
  ///
  /// - Parameters:
  ///   - bytes: UTF-8, at most ``ConfigurationLimits/fileSize``.
  ///   - path: the file's name in messages.
  /// - Throws: ``ConfigurationError`` with the line: the first mistake.
  package init(parsing bytes: [UInt8], path: String, options: OptionTable) throws(ConfigurationError) {
    var faults = ConfigurationFaults()
    self.init(parsing: bytes, path: path, options: options, faults: &faults)
    if let first = faults.errors.first { throw first }
  }

  /// Parses as much of a file's text as can be understood, and collects its mistakes.
  ///
  /// - Parameters:
  ///   - bytes: UTF-8, at most ``ConfigurationLimits/fileSize``.
  ///   - path: the file's name in messages.
  package init(parsing bytes: [UInt8], path: String, options: OptionTable, faults: inout ConfigurationFaults) {
    self.path = path
    guard bytes.count <= ConfigurationLimits.fileSize else {
      faults.add(
        ConfigurationError(
          at: path, ConfigurationLimits.fileIsTooLarge))
      (settings, cameras) = ([:], [])
      return
    }
    var reader = ConfigurationReader(path: path, options: options, faults: faults)
    reader.read(TOMLDocument(bytes, mistakes: faults.limit))
    (settings, cameras) = (reader.settings, reader.cameras)
    faults = reader.faults
  }
}

enum SettingText {
  /// Returns the reason why `text` cannot be the value of any option; nil where it can.
  static func fault(in text: String) -> String? {
    guard text.utf8.count <= ConfigurationLimits.valueSize else {
      return "a text has \(ConfigurationLimits.valueSize) bytes at most"
    }
    if text.utf8.contains(0) { return "a text has no NUL in it" }
    let isControl = text.unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }
    return isControl ? "a text has no line ends, tabs or other control characters" : nil
  }
}
