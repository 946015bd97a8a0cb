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
  /// - Parameters:
  ///   - repeatable: the number of last packets that may be given again.
  ///   - window: the number of last packets among which a late one is accepted.
  ///   - streams: the rollover counters of sources that are not at their beginning; any other source is.
  /// - Throws: ``SRTPError/library(_:)``, also if the library lacks the suite.
  init(
    _ key: SRTPKey, _ direction: Direction, repeatable: Int = 0, window: Int = 128, streams: [MIKEYMessage.Stream] = []
  ) throws(SRTPError) {
    try Self.check(Self.initialization)
    var policy = Self.policy(key.suite)
    policy.ssrc.type = direction == .outgoing ? ssrc_any_outbound : ssrc_any_inbound
    policy.window_size = UInt(max(window, repeatable))
    policy.allow_repeat_tx = repeatable > 0 ? 1 : 0
    var bytes = key.bytes
    session = try bytes.withUnsafeMutableBufferPointer { bytes throws(SRTPError) in
      policy.key = bytes.baseAddress
      return try Self.made(&policy, streams)
    }
  }

  private static func made(
    _ policy: inout srtp_policy_t, _ streams: [MIKEYMessage.Stream]
  ) throws(SRTPError) -> srtp_t {
    var made: srtp_t?
    try check(srtp_create(&made, &policy))
    guard let made else { throw .library(srtp_err_status_fail.rawValue) }
    do throws(SRTPError) {
      for stream in streams where stream.rolloverCounter != 0 {
        policy.ssrc = srtp_ssrc_t(type: ssrc_specific, value: stream.ssrc)
        try check(srtp_add_stream(made, &policy))
        try check(srtp_set_stream_roc(made, stream.ssrc, stream.rolloverCounter))
      }
    } catch {
      srtp_dealloc(made)
      throw error
    }
    return made
  }

  private static func policy(_ suite: SRTPSuite) -> srtp_policy_t {
    var policy = srtp_policy_t()
    switch suite {
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
    return policy
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

  /// Unprotects the SRTP packet of `count` bytes at `packet`. Returns the new length.
  func unprotect(_ packet: UnsafeMutableRawPointer, count: Int) throws(SRTPError) -> Int {
    var length = CInt(truncatingIfNeeded: count)
    try Self.check(srtp_unprotect(session, packet, &length))
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
