/// The rights of a user or token. Each role includes the rights of the ones before it.
package enum Role: String, CaseIterable, Comparable, Sendable {
  /// Read statistics: status, viewers, settings, metrics and health. No pictures, no sound.
  case read
  /// Watch and listen as well: RTSP, pictures, MP3 and session descriptions.
  case view
  /// Change everything that `nightjar ctl` changes, including destinations.
  case control

  /// The role of an entry that names none: a user of any file, or a token created before tokens had roles.
  package static let unnamed = Role.view

  private static let field = "role="

  /// The role in a field of a users or tokens file, as in `role=view`; nil for any other text.
  init?(field text: some StringProtocol) {
    guard text.hasPrefix(Self.field) else { return nil }
    self.init(rawValue: String(text.dropFirst(Self.field.count)))
  }

  /// The field with the role in a file.
  var fieldText: String { Self.field + rawValue }

  /// All roles, for messages.
  package static var choices: String { allCases.map(\.rawValue).joined(separator: ", ") }

  /// Compares two roles by their rights.
  package static func < (left: Role, right: Role) -> Bool {
    allCases.firstIndex(of: left) ?? 0 < allCases.firstIndex(of: right) ?? 0
  }
}
