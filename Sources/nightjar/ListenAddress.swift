import ArgumentParser
import Media

/// `ADDRESS:PORT`, `:PORT`, `ADDRESS`, or nothing of both.
struct ListenAddress: ExpressibleByArgument, CustomStringConvertible {
  /// How to write one.
  static let rule = "write ADDRESS:PORT, :PORT or ADDRESS, numeric, ports from 1 to 65535, as in 192.168.1.5:8554"

  /// Numeric, without brackets; nil where none was given.
  private(set) var address: String?
  /// The port; nil where none was given.
  private(set) var port: Int?
  /// What was given, where it is none of these. Not a failure to make one: the parser would take the option for a flag,
  /// and complain of an unexpected argument.
  private(set) var unreadable: String?

  init() {}

  init(argument: String) {
    if let (address, port) = Self.parts(of: argument) {
      self.address = address
      self.port = port
    } else {
      unreadable = argument
    }
  }

  var description: String {
    switch (address, port) {
    case (nil, nil): unreadable ?? "the usual one"
    case (let address?, let port?): address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)"
    case (let address?, nil): address
    case (nil, let port?): ":\(port)"
    }
  }

  var defaultValueDescription: String { description }

  /// Whether both cannot be listened at together, where a port that was not given is one of `ports`.
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
