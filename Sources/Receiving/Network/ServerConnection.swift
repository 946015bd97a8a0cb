import CLinux
import Glibc
import Platform
import TLS

/// The TCP connection to a server, encrypted or not. One thread uses it; no call waits, except ``connect``.
final class ServerConnection {
  /// The certificate that a server must have.
  enum Trust {
    /// One for the host's name, by an authority that the system trusts.
    case authorities(ClientContext)
    /// One with this SHA-256 of its DER, whoever signed it.
    case fingerprint(ClientContext, [UInt8])
  }

  /// The bytes for the network that it has not taken yet.
  private final class Output {
    var bytes: [UInt8] = []
  }

  /// The server's address.
  let address: PeerAddress
  private let socket: FileDescriptor
  private let output = Output()
  private var tls: TLSConnection?
  private let fingerprint: [UInt8]?
  /// Plain bytes that wait for the end of the handshake.
  private var waiting: [UInt8] = []

  /// The limit of bytes that wait for the network: requests and reports. A server that reads nothing is given up.
  private static let outputLimit = 256 << 10
  /// The bytes of one read, and the reads of one call: media must not keep the thread from its other work.
  private static let (readBytes, readLimit) = (65_536, 16)

  /// Connects to `address`, until `deadline` at most, or until `stop` is readable.
  ///
  /// - Throws: ``ReceiverError``.
  init(
    _ address: PeerAddress, host: String, trust: Trust?, by deadline: Instant, stop: CInt
  ) throws(ReceiverError) {
    self.address = address
    socket = try Self.connected(address, by: deadline, stop: stop)
    let output = output
    func secure(_ context: ClientContext) throws(ReceiverError) -> TLSConnection {
      do {
        let made = try TLSConnection(context, host: host) { output.bytes += $0 }
        try made.begin()
        return made
      } catch {
        throw .encryption("\(error)")
      }
    }
    switch trust {
    case nil: (tls, fingerprint) = (nil, nil)
    case .authorities(let context)?: (tls, fingerprint) = (try secure(context), nil)
    case .fingerprint(let context, let digest)?: (tls, fingerprint) = (try secure(context), digest)
    }
  }

