import CLinux
import Glibc

extension ControlClient {
  /// Returns the process that listens at the socket, by a short connection; nil if the kernel does not report it.
  ///
  /// - Throws: ``ControlClientError`` if no process listens, ``ControlSocketError`` for an impossible path.
  package func serverProcess() throws -> Int32? {
    let address = try ControlSocket.address(of: path)
    // Without waiting: the queue of a server that accepts no connections any more becomes full.
    let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    guard descriptor >= 0 else { throw ControlClientError.connecting(path: path, errorNumber: errno) }
    defer { close(descriptor) }
    guard address.withAddress({ connect(descriptor, $0, $1) }) == 0 || errno == EAGAIN else {
      switch errno {
      case ENOENT, ENOTDIR: throw ControlClientError.noSocket(path: path)
      case ECONNREFUSED: throw ControlClientError.deaf(path: path)
      case EACCES, EPERM: throw ControlClientError.noPermission(path: path)
      case let number: throw ControlClientError.connecting(path: path, errorNumber: number)
      }
    }
    let process = nightjar_peer_process(descriptor)
    return process > 0 ? process : nil
  }
}
