import TLS

/// The programs that may use the control API, as stored in a file: one token a line,
/// `name:token-sha256=HASH:role=ROLE`. Empty lines, and comments that begin with `#`, keep their place.
///
/// The hash is SHA-256 of the token's characters, in hexadecimal. A token is random and long, so a reader of the file
/// can neither find it nor log in. Lines without a role were written before there were roles, when a token could do
/// everything. They count as ``Role/view``, and ``namesWithoutRole`` lists them, so that their owner can decide.
package struct TokensFile: Sendable {
  /// The random bytes of a token.
  package static let tokenBytes = 32
  /// The most bytes of a file.
  package static let sizeLimit = 1 << 20
  /// The most tokens.
  package static let tokenLimit = 1000

  private static let field = "token-sha256="
  private var lines: [(text: String, name: UserName?)] = []
  private var hashes: [UserName: [UInt8]] = [:]
  private var roles: [UserName: Role] = [:]

  /// Creates a file without tokens.
  package init() {}

  /// Reads a file's content.
  ///
  /// - Throws: ``TokensFileSyntaxError``, with the line.
  package init(parsing bytes: [UInt8]) throws(TokensFileSyntaxError) {
    guard bytes.count <= Self.sizeLimit else { throw TokensFileSyntaxError(line: 0, reason: .size) }
    var texts = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    if texts.last?.isEmpty == true { texts.removeLast() }
    for (index, bytes) in texts.enumerated() {
      do throws(TokensFileSyntaxError.Reason) {
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .text }
        let trimmed = text.prefix(while: { $0 != "\r" })
        guard !trimmed.allSatisfy(\.isWhitespace), !trimmed.hasPrefix("#") else {
          lines.append((text, nil))
          continue
        }
        let parts = trimmed.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        let name: UserName
        do throws(UserNameError) { name = try UserName(String(parts[0])) } catch { throw .name(error) }
        guard parts.count > 1, parts[1].hasPrefix(Self.field),
          let hash = Hexadecimal.bytes(parts[1].dropFirst(Self.field.count).utf8),
          hash.count == HashFunction.sha256.byteCount
        else { throw .hash(name) }
        guard hashes.updateValue(hash, forKey: name) == nil else { throw .repeated(name) }
        guard hashes.count <= Self.tokenLimit else { throw .count }
        if parts.count > 2 {
          guard let role = Role(field: parts[2]) else { throw .role(name) }
          roles[name] = role
        }
        lines.append((text, name))
      } catch {
        throw TokensFileSyntaxError(line: index + 1, reason: error)
      }
    }
  }

  /// The names, in the file's order.
  package var names: [UserName] { lines.compactMap(\.name) }

  /// The names of tokens whose lines name no role.
  package var namesWithoutRole: [UserName] { names.filter { roles[$0] == nil } }

  /// Returns the role of the token of this name; nil if there is none.
  package func role(of name: UserName) -> Role? { hashes[name] == nil ? nil : roles[name] ?? .unnamed }

  /// A token as the file has it.
  package struct Token {
    package let name: UserName
    package let role: Role
    /// SHA-256 of the token.
    let hash: [UInt8]
  }

  /// The token of this name; nil if there is none.
  package subscript(name: UserName) -> Token? {
    hashes[name].map { Token(name: name, role: roles[name] ?? .unnamed, hash: $0) }
  }

  /// Sets the role of the token of this name; returns `false` if there is none.
  @discardableResult
  package mutating func setRole(_ role: Role, of name: UserName) -> Bool {
    guard let hash = hashes[name] else { return false }
    store(hash, role, for: name)
    return true
  }

  private mutating func store(_ hash: [UInt8], _ role: Role, for name: UserName) {
    let digits = String(decoding: Hexadecimal.text(hash), as: UTF8.self)
    let line = "\(name):\(Self.field)\(digits):\(role.fieldText)"
    if let index = lines.firstIndex(where: { $0.name == name }) {
      lines[index].text = line
    } else {
      lines.append((line, name))
    }
    (hashes[name], roles[name]) = (hash, role)
  }

  /// Creates a token for `name`, in place of an existing one. It is 43 characters of Base64 for URLs (RFC 4648 section
  /// 5), and exists only in the result.
  ///
  /// - Throws: ``TokensFileSyntaxError`` if there are too many.
  package mutating func make(for name: UserName, role: Role) throws(TokensFileSyntaxError) -> String {
    guard hashes[name] != nil || hashes.count < Self.tokenLimit else {
      throw TokensFileSyntaxError(line: 0, reason: .count)
    }
    let token = Secrets.randomText(Self.tokenBytes)
    store(Self.hash(of: token), role, for: name)
    return token
  }

  /// Removes a token; returns `false` if there is none of that name.
  @discardableResult
  package mutating func remove(_ name: UserName) -> Bool {
    guard hashes.removeValue(forKey: name) != nil else { return false }
    roles[name] = nil
    lines.removeAll { $0.name == name }
    return true
  }

  /// Returns the name of a token; nil if the token is unknown. The time does not reveal a similar token.
  package func name(of token: String) -> UserName? {
    let hash = Self.hash(of: token)
    var found: UserName?
    for (name, expected) in hashes where Secrets.isEqual(hash, expected) { found = name }
    return found
  }

  /// The content of the file.
  package var bytes: [UInt8] { Array(lines.map { $0.text + "\n" }.joined().utf8) }

  private static func hash(of token: String) -> [UInt8] { HashFunction.sha256.digest(of: token.utf8) }
}

extension TokensFile: Equatable {
  /// Returns `true` if both admit the same programs with the same roles.
  package static func == (one: TokensFile, other: TokensFile) -> Bool {
    one.hashes == other.hashes && one.names.allSatisfy { one.role(of: $0) == other.role(of: $0) }
  }
}
