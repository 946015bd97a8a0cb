package import Platform

/// The name of a user.
///
/// Only visible ASCII: players encode other characters in different ways, and Digest would hash each differently. No
/// colon, which ends the name in HA1 (RFC 7616 section 3.4.2); no quote or backslash, which would need escapes in the
/// header.
package struct UserName: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The most characters.
  package static let limit = 64

  /// The name itself; harmless on a terminal and in a log.
  package let description: String

  /// Creates a name.
  ///
  /// - Throws: ``UserNameError``.
  package init(_ text: String) throws(UserNameError) {
    guard !text.isEmpty else { throw .empty }
    guard text.utf8.count <= Self.limit else { throw .tooLong(text.utf8.count) }
    guard text.utf8.first != UInt8(ascii: "#") else { throw .character(UInt8(ascii: "#"), offset: 0) }
    var offset = 0
    for byte in text.utf8 {
      guard Self.isAllowed(byte) else { throw .character(byte, offset: offset) }
      offset += 1
    }
    description = text
  }

  package static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: ":"), UInt8(ascii: "\""), UInt8(ascii: "\\"): false
    case 0x21...0x7E: true
    default: false
    }
  }

  /// Compares two names by ASCII.
  package static func < (left: UserName, right: UserName) -> Bool { left.description < right.description }
}

/// The reason why a text is not a valid user name.
package enum UserNameError: Failure, Hashable {
  /// The text is empty.
  case empty
  /// Too many bytes, by their number.
  case tooLong(Int)
  /// A byte that is not allowed in a name.
  case character(UInt8, offset: Int)

  /// One line for the user at the terminal.
  package var description: String {
    switch self {
    case .empty: "a user's name is empty: give it 1 to \(UserName.limit) characters"
    case .tooLong(let bytes): "a user's name of \(bytes) bytes: at most \(UserName.limit) are possible"
    case .character(let byte, let offset):
      "a user's name with \(Self.name(of: byte)) at byte \(offset): only visible ASCII is possible, without : \" \\, "
        + "and without # in front"
    }
  }

  /// The failure's kind.
  package var kind: FailureKind { .usage }

  private static func name(of byte: UInt8) -> String {
    (0x21...0x7E).contains(byte) ? "'\(Character(Unicode.Scalar(byte)))'" : "byte 0x\(String(byte, radix: 16))"
  }
}
