import COpenSSL
import TLS

/// A browser's end of DTLS, by OpenSSL: datagrams go in and out. It has no socket.
final class DTLSClient {
  /// The records that it has to send, one in each datagram.
  var datagrams: [[UInt8]] = []
  private let client: OpaquePointer
  private let fromClient: OpaquePointer
  private let toClient: OpaquePointer

  /// The SHA-256 of its certificate.
  static var fingerprint: [UInt8] { own.fingerprint }

  // Nothing changes the context once it is made.
  nonisolated(unsafe) private static let own: (context: OpaquePointer, fingerprint: [UInt8]) = {
    let contents = Certificate.Contents(commonName: "browser", names: [], addresses: [], validity: 0...4_000_000_000)
    guard let key = try? PrivateKey(), let certificate = try? Certificate.server(contents, key: key),
      let bytes = try? certificate.der, let text = try? key.pem, let memory = nightjar_memory_bio(),
      let context = SSL_CTX_new(DTLS_client_method())
    else { fatalError("no context") }
    let letters = Array(text.utf8)
    guard BIO_write(memory, letters, CInt(letters.count)) > 0,
      let own = PEM_read_bio_PrivateKey(memory, nil, nil, nil), SSL_CTX_use_PrivateKey(context, own) == 1,
      SSL_CTX_use_certificate_ASN1(context, CInt(bytes.count), bytes) == 1,
      // This function alone returns 0 for success.
      SSL_CTX_set_tlsext_use_srtp(context, "SRTP_AEAD_AES_128_GCM:SRTP_AES128_CM_SHA1_80") == 0
    else { fatalError("no context") }
    _ = BIO_free(memory)
    EVP_PKEY_free(own)
    _ = SSL_CTX_set_options(context, nightjar_op_no_query_mtu)
    return (context, HashFunction.sha256.digest(of: bytes))
  }()

  /// Creates a client and its first flight.
  ///
  /// - Parameter datagramBytes: the most bytes of a datagram. Longer messages of the handshake are sent in fragments.
  init?(datagramBytes: Int = TLSConnection.datagramBytes) {
    guard let client = SSL_new(Self.own.context), let fromClient = nightjar_memory_bio(),
      let toClient = nightjar_memory_bio()
    else { return nil }
    (self.client, self.fromClient, self.toClient) = (client, fromClient, toClient)
    SSL_set_bio(client, toClient, fromClient)
    _ = nightjar_ssl_set_mtu(client, datagramBytes)
    SSL_set_connect_state(client)
    step()
  }

  deinit { SSL_free(client) }

  /// `true` once the handshake is complete.
  var isComplete: Bool { SSL_is_init_finished(client) == 1 }

  /// The keys of SRTP, as RFC 5764 section 4.2 divides them.
  func keyingMaterial(bytes count: Int) -> [UInt8] {
    let label = "EXTRACTOR-dtls_srtp"
    var bytes = [UInt8](repeating: 0, count: count)
    guard SSL_export_keying_material(client, &bytes, count, label, label.utf8.count, nil, 0, 0) == 1 else { return [] }
    return bytes
  }

  /// Takes a datagram of the server.
  func receive(_ datagram: [UInt8]) {
    _ = BIO_write(toClient, datagram, CInt(datagram.count))
    step()
  }

  /// Repeats what was not answered, if its time is over.
  func retransmit() {
    ERR_clear_error()
    _ = nightjar_dtls_handle_timeout(client)
    take()
  }

  /// Says goodbye: `close_notify`.
  func close() {
    _ = SSL_shutdown(client)
    step()
  }

  /// Lets the client do what it can, and takes what it says.
  private func step() {
    ERR_clear_error()
    if SSL_is_init_finished(client) == 0 { _ = SSL_do_handshake(client) }
    var memory = [UInt8](repeating: 0, count: 16384)
    let opened = SSL_read(client, &memory, CInt(memory.count))
    precondition(opened <= 0, "data that the server has not sent")
    take()
  }

  private func take() {
    var memory = [UInt8](repeating: 0, count: 16384)
    var bytes: [UInt8] = []
    while case let count = BIO_read(fromClient, &memory, CInt(memory.count)), count > 0 {
      bytes += memory[..<Int(count)]
    }
    ERR_clear_error()
    // A record has a header of 13 bytes with its length at the end, RFC 6347 section 4.1.
    var rest = bytes[...]
    while rest.count >= 13 {
      let count = 13 + (Int(rest[rest.startIndex + 11]) << 8 | Int(rest[rest.startIndex + 12]))
      datagrams.append(Array(rest.prefix(count)))
      rest = rest.dropFirst(count)
    }
  }
}
