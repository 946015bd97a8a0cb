import CLinux
import Glibc
import Platform

/// The address of a stream's control socket.
package enum ControlSocket {
  /// The most bytes of a path: `sun_path` without its closing zero (unix(7)).
  package static let pathLimit = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

  /// The default path of a stream's socket: `nightjar/control.sock` under `$XDG_RUNTIME_DIR`, or under `/run` if that
  /// is not set, as for a system service.
  package static var defaultPath: String { candidates[0] }

  /// The default path for a client: ``defaultPath``, or a system service's if nothing is there. A socket that is closed
  /// to this user counts as present, so that its error is reported.
  package static var clientPath: String {
    candidates.first { access($0, F_OK) == 0 || errno == EACCES } ?? defaultPath
  }

  private static var candidates: [String] {
    let system = "/run/nightjar/control.sock"
    // The specification of XDG_RUNTIME_DIR says that relative paths are ignored.
    guard let directory = getenv("XDG_RUNTIME_DIR").map({ String(cString: $0) }), directory.hasPrefix("/") else {
      return [system]
    }
    return [directory + "/nightjar/control.sock", system]
  }

  /// Returns a socket that never waits.
  ///
  /// - Throws: `SystemFailure`.
  static func open() throws(SystemFailure) -> FileDescriptor {
    let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    return try FileDescriptor(from: "socket") { socket(AF_UNIX, type, 0) }
  }

  /// Returns the address of `path`.
  ///
  /// - Throws: ``ControlSocketError`` if the path does not fit.
  static func address(of path: String) throws(ControlSocketError) -> sockaddr_un {
    let bytes = Array(path.utf8)
    guard !bytes.isEmpty, bytes.last != UInt8(ascii: "/"), !bytes.contains(0) else { throw .noFile(path: path) }
    guard bytes.count <= pathLimit else { throw .tooLong(path: path, bytes: bytes.count) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    return address
  }
}

extension sockaddr_un {
  /// Calls `body` with the arguments of bind(2) and connect(2).
  func withAddress<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    withUnsafePointer(to: self) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
  }
}
