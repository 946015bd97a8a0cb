import COpenSSL

/// The certificates and settings of a TLS or DTLS server, shared by all its connections.
package final class ServerContext: @unchecked Sendable {
  // Sendable: an SSL_CTX that is no longer changed may be used by several threads.
  let pointer: OpaquePointer
  /// `true` if connections use DTLS.
  let isDatagram: Bool
  /// The application protocols in ALPN's format (RFC 7301 section 3.1): a length byte before each name.
  private let protocols: [UInt8]

  /// Creates a context of TLS 1.2 and 1.3 for byte streams.
  ///
  /// - Parameters:
  ///   - chain: The certificate chain, the server's certificate first.
  ///   - protocols: The ALPN names of the application protocols, the preferred one first. A client that requests none
  ///     of them is served too.
  /// - Throws: ``OpenSSLError``.
  package convenience init(
    chain: [Certificate], key: PrivateKey, protocols: [String] = []
  ) throws(OpenSSLError) {
    try self.init(chain, key, protocols: protocols, isDatagram: false)
  }

  /// Creates a context of DTLS 1.2 for datagrams, with keys for SRTP (RFC 5764).
  ///
  /// - Parameters:
  ///   - chain: The certificate chain, the server's certificate first.
  ///   - profiles: The SRTP protection profiles, the preferred one first.
  ///   - asksForCertificate: `true` requires a certificate of each client. Any certificate is accepted: compare
  ///     ``TLSConnection/peerFingerprint`` with the one agreed elsewhere.
  /// - Throws: ``OpenSSLError``.
  package convenience init(
    datagramsWith chain: [Certificate], key: PrivateKey, profiles: [SRTPProtectionProfile],
    asksForCertificate: Bool = false
  ) throws(OpenSSLError) {
    try self.init(chain, key, protocols: [], isDatagram: true)
    _ = SSL_CTX_set_options(pointer, nightjar_op_no_query_mtu)
    if asksForCertificate {
      SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT) { _, _ in 1 }
    }
    // This function alone returns 0 for success.
    let names = profiles.map(\.name).joined(separator: ":")
    try Self.check(profiles.isEmpty || SSL_CTX_set_tlsext_use_srtp(pointer, names) == 0, "choosing SRTP's protection")
  }

  private init(
    _ chain: [Certificate], _ key: PrivateKey, protocols: [String], isDatagram: Bool
  ) throws(OpenSSLError) {
    ERR_clear_error()
    guard let pointer = SSL_CTX_new(isDatagram ? DTLS_server_method() : TLS_server_method()) else {
      throw OpenSSLError("preparing TLS")
    }
    self.pointer = pointer
    self.isDatagram = isDatagram
    self.protocols = protocols.flatMap { [UInt8(clamping: $0.utf8.count)] + Array($0.utf8) }
    let check = Self.check
    try check(
      nightjar_ctx_set_minimum_version(pointer, isDatagram ? DTLS1_2_VERSION : TLS1_2_VERSION) == 1,
      "choosing the version")
    try check(SSL_CTX_set_cipher_list(pointer, Self.ciphers(Self.ciphers12)) == 1, "choosing ciphers")
    try check(SSL_CTX_set_ciphersuites(pointer, Self.ciphers(Self.ciphers13)) == 1, "choosing ciphers")
    try check(nightjar_ctx_set_groups(pointer, "X25519:P-256:P-384") == 1, "choosing groups")
    _ = SSL_CTX_set_options(
      pointer,
      nightjar_op_no_renegotiation | nightjar_op_no_compression | nightjar_op_server_preference
        | nightjar_op_prioritize_chacha | nightjar_op_no_ticket)
    // Session resumption is off. OpenSSL's ticket key lives as long as the process, and whoever learns the key can
    // decrypt earlier recordings of TLS 1.2. OpenSSL's session cache would grow by thousands of entries.
    _ = SSL_CTX_set_num_tickets(pointer, 0)
    _ = nightjar_ctx_disable_session_cache(pointer)
    // Idle connections keep no buffers. The chain is sent unchanged: OpenSSL would otherwise search for more of it in
    // each handshake.
    _ = nightjar_ctx_set_mode(
      pointer, Int(SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN))

    guard let first = chain.first else { throw OpenSSLError("using the certificate", reason: "there is none") }
    try check(SSL_CTX_use_certificate(pointer, first.pointer) == 1, "using the certificate")
    for certificate in chain.dropFirst() {
      try check(nightjar_ctx_add_chain_certificate(pointer, certificate.pointer) == 1, "using the certificate")
    }
    try check(SSL_CTX_use_PrivateKey(pointer, key.pointer) == 1, "using the key")
    if !protocols.isEmpty { answerProtocols() }
  }

  deinit { SSL_CTX_free(pointer) }

  private static func check(_ isDone: Bool, _ step: String) throws(OpenSSLError) {
    guard isDone else { throw OpenSSLError(step) }
  }

  /// Selects the preferred protocol among those that a client requests.
  private func answerProtocols() {
    // The pointer stays valid: the connections hold the context.
    let own = Unmanaged.passUnretained(self).toOpaque()
    SSL_CTX_set_alpn_select_cb(
      pointer,
      { _, chosen, length, offered, count, own in
        guard let own, let chosen, let length else { return SSL_TLSEXT_ERR_NOACK }
        let context = Unmanaged<ServerContext>.fromOpaque(own).takeUnretainedValue()
        var name: UnsafeMutablePointer<UInt8>?
        let result = context.protocols.withUnsafeBufferPointer {
          SSL_select_next_proto(&name, length, $0.baseAddress, UInt32($0.count), offered, count)
        }
        guard result == OPENSSL_NPN_NEGOTIATED else { return SSL_TLSEXT_ERR_NOACK }
        chosen.pointee = UnsafePointer(name)
        return SSL_TLSEXT_ERR_OK
      }, own)
  }

  // AES first if the processor has instructions for it, otherwise ChaCha20. A client that prefers ChaCha20 gets it.
  private static let ciphers13 = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]
  // RFC 9325 section 4.2: only ephemeral keys and authenticated encryption.
  private static let ciphers12 = ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"]
    .flatMap { ["ECDHE-ECDSA-" + $0, "ECDHE-RSA-" + $0] }

  private static func ciphers(_ names: [String]) -> String {
    let isFirst = { (name: String) in name.contains("CHACHA20") != (nightjar_has_aes() != 0) }
    return (names.filter(isFirst) + names.filter { !isFirst($0) }).joined(separator: ":")
  }
}

/// The SRTP protection profiles whose keys DTLS negotiates, RFC 5764 section 4.1.2 and RFC 7714 section 14.2.
package enum SRTPProtectionProfile: UInt, CaseIterable, Sendable {
  /// AES in counter mode with an HMAC of 80 bits.
  case aes128CounterHMAC80 = 1
  /// AES-GCM with a key of 128 bits.
  case aeadAES128GCM = 7

  /// OpenSSL's name.
  var name: String {
    switch self {
    case .aes128CounterHMAC80: "SRTP_AES128_CM_SHA1_80"
    case .aeadAES128GCM: "SRTP_AEAD_AES_128_GCM"
    }
  }

  /// The number of exported bytes: each side's key of 16 bytes, then each side's salt.
  package var keyingMaterialBytes: Int {
    switch self {
    case .aes128CounterHMAC80: 2 * (16 + 14)
    case .aeadAES128GCM: 2 * (16 + 12)
    }
  }
}
