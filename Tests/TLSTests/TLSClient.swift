import COpenSSL

/// A client's end of TLS, by OpenSSL: bytes go in and out. It has no socket, and takes any certificate.
final class TLSClient {
  /// The bytes that it has to send; whoever carries them takes them away.
  var outgoing: [UInt8] = []
  /// The plaintext that has arrived; whoever reads it may take it away.
  var received: [UInt8] = []
  private let client: OpaquePointer
  private let fromClient: OpaquePointer
  private let toClient: OpaquePointer
  private var memory = [UInt8](repeating: 0, count: Int(TLSClient.memoryBytes))
  private static let memoryBytes: CInt = 16384

  // Nothing changes the contexts once they are made.
  nonisolated(unsafe) private static let contexts = [TLS1_2_VERSION, TLS1_3_VERSION].map { version in
    let context = SSL_CTX_new(TLS_client_method())
    _ = SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(version), nil)
    _ = SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(version), nil)
    return context
  }

  /// Creates a client and its first flight.
  ///
  /// - Parameter isNewest: `true` for TLS 1.3, `false` for TLS 1.2.
  init?(isNewest: Bool) {
    guard let client = SSL_new(Self.contexts[isNewest ? 1 : 0]), let fromClient = nightjar_memory_bio(),
      let toClient = nightjar_memory_bio()
    else { return nil }
    (self.client, self.fromClient, self.toClient) = (client, fromClient, toClient)
    SSL_set_bio(client, toClient, fromClient)
    SSL_set_connect_state(client)
    step()
  }

  deinit { SSL_free(client) }

  /// `true` while it has keys and agrees on no others.
  var isComplete: Bool { SSL_is_init_finished(client) == 1 }
  /// `true` once it has said `close_notify`.
  var hasClosed: Bool { SSL_get_shutdown(client) & SSL_SENT_SHUTDOWN != 0 }
  /// `true` once the server has said `close_notify`.
  var isClosedByServer: Bool { SSL_get_shutdown(client) & SSL_RECEIVED_SHUTDOWN != 0 }

  /// Takes bytes of the server.
  func receive(_ bytes: [UInt8]) {
    if !bytes.isEmpty { _ = BIO_write(toClient, bytes, CInt(bytes.count)) }
    step()
  }

  /// Sends `bytes`. Returns `false` if it can send nothing now.
  func write(_ bytes: [UInt8]) -> Bool {
    guard !bytes.isEmpty, isComplete, !hasClosed else { return false }
    let count = SSL_write(client, bytes, CInt(bytes.count))
    step()
    return count == CInt(bytes.count)
  }

  /// Sends other keys by TLS 1.3, and asks for the server's as well if `requestsAnswer` is set.
  func updateKeys(requestsAnswer: Bool) {
    if isComplete, SSL_version(client) == TLS1_3_VERSION {
      _ = SSL_key_update(client, requestsAnswer ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED)
    }
    step()
  }

  /// Ends its output: `close_notify`. It still receives.
  func close() {
    // A second time, it would read what the server sends.
    if !hasClosed { _ = SSL_shutdown(client) }
    step()
  }

  /// Does what it can, and takes what it has to say.
  private func step() {
    ERR_clear_error()
    if SSL_is_init_finished(client) == 0 { _ = SSL_do_handshake(client) }
    while case let count = SSL_read(client, &memory, Self.memoryBytes), count > 0 {
      received += memory[..<Int(count)]
    }
    while case let count = BIO_read(fromClient, &memory, Self.memoryBytes), count > 0 {
      outgoing += memory[..<Int(count)]
    }
    ERR_clear_error()
  }
}
