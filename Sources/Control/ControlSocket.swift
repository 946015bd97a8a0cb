import Glibc

/// Where a stream's control socket is.
public enum ControlSocket {
  /// Bytes that a path may have: `sun_path` without its closing zero (unix(7)).
  public static let pathLimit = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

  /// Where a stream puts it unless told: `nightjar/control.sock` under `$XDG_RUNTIME_DIR`, or under `/run` where that
  /// is not set, as for a service of the system.
  public static var defaultPath: String { candidates[0] }

  /// Where a client looks unless told: at ``defaultPath``, and where nothing is there, at a system service's. One that is
  /// closed to this user counts as there: that is what there is to say then.
  public static var clientPath: String {
    candidates.first { access($0, F_OK) == 0 || errno == EACCES } ?? defaultPath
  }

  private static var candidates: [String] {
    let system = "/run/nightjar/control.sock"
    // The specification of XDG_RUNTIME_DIR says that relative paths are to be ignored.
    guard let directory = getenv("XDG_RUNTIME_DIR").map({ String(cString: $0) }), directory.hasPrefix("/") else {
      return [system]
    }
    return [directory + "/nightjar/control.sock", system]
  }

  /// The address of `path`.
  ///
  /// - Throws: ``ControlSocketError``.
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
  /// Calls `body` with what bind(2) and connect(2) take.
  func withAddress<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    withUnsafePointer(to: self) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
  }
}
