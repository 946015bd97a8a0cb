import COpenSSL

/// The server's end of one connection by TLS or DTLS: bytes go in and out, it has no socket and no clock.
///
/// Of one thread at a time. It keeps no more than one incomplete record, and a message of the handshake of at most 128 KiB.
package final class TLSConnection {
  /// How far it is.
  package enum State: Sendable {
    /// Keys are being agreed on.
    case handshaking
    /// Data may be written.
    case established
    /// It broke off; nothing more can be sent or received.
    case failed
  }

  /// How far it is.
  package private(set) var state = State.handshaking
  /// Whether the peer has said that it sends nothing more (`close_notify`).
  package private(set) var isInputClosed = false
  /// Whether the peer was told that nothing more is sent.
  package private(set) var isOutputClosed = false
  let ssl: OpaquePointer
  private let transport: RecordTransport
  private let context: ServerContext
  /// What is opened at once, in bytes.
  private static let readBytes = 4096

  /// Waits for a client.
  ///
  /// - Parameter send: Takes what is to be sent, in order, while another function of the connection is called; of DTLS a
  ///   datagram each time. It must not call the connection.
  /// - Throws: ``OpenSSLError``.
  package init(_ context: ServerContext, send: @escaping (UnsafeRawBufferPointer) -> Void) throws(OpenSSLError) {
    self.context = context
    transport = RecordTransport(isDatagram: context.isDatagram, send: send)
    ERR_clear_error()
    guard let ssl = SSL_new(context.pointer) else { throw OpenSSLError("beginning TLS") }
    guard let bio = transport.makeBIO() else {
      SSL_free(ssl)
      throw OpenSSLError("beginning TLS")
    }
    SSL_set_bio(ssl, bio, bio)
    SSL_set_accept_state(ssl)
    if context.isDatagram { _ = nightjar_ssl_set_mtu(ssl, Self.datagramBytes) }
    self.ssl = ssl
  }

  deinit { SSL_free(ssl) }

  /// The most bytes of a datagram that is sent, without IP's and UDP's headers.
  package static let datagramBytes = 1200

  /// Takes what the peer has sent, of DTLS one datagram, and hands its plaintext to `deliver`. What comes behind the peer's
  /// `close_notify`, or after a failure, is ignored.
  ///
  /// - Throws: ``TLSConnectionError``; an alert for the peer has been sent then.
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

  /// Goes on with the handshake as far as what was received allows; whether it is complete.
  func shakeHands() throws(TLSConnectionError) -> Bool {
    guard state == .handshaking else { return true }
    ERR_clear_error()
    let result = SSL_do_handshake(ssl)
    if result == 1 {
      state = .established
      return true
    }
    guard SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ else { throw fail { .handshake($0) } }
    return false
  }

  /// Encrypts and sends `bytes`, in as many records as it needs.
  ///
  /// - Throws: ``TLSConnectionError``, also where the handshake is not complete, or ``closeOutput()`` was called.
  package func write(_ bytes: UnsafeRawBufferPointer) throws(TLSConnectionError) {
    guard state == .established, !isOutputClosed else { throw .notWritable }
    var rest = bytes[...]
    while !rest.isEmpty {
      let part = UnsafeRawBufferPointer(rebasing: rest)
      var count = 0
      ERR_clear_error()
      // It never wants to wait: all that it makes is taken.
      guard SSL_write_ex(ssl, part.baseAddress, part.count, &count) == 1 else { throw fail { .record($0) } }
      rest = rest.dropFirst(count)
    }
  }

  /// Tells the peer that nothing more is sent (`close_notify`). It may go on sending itself.
  ///
  /// Nothing is sent before the handshake is complete, or after a failure.
  package func closeOutput() {
    guard state == .established, !isOutputClosed else { return }
    isOutputClosed = true
    ERR_clear_error()
    // Neither 0, which says that the peer has not closed yet, nor an error changes anything now.
    _ = SSL_shutdown(ssl)
    ERR_clear_error()
  }

  /// Notes a failure; the error of it.
  func fail(_ error: (String) -> TLSConnectionError) -> TLSConnectionError {
    state = .failed
    return error(OpenSSLError.drain())
  }

  /// The version that was agreed on, such as `TLSv1.3`.
  package var version: String { String(cString: SSL_get_version(ssl)) }
}
