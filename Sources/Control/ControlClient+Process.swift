import CLinux
import Glibc

extension ControlClient {
  /// The process that listens at the socket, by connecting for a moment; nil where the kernel does not tell.
  ///
  /// - Throws: ``ControlClientError`` where nobody does, ``ControlSocketError`` for an impossible path.
  public func serverProcess() throws -> Int32? {
    let address = try ControlSocket.address(of: path)
    // Without waiting: a server that takes no connections any more has a full queue some day.
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
