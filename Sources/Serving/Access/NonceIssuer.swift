package import Platform
import TLS

/// Creates nonces and recognizes its own, without storing any: a nonce contains its time and is signed with a key that
/// only this process has, RFC 7616 section 3.3.
package struct NonceIssuer {
  /// The content of a nonce of this issuer.
  package struct Nonce {
    /// The time of creation after the issuer's start.
    let issued: Duration
    /// The nonce's unique number.
    let number: UInt64
    /// `true` if it was created on the connection that returns it.
    let isOfConnection: Bool

    /// Creates a nonce.
    package init(issued: Duration, number: UInt64, isOfConnection: Bool) {
      (self.issued, self.number, self.isOfConnection) = (issued, number, isOfConnection)
    }
  }

  private let key = Secrets.randomBytes(32)
  private let start: Instant
  private static let seal = 12

  init(start: Instant) {
    self.start = start
  }

  /// Returns the time since the start: the machine's uptime must not be disclosed.
  func elapsed(at now: Instant) -> Duration { now - start }

  /// Returns a new nonce, in hexadecimal: the time, 64 random bits, and two seals, of the peer and of the connection.
  func make(peer: PeerAddress, connection: UInt64, at now: Instant) -> [UInt8] {
    let head = Self.bytes(UInt64(max(0, elapsed(at: now).nanoseconds))) + Self.bytes(UInt64.random(in: 0 ... .max))
    return Hexadecimal.text(head + peerSeal(head, peer) + connectionSeal(head, peer, connection))
  }

  /// Reads a nonce; nil if this issuer did not create it for this address.
  func read(_ text: [UInt8], peer: PeerAddress, connection: UInt64) -> Nonce? {
    guard text.count == 2 * (16 + 2 * Self.seal), let bytes = Hexadecimal.bytes(text) else { return nil }
    let head = Array(bytes[..<16])
    guard Secrets.isEqual(Array(bytes[16..<(16 + Self.seal)]), peerSeal(head, peer)) else { return nil }
    let isOfConnection = Secrets.isEqual(
      Array(bytes[(16 + Self.seal)...]), connectionSeal(head, peer, connection))
    guard let nanoseconds = Int64(exactly: Self.number(head[..<8])) else { return nil }
    return Nonce(
      issued: Duration(nanoseconds: nanoseconds), number: Self.number(head[8...]), isOfConnection: isOfConnection)
  }

  private func peerSeal(_ head: [UInt8], _ peer: PeerAddress) -> [UInt8] { seal([1] + head + peer.bytes) }

  private func connectionSeal(_ head: [UInt8], _ peer: PeerAddress, _ connection: UInt64) -> [UInt8] {
    seal([2] + head + peer.bytes + Self.bytes(connection))
  }

  private func seal(_ data: [UInt8]) -> [UInt8] {
    Array(HashFunction.sha256.authenticationCode(of: data, key: key).prefix(Self.seal))
  }

  private static func bytes(_ value: UInt64) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.reduce(into: 0) { $0 = $0 << 8 | UInt64($1) }
  }
}
