/// The value of an `Authorization` header with Digest credentials, RFC 7616 section 3.4: parsed, but not verified.
///
/// The older form of RFC 2069 without `qop` is parsed too. `username*`, `userhash` and `-sess` are refused: the
/// challenge does not offer them.
package struct DigestAuthorization: Hashable, Sendable {
  /// The most bytes of a value.
  package static let sizeLimit = 4096
  /// The most parameters.
  package static let parameterLimit = 24
  /// The most bytes of a parameter's name.
  package static let keyLimit = 32

  /// The parameters that make each request's response different.
  package struct Protection: Hashable, Sendable {
    /// The client's own random text.
    package let clientNonce: [UInt8]
    /// The number of the request with this nonce, from 1.
    package let count: UInt32
    /// The count's eight digits as they were sent; they are hashed.
    package let countText: [UInt8]
  }

  /// The claimed user; nil if the text cannot be a name.
  package let user: UserName?
  /// The realm that the password is for.
  package let realm: [UInt8]
  /// The server's nonce that the client answers.
  package let nonce: [UInt8]
  /// The hashed URI; compare it with the request's.
  package let uri: [UInt8]
  /// Lower-case hexadecimal digits, as many as the algorithm has.
  package let response: [UInt8]
  /// The algorithm; MD5 if the header names none.
  package let algorithm: DigestAlgorithm
  /// The parameters of `qop=auth`; nil for the form of RFC 2069.
  package let protection: Protection?

  /// Parses a header's value, `Digest username="…", …`.
  ///
  /// - Throws: ``DigestAuthorizationError``.
  package init(parsing value: [UInt8]) throws(DigestAuthorizationError) {
    var reader = try DigestParameterReader(value)
    var values: [Key: [UInt8]] = [:]
    while let (name, text) = try reader.next() {
      if name == "username*" { throw .unsupported(name) }
      if name == "userhash", String(decoding: text, as: UTF8.self).lowercased() != "false" { throw .unsupported(name) }
      // Future parameters may appear, and change nothing.
      guard let key = Key(rawValue: name) else { continue }
      values[key] = text
    }
    func required(_ key: Key) throws(DigestAuthorizationError) -> [UInt8] {
      guard let value = values[key] else { throw .missing(key.rawValue) }
      return value
    }
    let name = try required(.username)
    // A text that is no name belongs to no user, and costs the client as much as a wrong password.
    user = try? UserName(String(decoding: name, as: UTF8.self))
    realm = try required(.realm)
    nonce = try required(.nonce)
    uri = try required(.uri)
    guard !uri.isEmpty, uri.allSatisfy({ (0x21...0x7E).contains($0) }) else { throw .value(Key.uri.rawValue) }
    if let name = values[.algorithm] {
      guard let known = DigestAlgorithm(name: String(decoding: name, as: UTF8.self)) else {
        throw .value(Key.algorithm.rawValue)
      }
      algorithm = known
    } else {
      algorithm = .md5
    }
    let digits = try required(.response)
    guard digits.count == algorithm.hexLength, digits.allSatisfy(Hexadecimal.isDigit) else {
      throw .value(Key.response.rawValue)
    }
    response = digits.map(Hexadecimal.lowercased)
    guard let quality = values[.qop] else {
      // Without qop neither is hashed, so neither can be trusted.
      for key in [Key.nc, .cnonce] where values[key] != nil { throw .missing(Key.qop.rawValue) }
      protection = nil
      return
    }
    guard String(decoding: quality, as: UTF8.self).lowercased() == "auth" else { throw .value(Key.qop.rawValue) }
    let count = try required(.nc)
    guard count.count == 8, count.allSatisfy(Hexadecimal.isDigit),
      let number = UInt32(String(decoding: count, as: UTF8.self), radix: 16), number > 0
    else { throw .value(Key.nc.rawValue) }
    let clientNonce = try required(.cnonce)
    guard !clientNonce.isEmpty else { throw .value(Key.cnonce.rawValue) }
    protection = Protection(clientNonce: clientNonce, count: number, countText: count)
  }

  private enum Key: String {
    case username, realm, nonce, uri, response, algorithm, qop, nc, cnonce
  }
}

/// A reader of `key=value` pairs: RFC 9110 sections 5.6.1 (lists, which may have empty elements) and 11.2.
struct DigestParameterReader {
  private var rest: ArraySlice<UInt8>
  private let start: Int
  private var names: Set<String> = []

  /// Starts at the first parameter of a `Digest` header.
  ///
  /// - Throws: ``DigestAuthorizationError`` for a value that is too large or of another scheme.
  init(_ value: [UInt8]) throws(DigestAuthorizationError) {
    guard value.count <= DigestAuthorization.sizeLimit else { throw .size(value.count) }
    rest = value[...]
    start = rest.startIndex
    skipSpace()
    let scheme = token(limit: DigestAuthorization.keyLimit)
    guard String(decoding: scheme, as: UTF8.self).lowercased() == "digest", let next = rest.first, Self.isSpace(next)
    else { throw .scheme }
  }

  /// Returns the next parameter, its name in lower case and its value without quotes and escapes; nil at the end.
  ///
  /// - Throws: ``DigestAuthorizationError`` for a parameter that cannot be parsed.
  mutating func next() throws(DigestAuthorizationError) -> (name: String, value: [UInt8])? {
    while let byte = rest.first, Self.isSpace(byte) || byte == UInt8(ascii: ",") { rest.removeFirst() }
    guard !rest.isEmpty else { return nil }
    let nameBytes = token(limit: DigestAuthorization.keyLimit)
    guard !nameBytes.isEmpty else { throw syntaxError }
    let name = String(decoding: nameBytes, as: UTF8.self).lowercased()
    skipSpace()
    guard rest.first == UInt8(ascii: "=") else { throw syntaxError }
    rest.removeFirst()
    skipSpace()
    let value: [UInt8]
    if rest.first == UInt8(ascii: "\"") {
      value = try quoted()
    } else {
      value = Array(token(limit: DigestAuthorization.sizeLimit))
      guard !value.isEmpty else { throw syntaxError }
    }
    skipSpace()
    guard rest.isEmpty || rest.first == UInt8(ascii: ",") else { throw syntaxError }
    guard names.insert(name).inserted else { throw .repeated(name) }
    guard names.count <= DigestAuthorization.parameterLimit else { throw .parameters }
    return (name, value)
  }

  private var syntaxError: DigestAuthorizationError { .syntax(offset: rest.startIndex - start) }

  private mutating func quoted() throws(DigestAuthorizationError) -> [UInt8] {
    let opening = syntaxError
    rest.removeFirst()
    var value: [UInt8] = []
    while var byte = rest.popFirst() {
      if byte == UInt8(ascii: "\"") { return value }
      if byte == UInt8(ascii: "\\") {
        guard let escaped = rest.popFirst() else { throw opening }
        byte = escaped
      }
      guard byte >= 0x20, byte != 0x7F else { throw .syntax(offset: rest.startIndex - start - 1) }
      value.append(byte)
    }
    throw opening
  }

  private mutating func token(limit: Int) -> ArraySlice<UInt8> {
    let token = rest.prefix(limit).prefix(while: Self.isTokenCharacter)
    rest = rest[token.endIndex...]
    return token
  }

  private mutating func skipSpace() {
    while let byte = rest.first, Self.isSpace(byte) { rest.removeFirst() }
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  /// Returns `true` for a character of a token, RFC 9110 section 5.6.2.
  private static func isTokenCharacter(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "A")...UInt8(ascii: "Z"):
      true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }
}
