/// How packets are encrypted and authenticated: the suites of RFC 3711 and RFC 7714 that players know.
public enum SRTPSuite: String, CaseIterable, Sendable {
  /// AES in counter mode and HMAC-SHA1 of 80 bits (RFC 4568 section 6.2.1): every player that knows SRTP knows it.
  case aes128CounterHMAC80 = "AES_CM_128_HMAC_SHA1_80"
  /// AES-GCM with a key of 128 bits and a tag of 16 bytes (RFC 7714 section 14.2).
  case aes128GCM = "AEAD_AES_128_GCM"
  /// AES-GCM with a key of 256 bits and a tag of 16 bytes.
  case aes256GCM = "AEAD_AES_256_GCM"

  /// Bytes of the master key.
  public var keyLength: Int { self == .aes256GCM ? 32 : 16 }

  /// Bytes of the master salt: 112 bits for counter mode (RFC 3711 section 5.3), 96 for GCM (RFC 7714 section 12).
  public var saltLength: Int { self == .aes128CounterHMAC80 ? 14 : 12 }

  /// How many bytes an RTP packet grows by.
  public var packetOverhead: Int { self == .aes128CounterHMAC80 ? 10 : 16 }

  /// How many bytes an RTCP packet grows by: the tag, and four of the E flag and the index (RFC 3711 section 3.4).
  public var controlOverhead: Int { packetOverhead + 4 }
}
