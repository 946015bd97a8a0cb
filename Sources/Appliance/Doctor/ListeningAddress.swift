import Glibc
import Platform

/// A numeric address of either family, at which a server listens or is to listen.
package struct ListeningAddress: Hashable, Sendable {
  /// The bytes in network order: four for IPv4, sixteen for IPv6.
  private let bytes: [UInt8]

  /// Parses an address in its usual notation; nil for any other text.
  package init?(_ text: String) {
    guard let address = IPAddress(text) else { return nil }
    bytes = address.bytes
  }

  /// Parses the notation of proc(5): words of 32 bits in this machine's byte order.
  init?(hexadecimal: Substring) {
    guard [8, 32].contains(hexadecimal.utf8.count) else { return nil }
    var bytes: [UInt8] = []
    var rest = hexadecimal
    while !rest.isEmpty {
      guard let word = UInt32(rest.prefix(8), radix: 16) else { return nil }
      withUnsafeBytes(of: word) { bytes += $0 }
      rest = rest.dropFirst(8)
    }
    // `::ffff:127.0.0.1` is an IPv4 address in an IPv6 socket.
    let isMapped = bytes.count == 16 && bytes.prefix(12) == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
    self.bytes = isMapped ? Array(bytes.suffix(4)) : bytes
  }

  /// `true` for an IPv4 address.
  var isIPv4: Bool { bytes.count == 4 }
  /// `true` for the wildcard address of either family: `0.0.0.0` or `::`.
  var isAny: Bool { bytes.allSatisfy { $0 == 0 } }

  /// Returns `true` if no server can listen here while another listens at `other`, at the same port.
  func conflicts(with other: ListeningAddress) -> Bool {
    isIPv4 == other.isIPv4 && (self == other || isAny || other.isAny)
  }

  /// Returns `true` if a server that listens at `other` only also listens here. The appliance's own `::` sockets do not
  /// accept IPv4.
  package func isCovered(by other: ListeningAddress) -> Bool {
    isIPv4 == other.isIPv4 && (self == other || other.isAny)
  }
}

/// A listening TCP socket, or a UDP socket that is bound, in the kernel's tables, proc(5).
package struct SocketTableEntry: Hashable {
  let address: ListeningAddress
  /// The socket's inode, to which its descriptors link: `socket:[INODE]`.
  package let inode: String

  /// The kind of socket.
  package enum Kind {
    case stream
    case datagram

    /// The tables of both families.
    var tables: [String] {
      self == .stream ? ["/proc/net/tcp", "/proc/net/tcp6"] : ["/proc/net/udp", "/proc/net/udp6"]
    }
    /// The state of a socket at which clients arrive: TCP_LISTEN, or TCP_CLOSE for one that is not connected.
    var state: Substring { self == .stream ? "0A" : "07" }
  }

  /// Returns the sockets that prevent a server from listening at `address`.
  package static func inTheWay(
    of address: ListeningAddress, port: Int, _ kind: Kind = .stream, tables: [String]? = nil
  ) -> [SocketTableEntry] {
    let all = (tables ?? kind.tables).flatMap { Self.all(in: $0, port: port, kind) }
    let sameFamily = all.filter { address.conflicts(with: $0.address) }
    guard sameFamily.isEmpty, address.isIPv4 else { return sameFamily }
    // `::` accepts IPv4 too unless the socket has IPV6_V6ONLY, which the table does not show. So it is reported only
    // where no other socket conflicts.
    return all.filter { !$0.address.isIPv4 && $0.address.isAny }
  }

  /// Returns all sockets at `port` in one table.
  static func all(in path: String, port: Int, _ kind: Kind = .stream) -> [SocketTableEntry] {
    guard let file = fopen(path, "re") else { return [] }
    defer { fclose(file) }
    var found: [SocketTableEntry] = []
    var line = [CChar](repeating: 0, count: 512)
    while fgets(&line, CInt(line.count), file) != nil {
      let text = String(cBuffer: line)
      // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
      let fields = text.split { $0 == " " || $0 == "\n" }
      guard fields.count > 9, fields[3] == kind.state else { continue }
      let local = fields[1].split(separator: ":")
      guard local.count == 2, Int(local[1], radix: 16) == port, let address = ListeningAddress(hexadecimal: local[0])
      else { continue }
      found.append(SocketTableEntry(address: address, inode: String(fields[9])))
    }
    return found
  }
}
