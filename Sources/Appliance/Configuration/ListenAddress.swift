import Platform
package import Serving

/// An address to listen at: `ADDRESS:PORT`, `:PORT`, `ADDRESS`, or neither.
package struct ListenAddress: Hashable, Sendable, CustomStringConvertible {
  /// The rule for writing an address.
  private static let rule =
    "write ADDRESS:PORT, :PORT or ADDRESS, numeric, ports from 1 to 65535, as in 192.168.1.5:8554"

  /// The numeric address, without brackets; `nil` if none was given.
  package private(set) var address: String?
  /// The port; `nil` if none was given.
  package private(set) var port: Int?
  init() {}

  /// Parses the text.
  package init(parsing text: String) throws(ValueError) {
    guard let (address, port) = Self.parts(of: text) else { throw ValueError("\(Self.rule)") }
    (self.address, self.port) = (address, port)
  }

  package var description: String {
    switch (address, port) {
    case (nil, nil): "the usual one"
    case (let address?, let port?): "\(IPAddress.bracketed(address)):\(port)"
    case (let address?, nil): address
    case (nil, let port?): ":\(port)"
    }
  }

  /// Returns `true` if one host cannot listen at both addresses. `own` and `others` are the default ports.
  func overlaps(_ other: ListenAddress, ports own: Int, _ others: Int) -> Bool {
    guard (port ?? own) == (other.port ?? others) else { return false }
    return address == nil || other.address == nil || address == other.address
  }

  private static func parts(of argument: String) -> (address: String?, port: Int?)? {
    guard !argument.isEmpty, argument != ":" else { return nil }
    var address: String?
    var port: Int?
    var rest = Substring(argument)
    if rest.hasPrefix("[") {
      guard let end = rest.firstIndex(of: "]") else { return nil }
      address = String(rest[rest.index(after: rest.startIndex)..<end])
      rest = rest[rest.index(after: end)...]
    } else if rest.filter({ $0 == ":" }).count > 1 {
      address = String(rest)
      rest = ""
    } else {
      let host = rest.prefix { $0 != ":" }
      if !host.isEmpty { address = String(host) }
      rest = rest.dropFirst(host.count)
    }
    if !rest.isEmpty {
      guard rest.hasPrefix(":"), let number = Self.port(rest.dropFirst()) else { return nil }
      port = number
    }
    // A number alone is a port.
    if port == nil, let text = address, let number = Self.port(Substring(text)) { (address, port) = (nil, number) }
    if let address, IPAddress(address) == nil { return nil }
    return (address, port)
  }

  private static func port(_ text: Substring) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text),
      (1...65_535).contains(number)
    else { return nil }
    return number
  }
}

extension ListenAddress {
  /// Returns the listeners: at the given address, otherwise at all addresses, or at the loopback addresses if the
  /// server must not be open to other hosts. Returns `nil` if other hosts could reach the given address, and must not.
  package func listeners(port: Int, isEncrypted: Bool, isOpenToOthers: Bool) -> [TCPListener]? {
    let port = self.port ?? port
    guard let address else {
      return (isOpenToOthers ? ["0.0.0.0", "::"] : ["127.0.0.1", "::1"]).map {
        TCPListener(address: $0, port: port, isEncrypted: isEncrypted, isOptional: $0.contains(":"))
      }
    }
    guard isOpenToOthers || PeerAddress(address)?.isLoopback == true else { return nil }
    return [TCPListener(address: address, port: port, isEncrypted: isEncrypted)]
  }
}
