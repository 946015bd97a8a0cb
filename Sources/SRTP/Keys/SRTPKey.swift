import RTP

/// A master key and its salt, RFC 3711 section 3.2.1, which both ends of a protected stream share.
///
/// Neither its description nor its mirror reveals any byte of it.
package struct SRTPKey: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  /// The suite that the key is for.
  package let suite: SRTPSuite
  /// The master key followed by the salt, as in `inline:`.
  package let bytes: [UInt8]

  /// Creates a key of the given bytes: the master key followed by the salt.
  ///
  /// - Throws: ``SRTPKeyError/length(_:suite:)``.
  package init(suite: SRTPSuite, bytes: [UInt8]) throws(SRTPKeyError) {
    guard bytes.count == suite.keyLength + suite.saltLength else { throw .length(bytes.count, suite: suite) }
    self.suite = suite
    self.bytes = bytes
  }

  /// Creates a new key from the system's random numbers.
  package init(random suite: SRTPSuite) {
    var generator = SystemRandomNumberGenerator()
    self.suite = suite
    bytes = (0..<suite.keyLength + suite.saltLength).map { _ in generator.next() }
  }

  /// Key and salt as base64, for authorized recipients only.
  package var inlineText: String { Base64.encode(bytes) }

  /// The suite, without any part of the key.
  package var description: String { "a key for \(suite.rawValue)" }

  /// An empty mirror.
  package var customMirror: Mirror { Mirror(self, children: []) }
}