  /// The address of this host on the connection; nil where the system does not tell.
  var localAddress: IPAddress? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutableBytes(of: &storage) { bytes in
      guard let pointer = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self),
        getsockname(socket.number, pointer, &length) == 0
      else { return nil }
      return PeerAddress(pointer, count: Int(length))?.address
    }
  }

  /// The socket, to be polled.
  var descriptor: CInt { socket.number }

  /// `true` while bytes wait for the network: the socket must be polled for output too.
  var hasOutput: Bool { !output.bytes.isEmpty }

  private static func connected(
    _ address: PeerAddress, by deadline: Instant, stop: CInt
  ) throws(ReceiverError) -> FileDescriptor {
    let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let number = Glibc.socket(address.family, type, 0)
    guard number >= 0 else { throw .connection("socket: \(SystemFailure.text(errno))") }
    let made = FileDescriptor(owning: number)
    let result = address.withSocketAddress { connect(number, $0, $1) }
    if result != 0 {
      guard errno == EINPROGRESS || errno == EINTR else { throw refused(address, errno) }
      var polled = [
        pollfd(fd: number, events: Int16(POLLOUT), revents: 0), pollfd(fd: stop, events: Int16(POLLIN), revents: 0),
      ]
      while true {
        let rest = (deadline - .now()).nanoseconds
        guard rest > 0 else { throw .time("\(address.address.text) port \(address.port) does not take the connection") }
        guard nightjar_poll(&polled, 2, rest) > 0 else { continue }
        if polled[1].revents != 0 { throw .stopped }
        break
      }
      var (error, size): (CInt, socklen_t) = (0, 4)
      getsockopt(number, SOL_SOCKET, SO_ERROR, &error, &size)
      guard error == 0 else { throw refused(address, error) }
    }
    // Reports and requests are small and must not wait for each other.
    try? made.set(CInt(IPPROTO_TCP), TCP_NODELAY, CInt(1))
    return made
  }

  private static func refused(_ address: PeerAddress, _ error: CInt) -> ReceiverError {
    .connection("\(address.address.text) port \(address.port): \(SystemFailure.text(error))")
  }

  /// Sends `bytes`, as far as the network takes them now; the rest waits.
  ///
  /// - Throws: ``ReceiverError``.
  func send(_ bytes: [UInt8]) throws(ReceiverError) {
    if let tls {
      if tls.state == .handshaking {
        waiting += bytes
      } else {
        do throws(TLSConnectionError) {
          try bytes.span.bytes.withUnsafeBytes { bytes throws(TLSConnectionError) in try tls.write(bytes) }
        } catch {
          throw .encryption("\(error)")
        }
      }
    } else {
      output.bytes += bytes
    }
    try flush()
  }

  /// Sends what waits for the network, as far as it takes it now.
  ///
  /// - Throws: ``ReceiverError``.
  func flush() throws(ReceiverError) {
    var sent = 0
    defer { output.bytes.removeFirst(sent) }
    while sent < output.bytes.count {
      let count = output.bytes[sent...].withUnsafeBytes { nightjar_send_bytes(socket.number, $0.baseAddress, $0.count) }
      if count > 0 {
        sent += count
      } else if errno == EAGAIN {
        guard output.bytes.count - sent + waiting.count <= Self.outputLimit else {
          throw .connection("the server reads nothing")
        }
        return
      } else if errno != EINTR {
        throw .connection("send: \(SystemFailure.text(errno))")
      }
    }
  }

  /// Passes the bytes that have come to `deliver`. Returns `false` at the end of the connection.
  ///
  /// - Throws: ``ReceiverError``, and the errors of `deliver`.
  func receive(_ deliver: (UnsafeRawBufferPointer) throws(ReceiverError) -> Void) throws(ReceiverError) -> Bool {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.readBytes, alignment: 16)
    defer { memory.deallocate() }
    for _ in 0..<Self.readLimit {
      let count = recv(socket.number, memory.baseAddress, memory.count, 0)
      if count == 0 { return false }
      if count < 0 {
        if errno == EAGAIN { return true }
        if errno == EINTR { continue }
        throw .connection("recv: \(SystemFailure.text(errno))")
      }
      let bytes = UnsafeRawBufferPointer(rebasing: memory[..<count])
      guard let tls else {
        try deliver(bytes)
        continue
      }
      let isGoing = try receive(bytes, tls, deliver)
      guard isGoing else { return false }
    }
    return true
  }

  private func receive(
    _ bytes: UnsafeRawBufferPointer, _ tls: TLSConnection,
    _ deliver: (UnsafeRawBufferPointer) throws(ReceiverError) -> Void
  ) throws(ReceiverError) -> Bool {
    let isNew = tls.state == .handshaking
    var failure: ReceiverError?
    do throws(TLSConnectionError) {
      try tls.receive(bytes) { plain in
        // Nothing of a server that is not the right one counts.
        guard failure == nil, self.isRight(tls) else { return }
        do throws(ReceiverError) { try deliver(plain) } catch { failure = error }
      }
    } catch {
      throw .encryption("\(error)")
    }
    if let failure { throw failure }
    if isNew, tls.state == .established {
      guard isRight(tls) else {
        throw .encryption("the server has another certificate than the one whose fingerprint was given")
      }
      let first = waiting
      waiting = []
      if !first.isEmpty { try send(first) }
    }
    try flush()
    return !tls.isInputClosed
  }

  /// `true` if the server has the certificate that it must have; the authorities were asked by TLS itself.
  private func isRight(_ tls: TLSConnection) -> Bool { fingerprint == nil || tls.peerFingerprint == fingerprint }

  /// Ends the output, as far as that can be done at once.
  func close() {
    tls?.closeOutput()
    // It is over in any case.
    try? flush()
  }
}
