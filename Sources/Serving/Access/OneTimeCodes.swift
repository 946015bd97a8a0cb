package import Platform
import TLS

/// The one-time codes by which phones get a log-in of their own. Only their hashes are kept, in memory: a restart voids
/// them.
package struct OneTimeCodes: Sendable {
  /// The time in which a code can be used.
  package static let lifetime = Duration(seconds: 600)
  /// The most codes at a time. A further one voids the oldest.
  package static let limit = 16
  /// The random bytes of a code. Nobody guesses 128 bits, and a QR code of them is small.
  private static let byteCount = 16

  private struct Code {
    let hash: [UInt8]
    let role: Role
    let end: Instant
  }

  private var codes: [Code] = []

  /// Creates a table without codes.
  package init() {}

  /// Makes a code for a phone that gets `role`: 22 characters of Base64 for URLs.
  package mutating func make(_ role: Role, at now: Instant) -> String {
    codes.removeAll { $0.end <= now }
    if codes.count >= Self.limit { codes.removeFirst() }
    let text = Secrets.randomText(Self.byteCount)
    codes.append(Code(hash: Self.hash(text), role: role, end: now + Self.lifetime))
    return text
  }

  /// Uses a code up. Returns its role; nil for a code that is unknown, used or too old.
  package mutating func use(_ text: String, at now: Instant) -> Role? {
    codes.removeAll { $0.end <= now }
    let hash = Self.hash(text)
    guard let index = codes.firstIndex(where: { Secrets.isEqual($0.hash, hash) }) else { return nil }
    return codes.remove(at: index).role
  }

  private static func hash(_ text: String) -> [UInt8] { HashFunction.sha256.digest(of: text.utf8) }
}
