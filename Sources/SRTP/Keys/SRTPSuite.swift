/// The encryption and authentication of packets: the suites of RFC 3711 and RFC 7714 that players support.
package enum SRTPSuite: String, CaseIterable, Sendable {
  /// AES in counter mode and HMAC-SHA1 of 80 bits (RFC 4568 section 6.2.1), which every player with SRTP supports.
  case aes128CounterHMAC80 = "AES_CM_128_HMAC_SHA1_80"
  /// AES-GCM with a key of 128 bits and a tag of 16 bytes (RFC 7714 section 14.2).
  case aes128GCM = "AEAD_AES_128_GCM"
  /// AES-GCM with a key of 256 bits and a tag of 16 bytes.
  case aes256GCM = "AEAD_AES_256_GCM"

  /// The length of the master key in bytes.
  package var keyLength: Int { self == .aes256GCM ? 32 : 16 }

  /// The length of the master salt in bytes: 112 bits for counter mode (RFC 3711 section 5.3), 96 for GCM (RFC 7714
  /// section 12).
  package var saltLength: Int { self == .aes128CounterHMAC80 ? 14 : 12 }

  /// The number of bytes by which an RTP packet grows.
  package var packetOverhead: Int { self == .aes128CounterHMAC80 ? 10 : 16 }

  /// The number of bytes by which an RTCP packet grows: the tag, and four bytes of the E flag and the index (RFC 3711
  /// section 3.4).
  package var controlOverhead: Int { packetOverhead + 4 }
}
