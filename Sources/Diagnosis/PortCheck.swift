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

  /// Another port at the same address that is free, as the configuration has it; nil where none is near. Some are bound
  /// for a moment to find it.
  private var another: String? {
    let first = port < 1024 ? port + 8000 : port + 1
    // Upwards, and below it where there is no room above.
    let above = (first..<first + 20).filter { $0 <= 65_535 }
    let below = (port - 20..<port).reversed().filter { $0 >= 1024 }
    guard let free = (above + below).first(where: { Self.ask(address, $0) == .free }) else { return nil }
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

  /// Who is in the way, as far as `/proc` tells this user.
  private struct Holders {
    /// Neither the running stream nor systemd.
    var others: [DeviceHolder] = []
    /// Whether somebody is whom this user may not see.
    var hasUnseen = false
    /// Whether systemd is, which hands its sockets to services.
    var hasSystemd = false
    /// Whether the running stream is.
    var hasOwn = false

    init(of address: ListeningAddress, port: Int, own: Int32?) {
      for socket in ListeningSocket.inTheWay(of: address, port: port) {
        let holders = DeviceHolder.holders(ofSockets: [socket.inode])
        // Socket by socket: what several hold is one's that handed it on, or that was started with it.
        if let own, holders.contains(where: { $0.processID == own }) {
          hasOwn = true
        } else if holders.contains(where: { $0.processID == 1 }) {
          hasSystemd = true
        } else if holders.isEmpty {
          hasUnseen = true
        } else {
          others += holders.filter { !others.contains($0) }
        }
      }
    }
  }

  /// What is to be said of it.
  ///
  /// - Parameters:
  ///   - service: the option that asks for it: `rtsp`.
  ///   - own: the process of the running stream, which may listen there.
  ///   - isOptional: whether the server does without it where the machine has no such address.
  public func finding(service: String, own: Int32?, isOptional: Bool) -> Finding? {
    let place = "\(service) at \(address) port \(port)"
    var other: Mend { .advice("or choose another port" + (another.map { ": \(service) = \"\($0)\"" } ?? "")) }
    switch answer {
    case .free: return Finding(.port, "\(place): free")
    case .held:
      let holders = ListeningAddress(address).map { Holders(of: $0, port: port, own: own) }
      if let others = holders?.others, !others.isEmpty {
        return Finding(
          .portHeld, "\(place): \(others.map(\.description).joined(separator: ", ")) listens there",
          mends: [.command("kill \(others.map { "\($0.processID)" }.joined(separator: " "))"), other])
      }
      if holders?.hasUnseen == false {
        if holders?.hasSystemd == true {
          return Finding(.port, "\(place): systemd has opened it, for a service (systemctl list-sockets)")
        }
        if holders?.hasOwn == true { return Finding(.port, "\(place): the running stream's") }
      }
      return Finding(
        .portHeld, "\(place): a program of another user listens there",
        mends: [.command("sudo ss -ltnp 'sport = :\(port)'"), other])
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
