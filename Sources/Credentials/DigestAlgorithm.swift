/// A hash of Digest access authentication, RFC 7616 section 3.3. The session variants (`-sess`) are not offered.
public enum DigestAlgorithm: String, CaseIterable, Sendable {
  // In this order they are offered: ffmpeg 5.1 takes the last challenge, whether it knows its algorithm or not.
  /// SHA-256.
  case sha256 = "SHA-256"
  /// MD5, for players that know nothing else.
  case md5 = "MD5"

  /// The algorithm of this name, in whatever case; nil for one that is not offered.
  public init?(name: some StringProtocol) {
    switch name.uppercased() {
    case "SHA-256": self = .sha256
    case "MD5": self = .md5
    default: return nil
    }
  }

  /// The characters of a digest in hexadecimal.
  public var hexLength: Int {
    switch self {
    case .sha256: 64
    case .md5: 32
    }
  }
}
