import Glibc

extension FileDescriptor {
  /// Sets an option of a socket.
  ///
  /// - Parameter name: the option, for the message.
  /// - Throws: ``SystemFailure``. Not every kernel grants every option.
  package borrowing func set(
    _ level: CInt, _ option: CInt, _ value: some BitwiseCopyable, _ name: String = "setsockopt"
  ) throws(SystemFailure) {
    let socket = number
    let result = withUnsafeBytes(of: value) {
      setsockopt(socket, level, option, $0.baseAddress, socklen_t($0.count))
    }
    guard result == 0 else { throw SystemFailure(name) }
  }
}
