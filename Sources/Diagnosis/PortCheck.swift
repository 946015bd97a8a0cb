import Capture
import Glibc
import Media

/// Whether a server can listen at a TCP port, and who is in the way.
public struct PortCheck: Sendable {
  /// The answer.
  public enum Answer: Hashable, Sendable {
    /// Nobody listens there.
    case free
    /// Somebody does.
    case held
    /// The system keeps it for others.
    case forbidden
    /// This machine has no such address now.
    case noAddress
    /// It cannot be listened there, by this `errno`.
    case failed(CInt)
  }

  /// Numeric.
  public let address: String
  /// TCP's.
  public let port: Int
  /// What binding there says. Nobody can connect meanwhile: it is not listened at.
  public let answer: Answer

  /// Binds to it for a moment, as a server would.
  public init(address: String, port: Int) {
    (self.address, self.port) = (address, port)
    answer = Self.ask(address, port)
  }

  /// The same address with the next port that is free, as the configuration has it.
  private var another: String {
    let first = port < 1024 ? port + 8000 : port + 1
    let others = first..<min(first + 20, 65_535)
    let free = others.first { PortCheck(address: address, port: $0).answer == .free } ?? first
    let isAny = ["0.0.0.0", "::"].contains(address)
    return (isAny ? "" : address.contains(":") ? "[\(address)]" : address) + ":\(free)"
  }

  private static func ask(_ address: String, _ port: Int) -> Answer {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
    hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(address, "\(port)", &hints, &list) == 0, let entry = list?.pointee else { return .failed(EINVAL) }
    defer { freeaddrinfo(list) }
    let descriptor = socket(entry.ai_family, entry.ai_socktype | CInt(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return .failed(errno) }
    defer { close(descriptor) }
    var yes: CInt = 1
    let size = socklen_t(MemoryLayout<CInt>.size)
    // As servers do: connections that have ended and are remembered are in nobody's way.
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, size)
    if entry.ai_family == AF_INET6 { setsockopt(descriptor, CInt(IPPROTO_IPV6), IPV6_V6ONLY, &yes, size) }
    guard bind(descriptor, entry.ai_addr, entry.ai_addrlen) != 0 else { return .free }
    return switch errno {
    case EADDRINUSE: .held
    case EACCES, EPERM: .forbidden
    case EADDRNOTAVAIL: .noAddress
    case let number: .failed(number)
    }
  }

  /// Who listens at it, as far as `/proc` tells this user.
  var holders: [DeviceHolder] {
    let inodes = ["tcp", "tcp6"].reduce(into: Set<String>()) {
      $0.formUnion(Self.listeners(in: "/proc/net/\($1)", port))
    }
    return inodes.isEmpty ? [] : DeviceHolder.holders(ofSockets: inodes)
  }

  /// The inodes of sockets that listen at `port`, in a table of proc(5).
  static func listeners(in path: String, _ port: Int) -> [String] {
    guard let file = fopen(path, "re") else { return [] }
    defer { fclose(file) }
    var inodes: [String] = []
    var line = [CChar](repeating: 0, count: 512)
    while fgets(&line, CInt(line.count), file) != nil {
      let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
      // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
      let fields = text.split { $0 == " " || $0 == "\n" }
      // 0A is TCP_LISTEN.
      guard fields.count > 9, fields[3] == "0A", let hex = fields[1].split(separator: ":").last,
        Int(hex, radix: 16) == port
      else { continue }
      inodes.append(String(fields[9]))
    }
    return inodes
  }

  /// What is to be said of it.
  ///
  /// - Parameters:
  ///   - service: the option that asks for it: `rtsp`.
  ///   - own: the process of the running stream, which may listen there.
  ///   - isOptional: whether the server does without it where the machine has no such address.
  public func finding(service: String, own: Int32?, isOptional: Bool) -> Finding? {
    let place = "\(service) at \(address) port \(port)"
    let other = Mend.advice("or choose another port: \(service) = \"\(another)\"")
    switch answer {
    case .free: return Finding(.port, "\(place): free")
    case .held:
      let holders = holders
      if let own, holders.contains(where: { $0.processID == own }) {
        return Finding(.port, "\(place): the running stream's")
      }
      // systemd, which hands it to the service.
      if holders.contains(where: { $0.processID == 1 }) {
        return Finding(.port, "\(place): systemd has opened it, for a service (systemctl list-sockets)")
      }
      guard !holders.isEmpty else {
        return Finding(
          .portHeld, "\(place): a program of another user listens there",
          mends: [.command("sudo ss -ltnp 'sport = :\(port)'"), other])
      }
      return Finding(
        .portHeld, "\(place): \(holders.map(\.description).joined(separator: ", ")) listens there",
        mends: [.command("kill \(holders.map { "\($0.processID)" }.joined(separator: " "))"), other])
    case .forbidden:
      return Finding(
        .portLow, "\(place): this user may not listen below port 1024",
        mends: [other, .advice("or have systemd open it: systemd/nightjar-rtsp.socket")])
    case .noAddress:
      if isOptional { return nil }
      return Finding(
        .portAddress, "\(place): this machine has no such address now", mends: [.command("ip -brief address")])
    case .failed(let number):
      if isOptional { return nil }
      return Finding(
        .portAddress, "\(place): \(SystemFailure.text(number))", mends: [.command("ip -brief address")])
    }
  }
}
