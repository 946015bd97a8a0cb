import RTP

/// A master key and its salt, RFC 3711 section 3.2.1: what both sides of a protected stream must have.
///
/// Neither its description nor its mirror shows a byte of it.
public struct SRTPKey: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  /// What it is for.
  public let suite: SRTPSuite
  /// The master key and then the salt, as `inline:` has them.
  let bytes: [UInt8]

  /// A key whose bytes are given: the master key and then the salt.
  ///
  /// - Throws: ``SRTPKeyError/length(_:suite:)``.
  public init(suite: SRTPSuite, bytes: [UInt8]) throws(SRTPKeyError) {
    guard bytes.count == suite.keyLength + suite.saltLength else { throw .length(bytes.count, suite: suite) }
    self.suite = suite
    self.bytes = bytes
  }

  /// A new key of the system's random numbers.
  public init(random suite: SRTPSuite) {
    var generator = SystemRandomNumberGenerator()
    self.suite = suite
    bytes = (0..<suite.keyLength + suite.saltLength).map { _ in generator.next() }
  }

  /// Key and salt as base64, for whoever may have them.
  public var inlineText: String { Base64.encode(bytes) }

  /// What suite it is for, and nothing of the key.
  public var description: String { "a key for \(suite.rawValue)" }

  /// Nothing.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
