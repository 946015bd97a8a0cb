/// A hash of Digest access authentication, RFC 7616 section 3.3. The session variants (`-sess`) are not offered.
package enum DigestAlgorithm: String, CaseIterable, Sendable {
  // The order of the offers: ffmpeg 5.1 takes the last challenge, even if it does not know its algorithm.
  /// SHA-256.
  case sha256 = "SHA-256"
  /// MD5, for players that support nothing else.
  case md5 = "MD5"

  /// The algorithm of this name, in any case; nil for one that is not offered.
  package init?(name: some StringProtocol) {
    switch name.uppercased() {
    case "SHA-256": self = .sha256
    case "MD5": self = .md5
    default: return nil
    }
  }

  /// The characters of a digest in hexadecimal.
  package var hexLength: Int {
    switch self {
    case .sha256: 64
    case .md5: 32
    }
  }
}
