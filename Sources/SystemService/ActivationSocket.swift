import CSystemd
import Glibc
public import Media

/// A listening TCP socket that systemd has opened for this program (sd_listen_fds(3)).
public struct ActivationSocket: Sendable {
  /// What the socket unit calls it: `FileDescriptorName=`.
  public let name: String
  /// The socket, which belongs to the caller.
  public let descriptor: CInt
  /// Its numeric address.
  public let address: String
  /// Its port.
  public let port: Int

  /// Takes the sockets that were given to this process; none for another call, or for a child.
  ///
  /// - Parameter known: the names that the program has a use for.
  /// - Throws: ``ActivationError`` for one that it has no use for; then all are closed.
  public static func take(known: Set<String>) throws(ActivationError) -> [ActivationSocket] {
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

  /// The first descriptor that systemd gives.
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
      // One that takes IPv4 too shows its clients by addresses to which no IPv6 packet can be sent back.
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

/// Why sockets that systemd gave are of no use.
public enum ActivationError: Failure {
  /// Nobody here knows the name.
  case unknown(String, known: [String])
  /// It is no stream socket that listens.
  case notListening(String)
  /// It is neither of IPv4 nor of IPv6.
  case notInternet(String)
  /// It takes IPv4 and IPv6 alike.
  case bothFamilies(String)

  /// One line for the person who wrote the unit.
  public var description: String {
    switch self {
    case .unknown(let name, let known):
      "the socket unit's FileDescriptorName=\(name) has no use here: choose \(known.joined(separator: " or "))"
    case .notListening(let name): "the socket \(name) that systemd gave does not listen: its unit needs ListenStream="
    case .notInternet(let name): "the socket \(name) that systemd gave is not of TCP: ListenStream= wants ADDRESS:PORT"
    case .bothFamilies(let name):
      "the socket \(name) that systemd gave is of IPv4 and IPv6 at once: its unit needs BindIPv6Only=ipv6-only"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind { .usage }
}
