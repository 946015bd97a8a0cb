import CLinux
import CSystemd
import Glibc
package import Platform

/// A listening TCP socket that systemd has opened for this program (sd_listen_fds(3)).
package struct ActivationSocket: Sendable {
  /// The socket's name in the socket unit: `FileDescriptorName=`.
  package let name: String
  /// The socket, which the caller owns.
  package let descriptor: CInt
  /// The socket's numeric address.
  package let address: String
  /// The socket's port.
  package let port: Int

  /// Returns the sockets that systemd gave to this process; none in another call, or in a child process.
  ///
  /// - Parameter known: the names that the program uses.
  /// - Throws: ``ActivationError`` for a socket that the program cannot use; then all are closed.
  package static func take(known: Set<String>) throws(ActivationError) -> [ActivationSocket] {
    var names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
    let count = sd_listen_fds_with_names(1, &names)
    guard count > 0, let names else { return [] }
    let descriptors = (0..<count).map { first + $0 }
    let texts = (0..<Int(count)).map { names[$0].map { String(cString: $0) } ?? "" }
    for index in 0..<Int(count) { free(names[index]) }
    free(names)
    do throws(ActivationError) {
      var sockets: [ActivationSocket] = []
      for (descriptor, name) in zip(descriptors, texts) {
        guard known.contains(name) else { throw .unknown(name, known: known.sorted()) }
        sockets.append(try ActivationSocket(descriptor, name: name))
      }
      return sockets
    } catch {
      for descriptor in descriptors { close(descriptor) }
      throw error
    }
  }

  /// The first descriptor that systemd passes.
  private static let first: CInt = 3

  private init(_ descriptor: CInt, name: String) throws(ActivationError) {
    guard sd_is_socket(descriptor, AF_UNSPEC, CInt(SOCK_STREAM.rawValue), 1) > 0 else { throw .notListening(name) }
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let text = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> (String, String)? in
        guard getsockname(descriptor, address, &length) == 0 else { return nil }
        var host = [CChar](repeating: 0, count: 64)
        var service = [CChar](repeating: 0, count: 16)
        let result = getnameinfo(
          address, length, &host, 64, &service, 16, NI_NUMERICHOST | NI_NUMERICSERV)
        return result == 0 ? (String(cBuffer: host), String(cBuffer: service)) : nil
      }
    }
    let family = CInt(storage.ss_family)
    guard let text, let port = Int(text.1), family == AF_INET || family == AF_INET6 else { throw .notInternet(name) }
    if family == AF_INET6 {
      var only: CInt = 0
      var size = socklen_t(MemoryLayout<CInt>.size)
      // A socket that also accepts IPv4 shows its IPv4 clients by addresses that no IPv6 packet can reach.
      guard getsockopt(descriptor, CInt(IPPROTO_IPV6), IPV6_V6ONLY, &only, &size) == 0, only == 1 else {
        throw .bothFamilies(name)
      }
    }
    self.name = name
    self.descriptor = descriptor
    address = text.0
    self.port = port
  }
}

/// An error for a systemd socket that cannot be used.
package enum ActivationError: Failure {
  /// The program does not use the name.
  case unknown(String, known: [String])
  /// The descriptor is not a listening stream socket.
  case notListening(String)
  /// The socket is neither IPv4 nor IPv6.
  case notInternet(String)
  /// The socket accepts both IPv4 and IPv6.
  case bothFamilies(String)

  /// A one-line message for the author of the unit.
  package var description: String {
    switch self {
    case .unknown(let name, let known):
      "the socket unit's FileDescriptorName=\(name) is unknown: choose \(known.joined(separator: " or "))"
    case .notListening(let name): "the socket \(name) from systemd does not listen: its unit needs ListenStream="
    case .notInternet(let name): "the socket \(name) from systemd is not a TCP socket: write ListenStream=ADDRESS:PORT"
    case .bothFamilies(let name):
      "the socket \(name) from systemd serves IPv4 and IPv6 at once: its unit needs BindIPv6Only=ipv6-only"
    }
  }

  /// The kind of failure.
  package var kind: FailureKind { .usage }
}
