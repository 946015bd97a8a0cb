import CSRTP

/// One of the library's sessions: the cryptographic contexts of one key in one direction. Used by one thread at a time.
struct SRTPSession: ~Copyable {
  private let session: srtp_t

  enum Direction {
    case outgoing
    case incoming
  }

  /// The library's own state, made once for the process.
  private static let initialization = srtp_init()

  /// - Throws: ``SRTPError/library(_:)``, for one without a suite of ours too.
  init(_ key: SRTPKey, _ direction: Direction) throws(SRTPError) {
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
    policy.window_size = 128
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

  /// Protects the RTP packet of `count` bytes at `packet`, behind which there is room for its tag; its new length.
  func protect(_ packet: UnsafeMutableRawPointer, count: Int) throws(SRTPError) -> Int {
    var length = CInt(truncatingIfNeeded: count)
    try Self.check(srtp_protect(session, packet, &length))
    return Int(length)
  }

  /// As ``protect(_:count:)``, of RTCP.
  func protectControl(_ packet: UnsafeMutableRawPointer, count: Int) throws(SRTPError) -> Int {
    var length = CInt(truncatingIfNeeded: count)
    try Self.check(srtp_protect_rtcp(session, packet, &length))
    return Int(length)
  }

  /// Makes RTCP of the SRTCP packet at `packet`; its new length.
  func unprotectControl(_ packet: UnsafeMutableRawPointer, count: Int) throws(SRTPError) -> Int {
    var length = CInt(truncatingIfNeeded: count)
    try Self.check(srtp_unprotect_rtcp(session, packet, &length))
    return Int(length)
  }

  private static func check(_ status: srtp_err_status_t) throws(SRTPError) {
    switch status {
    case srtp_err_status_ok: return
    // A packet that says it is not encrypted cannot be checked against a key that encrypts: no sender of ours.
    case srtp_err_status_auth_fail, srtp_err_status_cant_check: throw .forged
    case srtp_err_status_replay_fail, srtp_err_status_replay_old: throw .replayed
    case srtp_err_status_key_expired: throw .keyUsedUp
    default: throw .library(status.rawValue)
    }
  }
}
