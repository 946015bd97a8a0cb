import FoundationEssentials
import TLS

extension Secrets {
  /// Returns random bytes as Base64 for URLs, without padding (RFC 4648 section 5).
  static func randomText(_ byteCount: Int) -> String {
    String(
      Data(randomBytes(byteCount)).base64EncodedString().compactMap { character -> Character? in
        switch character {
        case "+": "-"
        case "/": "_"
        case "=": nil
        default: character
        }
      })
  }
}
