import RTP

/// The value of an `a=crypto` attribute in SDP, RFC 4568 section 9.1: `TAG SUITE inline:BASE64`.
package struct CryptoAttribute: Hashable, Sendable {
  /// The tag that identifies one of several offers, 0 to 999,999,999.
  package var tag: Int
  /// The key with its suite.
  package var key: SRTPKey

  /// The maximum length of a value in bytes.
  package static let lengthLimit = 512

  /// Creates an offer of `key`.
  package init(tag: Int = 1, key: SRTPKey) {
    self.tag = tag
    self.key = key
  }

  /// The value as text, without `a=crypto:`.
  package var text: String { "\(tag) \(key.suite.rawValue) inline:\(key.inlineText)" }

  /// Parses a value, without `a=crypto:`.
  ///
  /// - Throws: ``SRTPKeyError``. An unsupported parameter is refused, not ignored.
  package init(parsing text: String) throws(SRTPKeyError) {
    guard text.utf8.count <= Self.lengthLimit else {
      throw .syntax("\(text.utf8.count) bytes are more than \(Self.lengthLimit)")
    }
    let parts = text.split(separator: " ", omittingEmptySubsequences: true)
    guard let first = parts.first, (1...9).contains(first.utf8.count),
      first.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let tag = Int(first)
    else { throw .syntax("the tag, a number of one to nine digits, is missing") }
    self.tag = tag
    key = try Self.key(parts.dropFirst())
  }

  /// Parses `SUITE inline:BASE64`.
  static func key(_ parts: ArraySlice<Substring>) throws(SRTPKeyError) -> SRTPKey {
    guard let name = parts.first else { throw .syntax("the suite is missing") }
    guard let suite = SRTPSuite(rawValue: String(name)) else { throw .suite }
    guard let parameters = parts.dropFirst().first else { throw .syntax("inline: is missing") }
    guard parts.count == 2 else { throw .unsupported("a session parameter") }
    guard parameters.hasPrefix("inline:") else { throw .syntax("the only key method is inline:") }
    guard !parameters.contains(";") else { throw .unsupported("a second key") }
    let fields = parameters.dropFirst(7).split(separator: "|", omittingEmptySubsequences: false)
    guard fields.count == 1 else {
      throw .unsupported(fields[1].contains(":") ? "a master key identifier" : "a lifetime")
    }
    guard let bytes = Base64.decode(fields[0].utf8) else { throw .syntax("inline: is not followed by base64") }
    return try SRTPKey(suite: suite, bytes: bytes)
  }
}
