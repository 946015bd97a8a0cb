public import Media

/// Why a text is not taken as a password.
public enum PasswordError: Failure, Hashable {
  /// So many characters.
  case tooShort(Int)
  /// So many bytes.
  case tooLong(Int)
  /// It has a character that no keyboard types.
  case controlCharacter

  /// One line for the person at the terminal; the password is not in it.
  public var description: String {
    switch self {
    case .tooShort(let count):
      "a password of \(count) characters: choose at least \(UsersFile.User.passwordMinimum), "
        + "for whoever overhears one login can try passwords at home"
    case .tooLong(let bytes):
      "a password of \(bytes) bytes: choose one of at most \(UsersFile.User.passwordLimit)"
    case .controlCharacter: "a password with a control character: choose letters, digits and signs"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind { .usage }
}
