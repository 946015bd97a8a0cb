/// The header fields of a message in their order; names are compared without case (RFC 2326 section 4.2).
public struct HeaderFields: Hashable, Sendable, ExpressibleByArrayLiteral {
  /// One field.
  public struct Field: Hashable, Sendable {
    /// Its name as it was written.
    public var name: String
    /// Its value without the white space around it.
    public var value: String

    /// A field.
    public init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  /// All fields.
  public private(set) var fields: [Field] = []

  /// No fields.
  public init() {}

  /// The fields given.
  public init(arrayLiteral fields: Field...) {
    self.fields = fields
  }

  /// The first value of a name; setting it replaces all of them, nil removes them.
  public subscript(name: String) -> String? {
    get { fields.first { $0.name.isEqualIgnoringCase(to: name) }?.value }
    set {
      fields.removeAll { $0.name.isEqualIgnoringCase(to: name) }
      if let newValue { append(name, newValue) }
    }
  }

  /// All values of a name, in their order.
  public func values(of name: String) -> [String] {
    fields.filter { $0.name.isEqualIgnoringCase(to: name) }.map(\.value)
  }

  /// Adds a field behind the others, also where there is one of that name: `WWW-Authenticate` may come twice.
  public mutating func append(_ name: String, _ value: String) {
    fields.append(Field(name, value))
  }

  /// Adds a folded line's text to the last field.
  mutating func continueLast(with text: String) {
    guard !text.isEmpty, let last = fields.indices.last else { return }
    fields[last].value += fields[last].value.isEmpty ? text : " " + text
  }
}

extension StringProtocol {
  /// Whether both are the same but for the case of ASCII letters.
  func isEqualIgnoringCase(to other: some StringProtocol) -> Bool {
    utf8.count == other.utf8.count && zip(utf8, other.utf8).allSatisfy { $0.lowercased == $1.lowercased }
  }

  /// The same without spaces and tabs at its ends.
  var trimmed: String {
    // By byte: a space and a combining accent are one character.
    var rest = Substring(self).utf8
    while let first = rest.first, first == 0x20 || first == 0x09 { rest.removeFirst() }
    while let last = rest.last, last == 0x20 || last == 0x09 { rest.removeLast() }
    return String(decoding: rest, as: UTF8.self)
  }

  /// The number in 1…`digits` ASCII digits, without a sign.
  func decimal<Number: FixedWidthInteger>(_: Number.Type = Number.self, digits: Int) -> Number? {
    guard (1...digits).contains(utf8.count), utf8.allSatisfy(\.isDigit) else { return nil }
    return Number(self)
  }

  /// The parts between `separator`s that stand outside of double quotes, trimmed; empty ones are left out.
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
  /// `tchar`: what a method or a header name is made of.
  var isToken: Bool {
    isLetterOrDigit || "!#$%&'*+-.^_`|~".utf8.contains(self)
  }
}
