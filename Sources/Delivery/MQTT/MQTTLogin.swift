import Platform

/// The user at an MQTT broker, and the password.
package struct MQTTLogin: Hashable, Sendable {
  package let user: String
  /// Nil for a user without a password.
  package let password: String?

  /// The largest file in bytes.
  package static let fileLimit = 1024

  /// Creates a login of the text of a file: the user on the first line, and the password on the second. Nil for any other
  /// text.
  package init?(text: String) {
    // A line of Windows ends with one Character, "\r\n".
    let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
    let isText = text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F || $0 == "\n" || $0 == "\r" }
    guard isText, (1...3).contains(lines.count), !lines[0].isEmpty, lines.dropFirst(2).allSatisfy(\.isEmpty) else {
      return nil
    }
    user = String(lines[0])
    password = lines.count > 1 && !lines[1].isEmpty ? String(lines[1]) : nil
  }

  /// Reads the file at `path`, which nobody else may read.
  ///
  /// - Throws: ``SecretFileError``.
  package init(contentsOf path: String) throws(SecretFileError) {
    guard let login = Self(text: try SecretFile.text(of: path, limit: Self.fileLimit)) else {
      throw SecretFileError(
        path: path, cause: .content("write the user on its first line, and the password on its second"))
    }
    self = login
  }
}
