import COpenSSL

/// A BIO between OpenSSL and the owner of the socket. It passes received bytes to OpenSSL, and OpenSSL's output to
/// the owner. It stores no bytes and does no I/O.
final class RecordTransport {
  /// The received bytes that OpenSSL has not read yet; valid only within the call that passed them.
  var input = UnsafeRawBufferPointer(start: nil, count: 0)
  /// `true` if a read consumes a whole datagram.
  private let isDatagram: Bool
  private let send: (UnsafeRawBufferPointer) -> Void

  init(isDatagram: Bool, send: @escaping (UnsafeRawBufferPointer) -> Void) {
    self.isDatagram = isDatagram
    self.send = send
  }

  /// Creates a BIO on this transport, which must outlive the BIO; `nil` if memory is short.
  func makeBIO() -> OpaquePointer? {
    guard let method = Self.method.pointer, let bio = BIO_new(method) else { return nil }
    BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
    BIO_set_init(bio, 1)
    return bio
  }

  private func read(into memory: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(memory.count, input.count)
    memory.copyMemory(from: UnsafeRawBufferPointer(rebasing: input[..<count]))
    input = UnsafeRawBufferPointer(rebasing: input[(isDatagram ? input.count : count)...])
    return count
  }

  private static func of(_ bio: OpaquePointer?) -> RecordTransport? {
    BIO_get_data(bio).map { Unmanaged<RecordTransport>.fromOpaque($0).takeUnretainedValue() }
  }

  /// The BIO method, created once.
  private struct Method: @unchecked Sendable {
    // Sendable: the object at the pointer is not changed after its creation, and never freed.
    let pointer: OpaquePointer?

    init() {
      pointer = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "nightjar")
      BIO_meth_set_read(pointer) { bio, memory, count in
        nightjar_bio_clear_retry(bio)
        guard let transport = RecordTransport.of(bio), let memory, count > 0 else { return 0 }
        guard !transport.input.isEmpty else {
          nightjar_bio_set_retry_read(bio)
          return -1
        }
        return CInt(transport.read(into: UnsafeMutableRawBufferPointer(start: memory, count: Int(count))))
      }
      BIO_meth_set_write(pointer) { bio, bytes, count in
        nightjar_bio_clear_retry(bio)
        guard let transport = RecordTransport.of(bio), let bytes, count > 0 else { return 0 }
        transport.send(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
        return count
      }
      BIO_meth_set_ctrl(pointer) { _, command, _, _ in
        switch command {
        // All output has been passed on already.
        case BIO_CTRL_FLUSH, BIO_CTRL_DUP: 1
        default: 0
        }
      }
    }
  }

  private static let method = Method()
}
