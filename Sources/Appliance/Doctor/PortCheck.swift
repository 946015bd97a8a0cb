import Capture
import Glibc
import Platform

/// A check that a server can listen at a TCP port, and of the processes that prevent it.
package struct PortCheck: Sendable {
  /// The result of the check.
  package enum Answer: Hashable, Sendable {
    /// No server listens there.
    case free
    /// A server listens there.
    case held
    /// The system reserves the port.
    case forbidden
    /// This machine does not have the address now.
    case noAddress
    /// Listening there fails with this `errno`.
    case failed(CInt)
  }

  /// The numeric address.
  package let address: String
  /// The TCP port.
  package let port: Int
  /// The result of binding. No client can connect meanwhile, because the socket does not listen.
  package let answer: Answer

  /// Binds to the port for a moment, as a server would.
  package init(address: String, port: Int) {
    (self.address, self.port) = (address, port)
    answer = Self.ask(address, port)
  }

  /// Another free port at the same address, in the configuration's form; nil where none is near. The search binds some
  /// ports for a moment.
  private var another: String? {
    let first = port < 1024 ? port + 8000 : port + 1
    // Searches upwards, and downwards where there is no room above.
    let above = (first..<first + 20).filter { $0 <= 65_535 }
    let below = (port - 20..<port).reversed().filter { $0 >= 1024 }
    guard let free = (above + below).first(where: { Self.ask(address, $0) == .free }) else { return nil }
    let isAny = ["0.0.0.0", "::"].contains(address)
    return (isAny ? "" : IPAddress.bracketed(address)) + ":\(free)"
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
    // Servers do the same: connections that have ended but are remembered do not conflict.
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

  /// The processes that hold the port, as far as `/proc` shows them to this user.
  private struct Holders {
    /// The processes other than the running stream and systemd.
    var others: [DeviceHolder] = []
    /// `true` if a process that this user may not see holds the port.
    var hasUnseen = false
    /// `true` if systemd holds the port, which passes its sockets to services.
    var hasSystemd = false
    /// `true` if the running stream holds the port.
    var hasOwn = false

    init(of address: ListeningAddress, port: Int, own: Int32?) {
      for socket in ListeningSocket.inTheWay(of: address, port: port) {
        let holders = DeviceHolder.holders(ofSockets: [socket.inode])
        // Each socket is examined separately: one that several processes hold was passed on by its owner or inherited
        // from it.
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

  /// Returns the finding on the port.
  ///
  /// - Parameters:
  ///   - service: the option that requests the port: `rtsp`.
  ///   - own: the process of the running stream, which may listen there.
  ///   - isOptional: `true` if the server does without the address where the machine does not have it.
  package func finding(service: String, own: Int32?, isOptional: Bool) -> Finding? {
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
        .portAddress, "\(place): this host has no such address now", mends: [.command("ip -brief address")])
    case .failed(let number):
      if isOptional { return nil }
      return Finding(
        .portAddress, "\(place): \(SystemFailure.text(number))", mends: [.command("ip -brief address")])
    }
  }
}
