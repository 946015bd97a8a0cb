/// What somebody who has logged in may do. Each role may do what the ones before it may.
public enum Role: String, CaseIterable, Comparable, Sendable {
  /// Read figures: status, viewers, settings, metrics and health. No pictures.
  case read
  /// Watch as well: RTSP, pictures and session descriptions.
  case view
  /// Change everything that `nightjar ctl` changes, destinations among it.
  case control

  /// The role of an entry that names none: a user of any file, and a token made before tokens had roles.
  public static let unnamed = Role.view

  private static let field = "role="

  /// The role that a field of a users or tokens file names, as in `role=view`; nil for any other text.
  init?(field text: some StringProtocol) {
    guard text.hasPrefix(Self.field) else { return nil }
    self.init(rawValue: String(text.dropFirst(Self.field.count)))
  }

  /// The field that names it in a file.
  var fieldText: String { Self.field + rawValue }

  /// All of them, for messages.
  public static var choices: String { allCases.map(\.rawValue).joined(separator: ", ") }

  /// By what they allow.
  public static func < (left: Role, right: Role) -> Bool {
    allCases.firstIndex(of: left) ?? 0 < allCases.firstIndex(of: right) ?? 0
  }
}
