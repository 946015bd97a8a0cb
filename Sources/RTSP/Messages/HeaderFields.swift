/// The header fields of a message, in order. Names are compared without case (RFC 2326 section 4.2).
public struct HeaderFields: Hashable, Sendable, ExpressibleByArrayLiteral {
  /// One field.
  public struct Field: Hashable, Sendable {
    /// The name as it was written.
    public var name: String
    /// The value without surrounding white space.
    public var value: String

    /// Creates a field.
    public init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  /// All fields.
  public private(set) var fields: [Field] = []

  /// Creates an empty list.
  public init() {}

  /// Creates a list of the given fields.
  public init(arrayLiteral fields: Field...) {
    self.fields = fields
  }

  /// The first value of a name. Setting it replaces all values; setting `nil` removes them.
  public subscript(name: String) -> String? {
    get { fields.first { $0.name.isEqualIgnoringCase(to: name) }?.value }
    set {
      fields.removeAll { $0.name.isEqualIgnoringCase(to: name) }
      if let newValue { append(name, newValue) }
    }
  }

  /// Returns all values of a name, in order.
  public func values(of name: String) -> [String] {
    fields.filter { $0.name.isEqualIgnoringCase(to: name) }.map(\.value)
  }

  /// Appends a field, even if one of that name exists: `WWW-Authenticate` may occur twice.
  public mutating func append(_ name: String, _ value: String) {
    fields.append(Field(name, value))
  }

  /// Appends a folded line's text to the last field.
  mutating func continueLast(with text: String) {
    guard !text.isEmpty, let last = fields.indices.last else { return }
    fields[last].value += fields[last].value.isEmpty ? text : " " + text
  }
}

extension StringProtocol {
  /// Returns `true` if both texts are equal except for the case of ASCII letters.
  func isEqualIgnoringCase(to other: some StringProtocol) -> Bool {
    utf8.count == other.utf8.count && zip(utf8, other.utf8).allSatisfy { $0.lowercased == $1.lowercased }
  }

  /// The text without spaces and tabs at its ends.
  var trimmed: String {
    // By byte, because a space and a combining accent are one character.
    var rest = Substring(self).utf8
    while let first = rest.first, first == 0x20 || first == 0x09 { rest.removeFirst() }
    while let last = rest.last, last == 0x20 || last == 0x09 { rest.removeLast() }
    return String(decoding: rest, as: UTF8.self)
  }

  /// Returns the number in 1…`digits` ASCII digits, without a sign.
  func decimal<Number: FixedWidthInteger>(_: Number.Type = Number.self, digits: Int) -> Number? {
    guard (1...digits).contains(utf8.count), utf8.allSatisfy(\.isDigit) else { return nil }
    return Number(self)
  }

  /// Returns the parts between `separator`s outside of double quotes, trimmed and without empty ones.
  func unquotedParts(at separator: UInt8) -> [String] {
    var parts: [[UInt8]] = [[]]
    var isQuoted = false
    for byte in utf8 {
      if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
      if byte == separator && !isQuoted {
        parts.append([])
      } else {
        parts[parts.count - 1].append(byte)
      }
    }
    return parts.map { String(decoding: $0, as: UTF8.self).trimmed }.filter { !$0.isEmpty }
  }
}

extension UInt8 {
  var lowercased: UInt8 { (0x41...0x5a).contains(self) ? self | 0x20 : self }
  var isDigit: Bool { (0x30...0x39).contains(self) }
  var isLetterOrDigit: Bool { isDigit || (0x61...0x7a).contains(lowercased) }
  /// `true` for `tchar`, a character of a method or a header name.
  var isToken: Bool {
    isLetterOrDigit || "!#$%&'*+-.^_`|~".utf8.contains(self)
  }
}
