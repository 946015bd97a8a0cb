/// An IP address as a session description may name it, RFC 8866 section 9 (`IP4-address`, `IP6-address`).
public struct ConnectionAddress: Hashable, Sendable, CustomStringConvertible {
  /// `IP4` or `IP6`.
  public let family: Family
  /// The address as text, without a zone.
  public let description: String
  /// Whether it names a group: 224.0.0.0/4 or ff00::/8.
  public let isMulticast: Bool

  /// `addrtype` of RFC 8866.
  public enum Family: String, Sendable {
    /// IPv4.
    case ip4 = "IP4"
    /// IPv6.
    case ip6 = "IP6"
  }

  /// 127.0.0.1.
  public static let loopback = ConnectionAddress(family: .ip4, description: "127.0.0.1", isMulticast: false)
  /// ::1.
  public static let loopback6 = ConnectionAddress(family: .ip6, description: "::1", isMulticast: false)

  /// The address that `text` writes in digits, as `inet_ntop` does; nil for a host name or anything else.
  ///
  /// A zone (`fe80::1%eth0`) is left off: it names an interface of this machine, which no receiver knows.
  public init?(_ text: String) {
    guard text.utf8.count <= 64 else { return nil }
    if let parts = Self.dotted(text[...]) {
      self.init(family: .ip4, description: text, isMulticast: (224...239).contains(parts[0]))
      return
    }
    let zoneless = text.prefix { $0 != "%" }
    guard let groups = Self.groups(zoneless) else { return nil }
    self.init(family: .ip6, description: String(zoneless), isMulticast: groups[0] >> 8 == 0xff)
  }

  private init(family: Family, description: String, isMulticast: Bool) {
    self.family = family
    self.description = description
    self.isMulticast = isMulticast
  }

  /// The four numbers of a dotted IPv4 address; no leading zeros, which some read as octal.
  private static func dotted(_ text: Substring) -> [UInt16]? {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 4 else { return nil }
    var numbers: [UInt16] = []
    for part in parts {
      guard (1...3).contains(part.utf8.count), part.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
        part == "0" || part.utf8.first != 0x30, let number = UInt8(part)
      else { return nil }
      numbers.append(UInt16(number))
    }
    return numbers
  }

  /// The eight groups of an IPv6 address, RFC 4291 section 2.2.
  private static func groups(_ text: Substring) -> [UInt16]? {
    guard let gap = firstDoubleColon(in: text) else {
      guard let all = plainGroups(text, isEnd: true), all.count == 8 else { return nil }
      return all
    }
    guard let head = plainGroups(text[..<gap.lowerBound], isEnd: false),
      let tail = plainGroups(text[gap.upperBound...], isEnd: true), head.count + tail.count < 8
    else { return nil }
    return head + [UInt16](repeating: 0, count: 8 - head.count - tail.count) + tail
  }

  private static func firstDoubleColon(in text: Substring) -> Range<Substring.Index>? {
    guard var index = text.firstIndex(of: ":") else { return nil }
    while true {
      let next = text.index(after: index)
      guard next < text.endIndex else { return nil }
      if text[index] == ":", text[next] == ":" { return index..<text.index(after: next) }
      index = next
    }
  }

  /// Groups with single colons between them; an empty text has none. At the end of an address the last two may be
  /// written as a dotted IPv4 address.
  private static func plainGroups(_ text: Substring, isEnd: Bool) -> [UInt16]? {
    if text.isEmpty { return [] }
    var groups: [UInt16] = []
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    for (index, part) in parts.enumerated() {
      if isEnd, index == parts.count - 1, let numbers = dotted(part) {
        groups += [numbers[0] << 8 | numbers[1], numbers[2] << 8 | numbers[3]]
      } else {
        guard (1...4).contains(part.utf8.count), part.utf8.first != 0x2b, let group = UInt16(part, radix: 16) else {
          return nil
        }
        groups.append(group)
      }
    }
    return groups.count <= 8 ? groups : nil
  }
}
