/// The users that may log in by name and password, as stored in a file: one user a line, `name:SHA-256=HA1:MD5=HA1`.
/// Behind it stands `:role=read` or `:role=control` for another ``Role`` than ``Role/view``. Empty lines, and comments
/// that begin with `#`, keep their place.
///
/// HA1 is H(name ":" realm ":" password) in hexadecimal, RFC 7616 section 3.4.2. A reader of the file can log in with
/// it: it is worth as much as the passwords. A user whose line lacks one of the two algorithms cannot log in with it.
package struct UsersFile: Sendable {
  /// The realm of every HA1; another one would require every password again.
  package static let realm = "nightjar"
  /// The most bytes of a file.
  package static let sizeLimit = 1 << 20
  /// The most bytes of a line, without its end.
  package static let lineLimit = 512
  /// The most users.
  package static let userLimit = 1000

  /// A user that may log in.
  package struct User: Hashable, Sendable {
    /// The name.
    package let name: UserName
    /// The user's role.
    package var role = Role.unnamed
    /// HA1 by algorithm, in lower-case hexadecimal.
    package let hashes: [DigestAlgorithm: [UInt8]]

    /// Creates a user with these hashes; nil if there is none, or if one does not have its algorithm's length in
    /// hexadecimal digits.
    package init?(name: UserName, hashes: [DigestAlgorithm: [UInt8]]) {
      guard !hashes.isEmpty, hashes.allSatisfy({ $1.count == $0.hexLength && $1.allSatisfy(Hexadecimal.isDigit) })
      else { return nil }
      self.init(checked: name, hashes: hashes.mapValues { $0.map(Hexadecimal.lowercased) })
    }

    init(checked name: UserName, hashes: [DigestAlgorithm: [UInt8]]) {
      self.name = name
      self.hashes = hashes
    }
  }

  private enum Line: Sendable {
    case user(UserName, text: [UInt8])
    case other([UInt8])

    var text: [UInt8] {
      switch self {
      case .user(_, let text), .other(let text): text
      }
    }
  }

  private var lines: [Line] = []
  private var table: [UserName: User] = [:]

  /// Creates a file without users.
  package init() {}

  /// Reads a file's content.
  ///
  /// - Throws: ``UsersFileSyntaxError``, with the line.
  package init(parsing bytes: [UInt8]) throws(UsersFileSyntaxError) {
    guard bytes.count <= Self.sizeLimit else { throw UsersFileSyntaxError(line: 0, reason: .size(bytes.count)) }
    var rest = bytes[...]
    var lineOf: [UserName: Int] = [:]
    while !rest.isEmpty {
      let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
      let text = rest[..<end]
      rest = rest[min(end + 1, rest.endIndex)...]
      let number = lines.count + 1
      do throws(UsersFileSyntaxError.Reason) {
        guard text.count <= Self.lineLimit else { throw .line(text.count) }
        guard let user = try Self.user(text) else {
          lines.append(.other(Array(text)))
          continue
        }
        if let earlier = lineOf.updateValue(number, forKey: user.name) { throw .repeated(user.name, line: earlier) }
        guard table.count < Self.userLimit else { throw .users }
        table[user.name] = user
        lines.append(.user(user.name, text: Array(text)))
      } catch {
        throw UsersFileSyntaxError(line: number, reason: error)
      }
    }
  }

  /// The users in the file's order.
  package var users: [User] {
    lines.compactMap {
      guard case .user(let name, _) = $0 else { return nil }
      return table[name]
    }
  }

  /// The user of this name.
  package subscript(name: UserName) -> User? { table[name] }

  /// Adds a user at the end, or replaces the one of that name in its place. Returns `true` if there was one.
  ///
  /// - Throws: ``UsersFileSyntaxError`` if there are too many.
  @discardableResult
  package mutating func set(_ user: User) throws(UsersFileSyntaxError) -> Bool {
    let line = Line.user(user.name, text: Self.text(of: user))
    let index = index(of: user.name)
    if let index {
      lines[index] = line
    } else {
      let size = bytes.count + line.text.count + 1
      guard size <= Self.sizeLimit else { throw UsersFileSyntaxError(line: 0, reason: .size(size)) }
      guard table.count < Self.userLimit else { throw UsersFileSyntaxError(line: lines.count + 1, reason: .users) }
      lines.append(line)
    }
    table[user.name] = user
    return index != nil
  }

  /// Removes a user; returns `false` if there is none of that name.
  @discardableResult
  package mutating func remove(_ name: UserName) -> Bool {
    guard let index = index(of: name) else { return false }
    lines.remove(at: index)
    table[name] = nil
    return true
  }

  /// The file's content. Unchanged parts stay as they were, except that the last line gets an end.
  package var bytes: [UInt8] {
    var result: [UInt8] = []
    for line in lines { result += line.text + [UInt8(ascii: "\n")] }
    return result
  }

  private func index(of name: UserName) -> Int? {
    lines.firstIndex {
      guard case .user(name, _) = $0 else { return false }
      return true
    }
  }

  private static func text(of user: User) -> [UInt8] {
    var text = Array(user.name.description.utf8)
    for algorithm in DigestAlgorithm.allCases {
      guard let hash = user.hashes[algorithm] else { continue }
      text += Array(":\(algorithm.rawValue)=".utf8) + hash
    }
    // The default role is left out: versions without roles can read such a file.
    if user.role != .unnamed { text += Array(":\(user.role.fieldText)".utf8) }
    return text
  }

  /// Returns the user of one line; nil for a comment or an empty line.
  ///
  /// - Throws: the reason why the line is not valid.
  private static func user(_ line: ArraySlice<UInt8>) throws(UsersFileSyntaxError.Reason) -> User? {
    let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0D }
    guard let last = line.lastIndex(where: { !isSpace($0) }), let first = line.firstIndex(where: { !isSpace($0) })
    else {
      return nil
    }
    if line[first] == UInt8(ascii: "#") { return nil }
    let fields = line[...last].split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    let name: UserName
    do throws(UserNameError) {
      name = try UserName(String(decoding: fields[0], as: UTF8.self))
    } catch {
      throw .name(error)
    }
    var hashes: [DigestAlgorithm: [UInt8]] = [:]
    var role: Role?
    for field in fields.dropFirst() {
      if field.starts(with: "role=".utf8) {
        guard role == nil, let named = Role(field: String(decoding: field, as: UTF8.self)) else { throw .role(name) }
        role = named
        continue
      }
      guard let equals = field.firstIndex(of: UInt8(ascii: "=")),
        let algorithm = DigestAlgorithm(name: String(decoding: field[..<equals], as: UTF8.self))
      else { throw .algorithm(name) }
      let hash = field[(equals + 1)...]
      guard hash.count == algorithm.hexLength, hash.allSatisfy(Hexadecimal.isDigit) else {
        throw .hash(name, algorithm)
      }
      guard hashes.updateValue(Array(hash), forKey: algorithm) == nil else { throw .hash(name, algorithm) }
    }
    guard var user = User(name: name, hashes: hashes) else { throw .noHash(name) }
    user.role = role ?? .unnamed
    return user
  }
}

/// Digits of base 16.
enum Hexadecimal {
  static func isDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
      UInt8(ascii: "A")...UInt8(ascii: "F"):
      true
    default: false
    }
  }

  static func lowercased(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }

  static func text(_ bytes: some Sequence<UInt8>) -> [UInt8] {
    let digits = Array("0123456789abcdef".utf8)
    return bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
  }

  /// Returns the bytes of `text`; nil if it has an odd count or another character.
  static func bytes(_ text: some Collection<UInt8>) -> [UInt8]? {
    guard text.count % 2 == 0, text.allSatisfy(isDigit) else { return nil }
    var bytes: [UInt8] = []
    var high: UInt8?
    for byte in text {
      let value = byte <= UInt8(ascii: "9") ? byte & 15 : (byte & 15) + 9
      if let first = high {
        bytes.append(first << 4 | value)
        high = nil
      } else {
        high = value
      }
    }
    return bytes
  }
}
