import CLinux
import Glibc
import Platform

extension ControlClient {
  /// Returns the process that listens at the socket, by a short connection; nil if the kernel does not report it.
  ///
  /// - Throws: ``ControlClientError`` if no process listens, ``ControlSocketError`` for an impossible path.
  package func serverProcess() throws -> Int32? {
    let address = try ControlSocket.address(of: path)
    // Without waiting: the queue of a server that accepts no connections any more becomes full.
    do throws(SystemFailure) {
      let descriptor = try ControlSocket.open()
      guard address.withAddress({ connect(descriptor.number, $0, $1) }) == 0 || errno == EAGAIN else {
        throw SystemFailure("connect")
      }
      let process = nightjar_peer_process(descriptor.number)
      return process > 0 ? process : nil
    } catch {
      switch error.errorNumber {
      case ENOENT, ENOTDIR: throw ControlClientError.noSocket(path: path)
      case ECONNREFUSED: throw ControlClientError.deaf(path: path)
      case EACCES, EPERM: throw ControlClientError.noPermission(path: path)
      case let number: throw ControlClientError.connecting(path: path, errorNumber: number)
      }
    }
  }
}
