import TLS

/// The hashes of Digest access authentication, RFC 7616 section 3.4.
package enum DigestHash {
  /// Returns H(data) in hexadecimal: RFC 7616 calls it LHEX.
  package static func hex(_ algorithm: DigestAlgorithm, _ data: [UInt8]) -> [UInt8] {
    let function: HashFunction =
      switch algorithm {
      case .sha256: .sha256
      case .md5: .md5
      }
    return Hexadecimal.text(function.digest(of: data))
  }

  /// Returns the response that the password of HA1 gives, section 3.4.1; without `qop` that of RFC 2069.
  package static func response(
    _ authorization: DigestAuthorization, hash: [UInt8], method: String
  ) -> [UInt8] {
    let colon = [UInt8(ascii: ":")]
    let algorithm = authorization.algorithm
    let request = hex(algorithm, Array(method.utf8) + colon + authorization.uri)
    var text = hash + colon + authorization.nonce + colon
    if let protection = authorization.protection {
      text += protection.countText + colon + protection.clientNonce + Array(":auth:".utf8)
    }
    return hex(algorithm, text + request)
  }
}

extension UsersFile.User {
  /// The fewest characters of a password. A shorter one can be guessed from one login that was overheard.
  package static let passwordMinimum = 8
  /// The most bytes of a password.
  package static let passwordLimit = 256

  /// Creates a user with this password, with both algorithms.
  ///
  /// - Throws: ``PasswordError``.
  package init(name: UserName, password: String) throws(PasswordError) {
    guard password.utf8.count <= Self.passwordLimit else { throw .tooLong(password.utf8.count) }
    guard !password.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
      throw .controlCharacter
    }
    guard password.count >= Self.passwordMinimum else { throw .tooShort(password.count) }
    let text = Array("\(name):\(UsersFile.realm):\(password)".utf8)
    var hashes: [DigestAlgorithm: [UInt8]] = [:]
    for algorithm in DigestAlgorithm.allCases { hashes[algorithm] = DigestHash.hex(algorithm, text) }
    self.init(checked: name, hashes: hashes)
  }
}
