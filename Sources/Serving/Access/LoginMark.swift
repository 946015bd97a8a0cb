import Delivery
import TLS

/// The mark of a log-in: another one after each change of the password or token, and of no use to log in.
///
/// The mark by which what a log-in has left behind, and has no connection, is recognized.
package struct LoginMark: Hashable, Sendable {
  /// The mark in 22 characters of Base64 for URLs.
  package let text: String

  /// The bytes of SHA-256 that are kept: who can read them can read the file of the users too.
  private static let byteCount = 16

  private init(of bytes: [UInt8]) {
    text = Base64URL.text(Array(HashFunction.sha256.digest(of: bytes).prefix(Self.byteCount)))
  }

  /// Creates the mark of a user that logs in by a password.
  init(_ user: UsersFile.User) {
    self.init(
      of: DigestAlgorithm.allCases.flatMap { algorithm in
        Array("\(algorithm.rawValue)=".utf8) + (user.hashes[algorithm] ?? []) + [UInt8(ascii: "\n")]
      })
  }

  /// Creates the mark of a token with this hash.
  init(tokenHash: [UInt8]) { self.init(of: Array("token\n".utf8) + tokenHash) }
}
