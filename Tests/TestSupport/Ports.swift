import CLinux
import Foundation
import Media
import Platform
import Synchronization

/// Port numbers that no other test has. Between the look that finds a port free and the program that is told to bind
/// it, another test, or a connection of the kernel's choice, could take it. They come by eights: a destination at a
/// port sends its RTCP to the next one, and its sound four above.
private enum PortClaims {
  /// The kernel chooses ports from 32,768 on. Tests that write a number take one below these.
  static let numbers: ClosedRange<UInt16> = 20_000...32_000
  /// A byte of this file is a port. The kernel gives up a process's locks when it ends.
  private static let file: Int32 = {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("nightjar-test-ports").path
    // The kernel may refuse to create what another user has left in a folder for all (fs.protected_regular).
    let existing = open(path, O_RDWR | O_CLOEXEC)
    guard existing < 0 else { return existing }
    let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o666)
    chmod(path, 0o666)
    return file
  }()
  /// Locks are a process's: its own claims do not keep it off.
  private static let own = Mutex<Set<UInt16>>([])

  /// The number of ports that are claimed at once.
  static let block: UInt16 = 8

  /// The first of ``block`` numbers that are this process's from now on, for which `isFree` holds.
  static func take(where isFree: (UInt16) throws -> Bool) throws -> UInt16 {
    guard file >= 0 else { throw SystemFailure("open the test ports' file") }
    for _ in 0..<1000 {
      let number = UInt16.random(in: numbers) / block * block
      guard own.withLock({ $0.insert(number).inserted }) else { continue }
      var lock = flock()
      lock.l_type = Int16(F_WRLCK)
      lock.l_whence = Int16(SEEK_SET)
      lock.l_start = off_t(number)
      lock.l_len = off_t(block)
      if fcntl(file, F_SETLK, &lock) == 0, try isFree(number) { return number }
    }
    throw CocoaError(.featureUnsupported)
  }

  /// `true` if no socket of this machine has the number, at any address. The kernel's tables in /proc/net can miss a
  /// socket: they are read in parts, and sockets come and go in between.
  static func canBind(_ port: UInt16, _ kind: __socket_type) -> Bool {
    // An IPv6 socket at the unspecified address collides with those of IPv4 too.
    var (domain, descriptor) = (AF_INET6, socket(AF_INET6, Int32(kind.rawValue), 0))
    if descriptor < 0 { (domain, descriptor) = (AF_INET, socket(AF_INET, Int32(kind.rawValue), 0)) }
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var storage = sockaddr_storage()
    return withUnsafeMutableBytes(of: &storage) { bytes in
      if domain == AF_INET6 {
        let address = bytes.assumingMemoryBound(to: sockaddr_in6.self)
        address[0].sin6_family = sa_family_t(domain)
        address[0].sin6_port = port.bigEndian
        return bind(descriptor, address.baseAddress, MemoryLayout<sockaddr_in6>.size)
      }
      let address = bytes.assumingMemoryBound(to: sockaddr_in.self)
      address[0].sin_family = sa_family_t(domain)
      address[0].sin_port = port.bigEndian
      return bind(descriptor, address.baseAddress, MemoryLayout<sockaddr_in>.size)
    } == 0
  }

  private static func bind(_ descriptor: Int32, _ address: UnsafeRawPointer?, _ size: Int) -> Int32 {
    Glibc.bind(descriptor, address?.assumingMemoryBound(to: sockaddr.self), socklen_t(size))
  }
}

/// TCP ports of this machine.
package enum TCPPort {
  /// One that nobody listens at, claimed by this process.
  package static func free() throws -> Int {
    Int(try PortClaims.take { PortClaims.canBind($0, SOCK_STREAM) })
  }
}

/// UDP ports of this machine.
package enum UDPPort {
  /// An even port that is free, with the seven behind it, for RTP and RTCP of the picture and the sound.
  package static func free() throws -> UInt16 {
    try PortClaims.take { port in (port..<port + PortClaims.block).allSatisfy { PortClaims.canBind($0, SOCK_DGRAM) } }
  }

  /// Sends one datagram; here an RTCP BYE (RFC 3550 section 6.6), on which receivers end.
  package static func send(_ bytes: [UInt8], to host: String, port: UInt16) throws {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, "\(port)", &hints, &list) == 0, let address = list?.pointee else {
      throw CocoaError(.fileNoSuchFile)
    }
    defer { freeaddrinfo(list) }
    let socket = socket(address.ai_family, address.ai_socktype, 0)
    defer { close(socket) }
    guard sendto(socket, bytes, bytes.count, 0, address.ai_addr, address.ai_addrlen) == bytes.count else {
      throw CocoaError(.fileWriteUnknown)
    }
  }

  /// `true` if some program of this machine is bound to `port`, by the kernel's own table. That is read in parts and
  /// can miss it once, while other sockets come and go.
  package static func isBound(_ port: UInt16) throws -> Bool {
    try !rows(port).isEmpty
  }

  /// Returns the bytes that wait in the sockets at `port` until their program takes them, by the kernel's table: as it
  /// counts, with what each packet costs itself.
  package static func waitingBytes(_ port: UInt16) throws -> Int {
    // Of "tx_queue:rx_queue", the latter.
    try rowsOfBound(port).reduce(0) { $0 + (Int($1[4].split(separator: ":").last ?? "", radix: 16) ?? 0) }
  }

  /// Returns the number of datagrams that the kernel had no room for in the sockets at `port`.
  package static func droppedDatagrams(_ port: UInt16) throws -> Int {
    try rowsOfBound(port).reduce(0) { $0 + (Int($1.last ?? "") ?? 0) }
  }

  /// The fields of each socket at `port`, which some program is bound to. Where the table has none, it has missed one
  /// while other sockets came and went, or the program has ended.
  private static func rowsOfBound(_ port: UInt16) throws -> [[Substring]] {
    for _ in 0..<20 {
      let rows = try rows(port)
      if !rows.isEmpty { return rows }
    }
    return []
  }

  /// The fields of each socket at `port`.
  private static func rows(_ port: UInt16) throws -> [[Substring]] {
    let hex = String(format: ":%04X", port)
    var rows: [[Substring]] = []
    for table in ["/proc/net/udp", "/proc/net/udp6"] where access(table, F_OK) == 0 {
      for line in try KernelFile.text(table).split(separator: "\n").dropFirst() {
        let fields = line.split(separator: " ")
        if fields.count > 4, fields[1].hasSuffix(hex) { rows.append(fields) }
      }
    }
    return rows
  }
}

/// ffmpeg's options for a stream by RTSP.
package enum FFmpegTransport {
  /// The options for `transport`; nil leaves the choice to ffmpeg. On its own, ffmpeg takes ports from 5000 on, and so those that
  /// a test has claimed for another program; and its socket has no room for a large picture while it waits for a processor.
  package static func options(_ transport: String?) -> [String] {
    (transport.map { ["-rtsp_transport", $0] } ?? [])
      + (transport == "tcp" ? [] : ["-min_port", "33000", "-max_port", "60000", "-buffer_size", "4000000"])
  }
}
