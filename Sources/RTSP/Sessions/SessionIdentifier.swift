/// A session identifier, RFC 2326 section 3.4: 128 random bits, so that no client can guess another client's.
public struct SessionIdentifier: Hashable, Sendable, CustomStringConvertible {
  /// The identifier as 32 hexadecimal digits.
  public let description: String

  /// Creates a new identifier from the system's random numbers.
  public init() {
    var generator = SystemRandomNumberGenerator()
    self.init(using: &generator)
  }

  /// Creates a new identifier from `generator`.
  public init(using generator: inout some RandomNumberGenerator) {
    description = (0..<2).map { _ in
      let digits = String(UInt64.random(in: 0 ... .max, using: &generator), radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }

  /// Parses the identifier in a `Session` header, without its parameters; `nil` if it cannot be one of ours.
  public init?(header: String) {
    let name = header.prefix { $0 != ";" }.trimmed
    guard name.utf8.count == 32, name.utf8.allSatisfy(\.isLetterOrDigit) else { return nil }
    description = name
  }
}
