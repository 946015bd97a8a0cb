import CLinux
import Capture
import Glibc
import Platform

/// A check that a server can listen at a port, and of the processes that prevent it.
package struct PortCheck: Sendable {
  /// The protocol of a port.
  package enum Transport: Hashable, Sendable {
    case tcp
    case udp

    fileprivate var socketType: CInt { CInt((self == .tcp ? SOCK_STREAM : SOCK_DGRAM).rawValue) }
    fileprivate var name: String { self == .tcp ? "port" : "UDP port" }
    /// The options of ss(8) that list its sockets.
    fileprivate var listing: String { self == .tcp ? "-ltnp" : "-lunp" }
  }

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
  /// The port.
  package let port: Int
  /// The protocol.
  package let transport: Transport
  /// The result of binding. No client can connect meanwhile, because the socket does not listen.
  package let answer: Answer

  /// Binds to the port for a moment, as a server would.
  package init(address: String, port: Int, transport: Transport = .tcp) {
    (self.address, self.port, self.transport) = (address, port, transport)
    answer = Self.ask(address, port, transport)
  }

  /// Returns another free port at the same address, in the configuration's form; nil where none is near. The search binds
  /// some ports for a moment.
  private func another(isPortAlone: Bool) -> String? {
    let first = port < 1024 ? port + 8000 : port + 1
    // Searches upwards, and downwards where there is no room above.
    let above = (first..<first + 20).filter { $0 <= 65_535 }
    let below = (port - 20..<port).reversed().filter { $0 >= 1024 }
    guard let free = (above + below).first(where: { Self.ask(address, $0, transport) == .free }) else { return nil }
    if isPortAlone { return "\(free)" }
    let isAny = ["0.0.0.0", "::"].contains(address)
    return "\"" + (isAny ? "" : IPAddress.bracketed(address)) + ":\(free)\""
  }

  private static func ask(_ address: String, _ port: Int, _ transport: Transport) -> Answer {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
    hints.ai_socktype = transport.socketType
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(address, "\(port)", &hints, &list) == 0, let entry = list?.pointee else { return .failed(EINVAL) }
    defer { freeaddrinfo(list) }
    do throws(SystemFailure) {
      let opened = try FileDescriptor(from: "socket") {
        socket(entry.ai_family, entry.ai_socktype | CInt(SOCK_CLOEXEC.rawValue), 0)
      }
      return bind(opened, entry, transport)
    } catch {
      return .failed(error.errorNumber)
    }
  }

  private static func bind(
    _ socket: borrowing FileDescriptor, _ entry: addrinfo, _ transport: Transport
  ) -> Answer {
    // Servers do the same: connections that have ended but are remembered do not conflict.
    if transport == .tcp { try? socket.set(SOL_SOCKET, SO_REUSEADDR, CInt(1)) }
    if entry.ai_family == AF_INET6 { try? socket.set(CInt(IPPROTO_IPV6), IPV6_V6ONLY, CInt(1)) }
    guard Glibc.bind(socket.number, entry.ai_addr, entry.ai_addrlen) != 0 else { return .free }
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

    init(of address: ListeningAddress, port: Int, _ transport: Transport, own: Int32?) {
      let kind: SocketTableEntry.Kind = transport == .tcp ? .stream : .datagram
      for socket in SocketTableEntry.inTheWay(of: address, port: port, kind) {
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
  ///   - isPortAlone: `true` if the option takes a port without an address.
  ///   - isUnseenOwn: `true` if a process that this user may not see is the running stream.
  package func finding(
    service: String, own: Int32?, isOptional: Bool, isPortAlone: Bool = false, isUnseenOwn: Bool = false
  ) -> Finding? {
    let place = "\(service) at \(address) \(transport.name) \(port)"
    var other: Mend {
      .advice("or choose another port" + (another(isPortAlone: isPortAlone).map { ": \(service) = \($0)" } ?? ""))
    }
    switch answer {
    case .free: return Finding(.port, "\(place): free")
    case .held:
      let holders = ListeningAddress(address).map { Holders(of: $0, port: port, transport, own: own) }
      if let others = holders?.others, !others.isEmpty {
        return Finding(
          .portHeld, "\(place): \(others.map(\.description).joined(separator: ", ")) listens there",
          mends: [.command("kill \(others.map { "\($0.processID)" }.joined(separator: " "))"), other])
      }
      if isUnseenOwn, holders?.hasUnseen == true { return Finding(.port, "\(place): the running stream's") }
      if holders?.hasUnseen == false {
        if holders?.hasSystemd == true {
          return Finding(.port, "\(place): systemd has opened it, for a service (systemctl list-sockets)")
        }
        if holders?.hasOwn == true { return Finding(.port, "\(place): the running stream's") }
      }
      return Finding(
        .portHeld, "\(place): a program of another user listens there",
        mends: [.command("sudo ss \(transport.listing) 'sport = :\(port)'"), other])
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
