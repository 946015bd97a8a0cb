import CMosquitto
import Glibc
import Platform

/// The way of the bytes between libmosquitto and its broker, a portion at a time. Confined to the thread of its client.
///
/// libmosquitto 2.0 takes a packet of any size into memory, and reads on as long as the broker sends. So it gets one end of a pair of
/// sockets in place of its connection: what it has read is known after each portion, and the connection can be ended in time.
struct MeteredSocket: ~Copyable {
  /// The most bytes that libmosquitto gets at a time. A pair of sockets has room for more.
  static let portion = 16 << 10

  private let connection: FileDescriptor
  private let inner: FileDescriptor
  /// The bytes of libmosquitto that the connection has not taken yet.
  private var rest: ArraySlice<UInt8> = []
  private var buffer = [UInt8](repeating: 0, count: Self.portion)
  /// `true` once the broker has ended the connection, and all that it had sent before was read.
  private(set) var isEnded = false
  /// `true` once the broker takes nothing more. What it has sent before is still read.
  private var isDeaf = false

  /// Takes the connection of `descriptor` over, and puts an end of the pair in its place.
  ///
  /// - Throws: ``SystemFailure``.
  init(_ descriptor: CInt) throws(SystemFailure) {
    let connection = try FileDescriptor(from: "fcntl") { fcntl(descriptor, F_DUPFD_CLOEXEC, 0) }
    var ends: [CInt] = [-1, -1]
    let kind = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw SystemFailure("socketpair") }
    let inner = FileDescriptor(owning: ends[0])
    let outer = FileDescriptor(owning: ends[1])
    _ = try syscall("dup3") { nightjar_replace_descriptor(outer.number, descriptor, O_CLOEXEC) }
    self.connection = connection
    self.inner = inner
  }

  /// The connection's descriptor.
  var number: CInt { connection.number }

  /// `true` if the connection has not taken everything.
  var isWaiting: Bool { !rest.isEmpty }

  /// Gives libmosquitto the next portion. Returns the number of its bytes.
  ///
  /// - Throws: ``ExchangeError``.
  mutating func receive() throws(ExchangeError) -> Int {
    guard !isEnded else { return 0 }
    let (from, to, limit) = (connection.number, inner.number, Self.portion)
    let count = uninterrupted { recv(from, &buffer, limit, CInt(MSG_DONTWAIT)) }
    guard count > 0 else {
      if count == 0 || errno == ECONNRESET || errno == EPIPE {
        end()
      } else if errno != EAGAIN {
        throw .system(SystemFailure.text(errno))
      }
      return 0
    }
    let given = uninterrupted { Glibc.send(to, &buffer, count, CInt(MSG_NOSIGNAL)) }
    // The owner lets libmosquitto read all before the next portion.
    guard given == count else { throw .system(SystemFailure.text(given < 0 ? errno : ENOBUFS)) }
    return count
  }

  /// Gives the connection what libmosquitto has written, as far as it has room.
  mutating func flush() {
    let (from, to, limit) = (inner.number, connection.number, Self.portion)
    while !isEnded, !isDeaf {
      if rest.isEmpty {
        let count = uninterrupted { recv(from, &buffer, limit, CInt(MSG_DONTWAIT)) }
        guard count > 0 else { return }
        rest = buffer[..<count]
      }
      let sent = rest.withUnsafeBytes { bytes in
        uninterrupted { Glibc.send(to, bytes.baseAddress, bytes.count, CInt(MSG_NOSIGNAL)) }
      }
      guard sent >= 0 else {
        if errno == EPIPE || errno == ECONNRESET { (isDeaf, rest) = (true, []) }
        return
      }
      rest = rest.dropFirst(sent)
    }
  }

  /// Lets libmosquitto see the end.
  private mutating func end() {
    isEnded = true
    rest = []
    shutdown(inner.number, CInt(SHUT_WR))
  }
}
