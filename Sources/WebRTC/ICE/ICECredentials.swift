/// A user name fragment and a password, RFC 8445 section 5.3. A peer that knows the password of a session has read the
/// session's offer or answer.
package struct ICECredentials: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  /// The fragment, 4 to 256 characters.
  package let fragment: String
  /// The password, 22 to 256 characters.
  package let password: String

  /// The characters of both, `ice-char` of RFC 8839 section 5.4.
  private static let characters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  static let limit = 256

  /// Creates the credentials of an offer; `nil` for what RFC 8839 section 5.4 does not allow.
  package init?(fragment: String, password: String) {
    guard (4...Self.limit).contains(fragment.utf8.count), (22...Self.limit).contains(password.utf8.count),
      fragment.allSatisfy(Self.characters.contains), password.allSatisfy(Self.characters.contains)
    else { return nil }
    (self.fragment, self.password) = (fragment, password)
  }

  /// Creates new credentials from the system's random numbers: 48 bits that tell sessions apart, and 144 secret ones.
  package init() {
    var generator = SystemRandomNumberGenerator()
    self.init(using: &generator)
  }

  /// Creates new credentials from `generator`.
  package init(using generator: inout some RandomNumberGenerator) {
    func text(_ count: Int) -> String {
      String((0..<count).map { _ in Self.characters[Int.random(in: 0..<64, using: &generator)] })
    }
    (fragment, password) = (text(8), text(24))
  }

  /// The fragment alone.
  package var description: String { fragment }

  /// An empty mirror.
  package var customMirror: Mirror { Mirror(self, children: []) }
}
