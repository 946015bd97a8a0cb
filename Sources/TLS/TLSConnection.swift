import COpenSSL
import Platform

/// One end of a TLS connection, or the server's end of a DTLS connection. Bytes go in and out; the connection has no socket
/// and no clock.
///
/// Use it from one thread at a time. It stores at most one incomplete record, and one handshake message of at most
/// 128 KiB.
package final class TLSConnection {
  /// The state of a connection.
  package enum State: Sendable {
    /// The handshake is in progress.
    case handshaking
    /// Data may be written.
    case established
    /// The connection failed; nothing more can be sent or received.
    case failed
  }

  /// The state of the connection.
  package private(set) var state = State.handshaking
  /// `true` if the peer has ended its output (`close_notify`).
  package private(set) var isInputClosed = false
  /// `true` if the connection has ended its own output.
  package private(set) var isOutputClosed = false
  let ssl: OpaquePointer
  private let transport: RecordTransport
  /// The context of ``ssl``, held as long as the connection.
  private let context: AnyObject
  /// The size of the read buffer in bytes.
  private static let readBytes = 4096

  /// Creates a connection that waits for a client.
  ///
  /// - Parameter send: Takes the bytes to send, in order, while another function of the connection is called; for
  ///   DTLS, one datagram per call. The closure must not call the connection.
  /// - Throws: ``OpenSSLError``.
  package init(_ context: ServerContext, send: @escaping (UnsafeRawBufferPointer) -> Void) throws(OpenSSLError) {
    (self.context, transport) = (context, RecordTransport(isDatagram: context.isDatagram, send: send))
    ssl = try Self.connection(context.pointer, transport)
    SSL_set_accept_state(ssl)
    if context.isDatagram {
      _ = nightjar_ssl_set_mtu(ssl, Self.datagramBytes)
      DTLS_set_timer_cb(ssl) { _, former in TLSConnection.retransmissionMicroseconds(after: former) }
    }
  }

  /// Creates a connection to a server, which ``begin()`` begins. The server needs a certificate for `host`, a name or an
  /// address.
  ///
  /// - Parameter send: as for a server.
  /// - Throws: ``OpenSSLError``.
  package init(
    _ context: ClientContext, host: String, send: @escaping (UnsafeRawBufferPointer) -> Void
  ) throws(OpenSSLError) {
    (self.context, transport) = (context, RecordTransport(isDatagram: false, send: send))
    ssl = try Self.connection(context.pointer, transport)
    SSL_set_connect_state(ssl)
    nightjar_ssl_check_names_strictly(ssl)
    let isNamed =
      if IPAddress(host) != nil {
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1
      } else {
        SSL_set1_host(ssl, host) == 1 && nightjar_ssl_set_server_name(ssl, host) == 1
      }
    guard isNamed else { throw OpenSSLError("naming the TLS server") }
  }

  private static func connection(
    _ context: OpaquePointer, _ transport: RecordTransport
  ) throws(OpenSSLError) -> OpaquePointer {
    ERR_clear_error()
    guard let ssl = SSL_new(context) else { throw OpenSSLError("beginning TLS") }
    guard let bio = transport.makeBIO() else {
      SSL_free(ssl)
      throw OpenSSLError("beginning TLS")
    }
    SSL_set_bio(ssl, bio, bio)
    return ssl
  }

  deinit { SSL_free(ssl) }

  /// The maximum size of a sent datagram in bytes, without IP and UDP headers.
  package static let datagramBytes = 1200

  /// Takes bytes from the peer, for DTLS one datagram, and passes their plaintext to `deliver`. Bytes after the
  /// peer's `close_notify`, or after a failure, are ignored.
  ///
  /// - Throws: ``TLSConnectionError``, after an alert was sent to the peer.
  package func receive(
    _ bytes: UnsafeRawBufferPointer, deliver: (UnsafeRawBufferPointer) -> Void
  ) throws(TLSConnectionError) {
    guard state != .failed, !isInputClosed else { return }
    transport.input = bytes
    defer { transport.input = UnsafeRawBufferPointer(start: nil, count: 0) }
    guard try shakeHands() else { return }
    try withUnsafeTemporaryAllocation(byteCount: Self.readBytes, alignment: 16) { memory throws(TLSConnectionError) in
      while true {
        var count = 0
        ERR_clear_error()
        let result = SSL_read_ex(ssl, memory.baseAddress, memory.count, &count)
        if result == 1 {
          deliver(UnsafeRawBufferPointer(rebasing: memory[..<count]))
          continue
        }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: return
        case SSL_ERROR_ZERO_RETURN:
          isInputClosed = true
          return
        default: throw fail { .record($0) }
        }
      }
    }
  }

  /// Begins the handshake, for a client.
  ///
  /// - Throws: ``TLSConnectionError``.
  package func begin() throws(TLSConnectionError) { _ = try shakeHands() }

  /// Continues the handshake as far as the received bytes allow. Returns `true` if the handshake is complete.
  func shakeHands() throws(TLSConnectionError) -> Bool {
    guard state == .handshaking else { return true }
    ERR_clear_error()
    let result = SSL_do_handshake(ssl)
    if result == 1 {
      state = .established
      return true
    }
    guard SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ else {
      let verdict = SSL_get_verify_result(ssl)
      if verdict != X509_V_OK, let reason = X509_verify_cert_error_string(verdict) {
        throw fail { _ in .certificate(String(cString: reason)) }
      }
      throw fail { .handshake($0) }
    }
    return false
  }

  /// Encrypts and sends `bytes`, in as many records as necessary.
  ///
  /// - Throws: ``TLSConnectionError``, also before the end of the handshake and after ``closeOutput()``.
  package func write(_ bytes: UnsafeRawBufferPointer) throws(TLSConnectionError) {
    guard state == .established, !isOutputClosed else { throw .notWritable }
    var rest = bytes[...]
    while !rest.isEmpty {
      let part = UnsafeRawBufferPointer(rebasing: rest)
      var count = 0
      ERR_clear_error()
      // The write never blocks: the transport takes all output.
      guard SSL_write_ex(ssl, part.baseAddress, part.count, &count) == 1 else { throw fail { .record($0) } }
      rest = rest.dropFirst(count)
    }
  }

  /// Ends the connection's own output (`close_notify`). The peer may continue to send.
  ///
  /// Nothing is sent before the end of the handshake, or after a failure.
  package func closeOutput() {
    guard state == .established, !isOutputClosed else { return }
    isOutputClosed = true
    ERR_clear_error()
    // Two results change nothing now: 0, which means that the peer has not closed yet, and an error.
    _ = SSL_shutdown(ssl)
    ERR_clear_error()
  }

  /// Records a failure and returns its error.
  func fail(_ error: (String) -> TLSConnectionError) -> TLSConnectionError {
    state = .failed
    return error(OpenSSLError.drain())
  }

  /// The negotiated version, such as `TLSv1.3`.
  package var version: String { String(cString: SSL_get_version(ssl)) }
}
