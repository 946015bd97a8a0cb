import FoundationEssentials
import TLS

/// A name and a password as Basic authentication sends them (RFC 7617): in the clear but for Base64, so within TLS alone.
public struct BasicCredentials: Sendable {
  /// As it was sent.
  public let name: String
  /// As it was sent.
  public let password: String

  /// The most characters of Base64: a name and a password of the greatest lengths, and some more.
  public static let limit = 1024

  /// Reads what stands behind `Basic` in the header.
  ///
  /// Nil where it is no Base64 of UTF-8 text with a colon.
  public init?(encoded: some StringProtocol) {
    guard encoded.utf8.count <= Self.limit, let data = Data(base64Encoded: String(encoded)),
      let text = String(validating: data, as: UTF8.self), let colon = text.firstIndex(of: ":")
    else { return nil }
    name = String(text[..<colon])
    password = String(text[text.index(after: colon)...])
  }
}

extension UsersFile {
  /// The user whose name and password these are; nil where there is none.
  ///
  /// It takes the same time for names that are not there, but for one with another algorithm than the others.
  public func user(_ credentials: BasicCredentials) -> UserName? {
    let user = (try? UserName(credentials.name)).flatMap { self[$0] }
    let algorithm: DigestAlgorithm = user.map { $0.hashes[.sha256] == nil } == true ? .md5 : .sha256
    let hash = DigestHash.hex(algorithm, Array("\(credentials.name):\(Self.realm):\(credentials.password)".utf8))
    let expected = user?.hashes[algorithm]
    // Of nobody: no password has a hash that is no hexadecimal.
    let nobody = [UInt8](repeating: UInt8(ascii: "-"), count: algorithm.hexLength)
    let isRight = Secrets.isEqual(hash, expected ?? nobody)
    return isRight ? user?.name : nil
  }
}
