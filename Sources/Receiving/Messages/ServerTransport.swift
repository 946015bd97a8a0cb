package import Platform
package import RTSP

/// The `Transport` of a server's response to SETUP, RFC 2326 section 12.39.
package struct ServerTransport: Equatable {
  /// A group that the packets go to.
  package struct Group: Equatable {
    /// The group's address.
    package var address: IPAddress
    /// Its ports.
    package var ports: PortPair
    /// The most routers that packets may pass.
    package var timeToLive: UInt8
    /// The sender; nil where the server does not tell.
    package var sender: IPAddress?
  }

  /// The channels of interleaved data; nil for UDP.
  var channels: ChannelPair?
  /// The server's ports; nil where it tells none.
  package var serverPorts: PortPair?
  /// The stream's source; nil where the server does not tell.
  var source: UInt32?
  /// The group; nil where the packets go to this host alone.
  package var group: Group?

  /// Parses the header's value.
  ///
  /// - Throws: ``ReceiverError/malformed(_:)``.
  package init(_ text: String) throws(ReceiverError) {
    let parts = text.split(separator: ";").map { Text.trimmed($0) }
    guard text.utf8.count <= 1024, let first = parts.first, first.uppercased().hasPrefix("RTP/") else {
      throw .malformed("the server's transport is not RTP: \(Text.printable(text))")
    }
    var isMulticast = false
    var (destination, sender): (IPAddress?, IPAddress?)
    var (ports, timeToLive): (PortPair?, UInt8?)
    for part in parts.dropFirst() {
      let words = part.split(separator: "=", maxSplits: 1)
      guard let name = words.first?.lowercased() else { continue }
      let value = words.count > 1 ? Text.trimmed(words[1]) : ""
      switch name {
      case "multicast": isMulticast = true
      case "interleaved": channels = Self.pair(value)
      case "server_port": serverPorts = Self.pair(value)
      case "ssrc": source = value.utf8.count <= 8 ? UInt32(value, radix: 16) : nil
      case "destination": destination = IPAddress(value)
      case "source": sender = IPAddress(value)
      case "port": ports = Self.pair(value)
      case "ttl": timeToLive = Text.decimal(value, digits: 3).flatMap { UInt8(exactly: $0) }
      default: break
      }
    }
    guard isMulticast else { return }
    guard let destination, destination.isMulticast, let ports, ports.rtp > 0, ports.rtcp > 0, ports.rtp != ports.rtcp
    else { throw .malformed("the server's transport names no group with its ports: \(Text.printable(text))") }
    group = Group(address: destination, ports: ports, timeToLive: timeToLive ?? 1, sender: sender)
  }

  private static func pair<Number>(_ text: String) -> TransportPair<Number>? {
    let numbers = text.split(separator: "-").map { Text.decimal($0, digits: 5).flatMap { Number(exactly: $0) } }
    guard (1...2).contains(numbers.count), let first = numbers[0] else { return nil }
    guard numbers.count == 2 else {
      let (next, isTooLarge) = first.addingReportingOverflow(1)
      return isTooLarge ? nil : TransportPair(rtp: first, rtcp: next)
    }
    return numbers[1].map { TransportPair(rtp: first, rtcp: $0) }
  }
}
