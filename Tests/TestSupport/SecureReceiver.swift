import CSRTP
package import Foundation
package import SRTP

/// A viewer of SRTP: libsrtp2, told key, source and counter as the viewer was.
package final class SecureReceiver {
  private var session: srtp_t?

  /// A receiver of one stream.
  package init(_ key: SRTPKey, ssrc: UInt32, rolloverCounter: UInt32 = 0) throws {
    // The library is ready once there is one of our own.
    _ = try PacketProtector(key)
    guard let inline = Data(base64Encoded: key.inlineText) else { throw CocoaError(.coderReadCorrupt) }
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
    policy.ssrc = srtp_ssrc_t(type: ssrc_specific, value: ssrc)
    policy.window_size = 128
    var bytes = [UInt8](inline)
    let status = bytes.withUnsafeMutableBufferPointer { bytes in
      policy.key = bytes.baseAddress
      return srtp_create(&session, &policy)
    }
    guard status == srtp_err_status_ok,
      srtp_set_stream_roc(session, ssrc, rolloverCounter) == srtp_err_status_ok
    else { throw CocoaError(.coderReadCorrupt) }
  }

  deinit { srtp_dealloc(session) }

  /// The packet in the clear; nil where its tag is wrong, or it came before.
  package func open(_ packet: Data) -> Data? {
    var bytes = [UInt8](packet)
    var count = Int32(bytes.count)
    guard srtp_unprotect(session, &bytes, &count) == srtp_err_status_ok else { return nil }
    return Data(bytes[..<Int(count)])
  }
}
