import TLS

/// A server's challenge to authenticate by Digest, RFC 7616, and the answer to it.
///
/// Basic is not answered: it would show the password to the server and, without TLS, to everybody on the way.
package struct DigestChallenge: Equatable {
  /// The hash functions, the better one first.
  enum Algorithm: String, CaseIterable {
    case sha256 = "SHA-256"
    case md5 = "MD5"

    fileprivate var function: HashFunction { self == .sha256 ? .sha256 : .md5 }
  }

  /// The hash function that the server names; MD5 where it names none.
  let algorithm: Algorithm
  /// The protection space.
  let realm: String
  /// The server's number.
  let nonce: String
  /// The text that is sent back unchanged; nil if there is none.
  let opaque: String?
  /// `true` if the server takes `qop=auth`.
  let hasQuality: Bool
  /// `true` if only the nonce was too old: the password is right.
  let isStale: Bool

  /// The limit of a value in bytes.
  private static let valueLimit = 1024

  /// Chooses the best of a response's challenges; nil where none is Digest with a known algorithm.
  package init?(choosingFrom fields: [String]) {
    let challenges = fields.compactMap { Self($0) }
    guard let best = Algorithm.allCases.lazy.compactMap({ one in challenges.first { $0.algorithm == one } }).first
    else {
      return nil
    }
    self = best
  }

  /// Parses the value of one `WWW-Authenticate`.
  private init?(_ field: String) {
    guard field.utf8.count <= 4 * Self.valueLimit, field.lowercased().hasPrefix("digest ") else { return nil }
    let values = Self.parameters(field.dropFirst(7))
    let name = values["algorithm"] ?? Algorithm.md5.rawValue
    guard let algorithm = Algorithm.allCases.first(where: { $0.rawValue == name.uppercased() }),
      let realm = values["realm"], let nonce = values["nonce"],
      [realm, nonce, values["opaque"] ?? ""].allSatisfy({ value in
        value.utf8.count <= Self.valueLimit && value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x22 && $0 != 0x5c }
      })
    else { return nil }
    (self.algorithm, self.realm, self.nonce) = (algorithm, realm, nonce)
    opaque = values["opaque"]
    let qualities = values["qop"]?.split { $0 == "," || $0 == " " }
    hasQuality = qualities?.contains { $0.lowercased() == "auth" } ?? false
    if qualities != nil, !hasQuality { return nil }
    isStale = values["stale"]?.lowercased() == "true"
  }

  /// Parses `name=value` and `name="value"` with commas between them; names in lower case.
  private static func parameters(_ text: Substring) -> [String: String] {
    var values: [String: String] = [:]
    var rest = Array(text.utf8)[...]
    func skip(_ characters: [UInt8]) { while let first = rest.first, characters.contains(first) { rest.removeFirst() } }
    func take(until end: (UInt8) -> Bool) -> String {
      let part = rest.prefix { !end($0) }
      rest = rest.dropFirst(part.count)
      return String(decoding: part, as: UTF8.self)
    }
    while true {
      skip([0x20, 0x09, 0x2c])
      let name = take { $0 == 0x3d || $0 == 0x2c }
      guard !name.isEmpty else { return values }
      guard rest.first == 0x3d else { continue }
      rest.removeFirst()
      skip([0x20, 0x09])
      var value: String
      if rest.first == 0x22 {
        rest.removeFirst()
        value = take { $0 == 0x22 }
        rest = rest.dropFirst()
      } else {
        value = Text.trimmed(take { $0 == 0x2c })
      }
      let key = Text.trimmed(name).lowercased()
      if values[key] == nil { values[key] = value }
    }
  }

  /// Returns the value of `Authorization` for a request.
  ///
  /// - Parameters:
  ///   - count: The number of requests with this nonce, from 1 on.
  ///   - clientNonce: A number of the client's own.
  package func authorization(
    user: String, password: String, method: String, uri: String, count: UInt32, clientNonce: String
  ) -> String {
    func hash(_ text: String) -> String { Self.hexadecimal(algorithm.function.digest(of: text.utf8)) }
    let secret = hash("\(user):\(realm):\(password)")
    let request = hash("\(method):\(uri)")
    let digits = String(count, radix: 16)
    let number = String(repeating: "0", count: 8 - digits.count) + digits
    let middle = hasQuality ? "\(number):\(clientNonce):auth:" : ""
    let response = hash("\(secret):\(nonce):\(middle)\(request)")
    let name = String(decoding: user.utf8.flatMap { $0 == 0x22 || $0 == 0x5c ? [0x5c, $0] : [$0] }, as: UTF8.self)
    var text = "Digest username=\"\(name)\", realm=\"\(realm)\", nonce=\"\(nonce)\", uri=\"\(uri)\""
    text += ", response=\"\(response)\", algorithm=\(algorithm.rawValue)"
    if let opaque { text += ", opaque=\"\(opaque)\"" }
    if hasQuality { text += ", qop=auth, nc=\(number), cnonce=\"\(clientNonce)\"" }
    return text
  }

  private static func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }
}
