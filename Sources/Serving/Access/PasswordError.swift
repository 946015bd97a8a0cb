package import Platform

/// The reason why a text is not accepted as a password.
package enum PasswordError: Failure, Hashable {
  /// Too few characters, by their number.
  case tooShort(Int)
  /// Too many bytes, by their number.
  case tooLong(Int)
  /// The password contains a character that no keyboard types.
  case controlCharacter

  /// One line for the user at the terminal; it does not contain the password.
  package var description: String {
    switch self {
    case .tooShort(let count):
      "a password of \(count) characters: choose at least \(UsersFile.User.passwordMinimum), "
        + "because an eavesdropper of one login can try passwords offline"
    case .tooLong(let bytes):
      "a password of \(bytes) bytes: choose one of at most \(UsersFile.User.passwordLimit)"
    case .controlCharacter: "a password with a control character: choose letters, digits and signs"
    }
  }

  /// The failure's kind.
  package var kind: FailureKind { .usage }
}
