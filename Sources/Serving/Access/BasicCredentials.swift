import FoundationEssentials
import TLS

/// A name and a password as Basic authentication sends them (RFC 7617): in the clear except for Base64, so only within
/// TLS.
package struct BasicCredentials: Sendable {
  /// The name as the client sent it.
  package let name: String
  /// The password as the client sent it.
  package let password: String

  /// The most characters of Base64: a name and a password of the greatest lengths, with some reserve.
  package static let limit = 1024

  /// Reads the text behind `Basic` in the header.
  ///
  /// Nil if it is no Base64 of UTF-8 text with a colon.
  package init?(encoded: some StringProtocol) {
    guard encoded.utf8.count <= Self.limit, let data = Data(base64Encoded: String(encoded)),
      let text = String(validating: data, as: UTF8.self), let colon = text.firstIndex(of: ":")
    else { return nil }
    name = String(text[..<colon])
    password = String(text[text.index(after: colon)...])
  }
}

extension UsersFile {
  /// Returns the user with this name and password; nil if there is none.
  ///
  /// It takes the same time for names that do not exist, except for a user with another algorithm than the others.
  package func user(_ credentials: BasicCredentials) -> UserName? {
    let user = (try? UserName(credentials.name)).flatMap { self[$0] }
    let algorithm: DigestAlgorithm = user.map { $0.hashes[.sha256] == nil } == true ? .md5 : .sha256
    let hash = DigestHash.hex(algorithm, Array("\(credentials.name):\(Self.realm):\(credentials.password)".utf8))
    let expected = user?.hashes[algorithm]
    // Matches no user: no password has a hash that is not hexadecimal.
    let nobody = [UInt8](repeating: UInt8(ascii: "-"), count: algorithm.hexLength)
    let isRight = Secrets.isEqual(hash, expected ?? nobody)
    return isRight ? user?.name : nil
  }
}
