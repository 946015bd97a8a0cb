package import SRTP
package import TLS

/// The keys that DTLS has agreed for SRTP and SRTCP, RFC 5764 section 4.2.
package struct PeerKeys: Hashable, Sendable {
  /// The key of what this side, the server of DTLS, sends.
  package let sending: SRTPKey
  /// The key of what the peer sends.
  package let receiving: SRTPKey

  /// Creates the keys of a connection whose handshake is complete; `nil` if it has agreed on no protection profile.
  package init?(_ connection: TLSConnection) {
    guard let profile = connection.protectionProfile, let material = connection.keyingMaterial else { return nil }
    self.init(profile, material)
  }

  /// Divides keying material: the client's key, the server's key, the client's salt, the server's salt.
  init?(_ profile: SRTPProtectionProfile, _ material: [UInt8]) {
    let suite: SRTPSuite =
      switch profile {
      case .aes128CounterHMAC80: .aes128CounterHMAC80
      case .aeadAES128GCM: .aes128GCM
      }
    let (key, salt) = (suite.keyLength, suite.saltLength)
    guard material.count == 2 * (key + salt) else { return nil }
    let client = material[..<key] + material[(2 * key)..<(2 * key + salt)]
    let server = material[key..<(2 * key)] + material[(2 * key + salt)...]
    guard let sending = try? SRTPKey(suite: suite, bytes: Array(server)),
      let receiving = try? SRTPKey(suite: suite, bytes: Array(client))
    else { return nil }
    (self.sending, self.receiving) = (sending, receiving)
  }
}
