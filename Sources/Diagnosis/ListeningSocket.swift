import Glibc
import Media

/// A numeric address of either family, at which a server listens or is to.
public struct ListeningAddress: Hashable, Sendable {
  /// Four bytes or sixteen, in the network's order.
  private let bytes: [UInt8]

  /// An address as a person writes it; nil where it is none.
  public init?(_ text: String) {
    guard let address = IPAddress(text) else { return nil }
    bytes = address.bytes
  }

  /// As proc(5) has it: words of 32 bits in this machine's order.
  init?(hexadecimal: Substring) {
    guard [8, 32].contains(hexadecimal.utf8.count) else { return nil }
    var bytes: [UInt8] = []
    var rest = hexadecimal
    while !rest.isEmpty {
      guard let word = UInt32(rest.prefix(8), radix: 16) else { return nil }
      withUnsafeBytes(of: word) { bytes += $0 }
      rest = rest.dropFirst(8)
    }
    // `::ffff:127.0.0.1` is an address of IPv4 in a socket of IPv6.
    let isMapped = bytes.count == 16 && bytes.prefix(12) == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
    self.bytes = isMapped ? Array(bytes.suffix(4)) : bytes
  }

  /// Whether it is of IPv4.
  var isIPv4: Bool { bytes.count == 4 }
  /// Whether it is all of its family: `0.0.0.0` or `::`.
  var isAny: Bool { bytes.allSatisfy { $0 == 0 } }

  /// Whether nobody can listen here while another does there, at the same port.
  func conflicts(with other: ListeningAddress) -> Bool {
    isIPv4 == other.isIPv4 && (self == other || isAny || other.isAny)
  }

  /// Whether who listens at `other` alone listens here too. Our servers' `::` is none of IPv4's.
  public func isCovered(by other: ListeningAddress) -> Bool {
    isIPv4 == other.isIPv4 && (self == other || other.isAny)
  }
}

/// A TCP socket that listens, in the tables of proc(5).
struct ListeningSocket: Hashable {
  let address: ListeningAddress
  /// What its descriptors are links to: `socket:[INODE]`.
  let inode: String

  /// The tables of both families.
  static let tables = ["/proc/net/tcp", "/proc/net/tcp6"]

  /// Those in the way of a server that is to listen at `address`.
  static func inTheWay(of address: ListeningAddress, port: Int, tables: [String] = tables) -> [ListeningSocket] {
    let all = tables.flatMap { Self.all(in: $0, port: port) }
    let sameFamily = all.filter { address.conflicts(with: $0.address) }
    guard sameFamily.isEmpty, address.isIPv4 else { return sameFamily }
    // `::` takes IPv4 in too unless it says IPV6_V6ONLY, which the table does not tell: to blame where nobody else is.
    return all.filter { !$0.address.isIPv4 && $0.address.isAny }
  }

  /// All at `port` in one table.
  static func all(in path: String, port: Int) -> [ListeningSocket] {
    guard let file = fopen(path, "re") else { return [] }
    defer { fclose(file) }
    var found: [ListeningSocket] = []
    var line = [CChar](repeating: 0, count: 512)
    while fgets(&line, CInt(line.count), file) != nil {
      let text = String(cBuffer: line)
      // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
      let fields = text.split { $0 == " " || $0 == "\n" }
      // 0A is TCP_LISTEN.
      guard fields.count > 9, fields[3] == "0A" else { continue }
      let local = fields[1].split(separator: ":")
      guard local.count == 2, Int(local[1], radix: 16) == port, let address = ListeningAddress(hexadecimal: local[0])
      else { continue }
      found.append(ListeningSocket(address: address, inode: String(fields[9])))
    }
    return found
  }
}
