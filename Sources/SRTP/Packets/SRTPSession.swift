import CSRTP

/// A session of the library: the cryptographic contexts of one key in one direction. Use it from one thread at a
/// time.
struct SRTPSession: ~Copyable {
  private let session: srtp_t

  enum Direction {
    case outgoing
    case incoming
  }

  /// The library's own state, initialized once per process.
  private static let initialization = srtp_init()

  /// Creates a session.
  ///
  /// - Parameter repeatable: the number of last packets that may be given again.
  /// - Throws: ``SRTPError/library(_:)``, also if the library lacks the suite.
  init(_ key: SRTPKey, _ direction: Direction, repeatable: Int = 0) throws(SRTPError) {
    try Self.check(Self.initialization)
    var policy = srtp_policy_t()
    switch key.suite {
    case .aes128CounterHMAC80:
      srtp_crypto_policy_set_rtp_default(&policy.rtp)
      srtp_crypto_policy_set_rtcp_default(&policy.rtcp)
    case .aes128GCM:
      srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp)
      srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp)
    case .aes256GCM:
      srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtp)
      srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtcp)
    }
    policy.ssrc.type = direction == .outgoing ? ssrc_any_outbound : ssrc_any_inbound
    policy.window_size = UInt(max(128, repeatable))
    policy.allow_repeat_tx = repeatable > 0 ? 1 : 0
    var bytes = key.bytes
    var made: srtp_t?
    let status = bytes.withUnsafeMutableBufferPointer { bytes in
      policy.key = bytes.baseAddress
      return srtp_create(&made, &policy)
    }
    try Self.check(status)
    guard let made else { throw .library(srtp_err_status_fail.rawValue) }
    session = made
  }

  deinit {
    srtp_dealloc(session)
  }

  /// Protects the RTP packet of `count` bytes at `packet`, with room for its tag behind it. Returns the new length.
  func protect(_ packet: UnsafeMutableRawPointer, count: Int) throws(SRTPError) -> Int {
    var length = CInt(truncatingIfNeeded: count)
    try Self.check(srtp_protect(session, packet, &length))
    return Int(length)
  }

  /// Protects an RTCP packet, like ``protect(_:count:)``.
  func protectControl(_ packet: UnsafeMutableRawPointer, count: Int) throws(SRTPError) -> Int {
    var length = CInt(truncatingIfNeeded: count)
    try Self.check(srtp_protect_rtcp(session, packet, &length))
    return Int(length)
  }

  /// Unprotects the SRTCP packet at `packet`. Returns the new length.
  func unprotectControl(_ packet: UnsafeMutableRawPointer, count: Int) throws(SRTPError) -> Int {
    var length = CInt(truncatingIfNeeded: count)
    try Self.check(srtp_unprotect_rtcp(session, packet, &length))
    return Int(length)
  }

  private static func check(_ status: srtp_err_status_t) throws(SRTPError) {
    switch status {
    case srtp_err_status_ok: return
    // A packet marked as unencrypted cannot be checked against a key that encrypts: no sender of ours makes one.
    case srtp_err_status_auth_fail, srtp_err_status_cant_check: throw .forged
    case srtp_err_status_replay_fail, srtp_err_status_replay_old: throw .replayed
    case srtp_err_status_key_expired: throw .keyUsedUp
    default: throw .library(status.rawValue)
    }
  }
}
