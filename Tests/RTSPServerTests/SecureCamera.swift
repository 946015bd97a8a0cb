#if X264
  import CSRTP
  import Credentials
  import Foundation
  import RTSPServer
  import SRTP
  import TestSupport
  import Testing

  /// A camera that is served by rtsps, with a certificate of openssl's.
  final class SecureCamera {
    let camera: ServedCamera
    let directory: TemporaryDirectory

    init(_ configure: (inout ServerConfiguration) -> Void = { _ in }) throws {
      directory = try TemporaryDirectory()
      let (certificate, key) = (directory.path("c.pem"), directory.path("k.pem"))
      let made = try Subprocess.run(
        [
          "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
          "2", "-subj", "/CN=localhost", "-keyout", key, "-out", certificate,
        ], in: directory)
      try #require(made.status == 0, "\(made.error)")
      chmod(key, 0o600)
      let identity = try TLSIdentity(certificateFile: certificate, keyFile: key)
      camera = try ServedCamera {
        $0.identity = identity
        $0.listeners = [
          .init(address: "127.0.0.1", port: 0, isEncrypted: true), .init(address: "127.0.0.1", port: 0),
        ]
        configure(&$0)
      }
    }

    /// A client by TLS.
    func client() throws -> RTSPClient { try RTSPClient(overTLS: camera.server.listeners[0].port) }

    /// A client without.
    func plainClient() throws -> RTSPClient { try RTSPClient(port: camera.server.listeners[1].port) }
  }

  /// What a viewer does with SRTP: libsrtp2, told key and counter as the viewer was.
  final class SecureReceiver {
    private var session: srtp_t?

    init(_ message: MIKEYMessage, stream: Int = 0, rolloverCounter: UInt32? = nil) throws {
      let inline = try #require(Data(base64Encoded: message.key.inlineText))
      var policy = srtp_policy_t()
      switch message.key.suite {
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
      policy.ssrc = srtp_ssrc_t(type: ssrc_specific, value: message.streams[stream].ssrc)
      policy.window_size = 128
      var key = [UInt8](inline)
      let status = key.withUnsafeMutableBufferPointer { key in
        policy.key = key.baseAddress
        return srtp_create(&session, &policy)
      }
      try #require(status == srtp_err_status_ok)
      let counter = rolloverCounter ?? message.streams[stream].rolloverCounter
      try #require(srtp_set_stream_roc(session, message.streams[stream].ssrc, counter) == srtp_err_status_ok)
    }

    deinit { srtp_dealloc(session) }

    /// The packet in the clear; nil where its tag is wrong.
    func open(_ packet: Data) -> Data? {
      var bytes = [UInt8](packet)
      var count = Int32(bytes.count)
      guard srtp_unprotect(session, &bytes, &count) == srtp_err_status_ok else { return nil }
      return Data(bytes[..<Int(count)])
    }
  }

  extension RTSPClient.Reply {
    /// The key that DESCRIBE gives.
    func describedKey() throws -> MIKEYMessage {
      let prefix = "a=key-mgmt:mikey "
      let line = try #require(body.components(separatedBy: "\r\n").first { $0.hasPrefix(prefix) }, "\(body)")
      return try MIKEYMessage(text: line.dropFirst(prefix.count))
    }

    /// The key that SETUP answers.
    func setupKey() throws -> MIKEYMessage {
      let field = try #require(header("KeyMgmt"), "\(self)")
      let data = try #require(field.components(separatedBy: "data=\"").last?.prefix { $0 != "\"" })
      return try MIKEYMessage(text: data)
    }
  }
#endif
