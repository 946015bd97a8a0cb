import CLinux
import Glibc

/// A Unix socket that listens at a path, which its owner and group alone can connect to.
///
/// A lock beside it (`PATH.lock`, flock(2)), held as long as it lives, keeps two programs that start at once from taking
/// the path from each other; the kernel drops it with a process that dies.
struct ListeningSocket: ~Copyable {
  /// The path, for messages.
  let path: String
  /// The group of the socket's file: its members may connect.
  let group: gid_t
  /// The socket, close-on-exec and non-blocking. Who takes it over closes it.
  let descriptor: CInt
  private let lock: CInt
  private let file: nightjar_file

  /// Listens at `path`; makes its directory (0750) where that is missing, and replaces a dead process's socket.
  ///
  /// - Throws: ``ControlSocketError``.
  init(path: String, backlog: CInt) throws(ControlSocketError) {
    let address = try ControlSocket.address(of: path)
    try Self.makeDirectory(of: path)
    let lock = try Self.takeLock(path)
    do {
      try Self.removeDead(path, address)
      let (descriptor, file) = try Self.listen(path, address, backlog: backlog)
      self.descriptor = descriptor
      self.file = file
      group = file.group
    } catch {
      Self.removeLock(lock, path)
      throw error
    }
    self.lock = lock
    self.path = path
  }

  deinit {
    // Not what somebody else may have put there meanwhile.
    if nightjar_file(at: path)?.isSame(as: file) == true { unlink(path) }
    Self.removeLock(lock, path)
  }

  private static func makeDirectory(of path: String) throws(ControlSocketError) {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash != path.startIndex else { return }
    let directory = String(path[..<slash])
    guard mkdir(directory, 0o750) == 0 || errno == EEXIST else {
      throw .system(step: "making the directory", path: directory, errorNumber: errno)
    }
  }

  private static func takeLock(_ socketPath: String) throws(ControlSocketError) -> CInt {
    let path = socketPath + ".lock"
    while true {
      // Never through a symbolic link, and never waiting for a FIFO's other end.
      let lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
      guard lock >= 0 else {
        if errno == ELOOP { throw .foreignLock(path: path) }
        throw .system(step: "opening the lock", path: path, errorNumber: errno)
      }
      var file = nightjar_file()
      guard nightjar_descriptor_status(lock, &file) == 0, file.mode & S_IFMT == S_IFREG,
        file.user == geteuid() || geteuid() == 0
      else {
        close(lock)
        throw .foreignLock(path: path)
      }
      guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
        let error = errno
        close(lock)
        if error == EWOULDBLOCK { throw .inUse(path: socketPath) }
        throw .system(step: "locking", path: path, errorNumber: error)
      }
      // The one that held it before may have removed it in between: then this is nobody's lock any more.
      if nightjar_file(at: path)?.isSame(as: file) == true { return lock }
      close(lock)
    }
  }

  private static func removeLock(_ lock: CInt, _ socketPath: String) {
    unlink(socketPath + ".lock")
    close(lock)
  }

  /// Removes a socket that nobody listens at.
  private static func removeDead(_ path: String, _ address: sockaddr_un) throws(ControlSocketError) {
    guard let file = nightjar_file(at: path) else { return }
    guard file.mode & S_IFMT == S_IFSOCK else { throw .notASocket(path: path) }
    let probe = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    guard probe >= 0 else { throw .system(step: "making", path: path, errorNumber: errno) }
    let error = address.withAddress { connect(probe, $0, $1) == 0 ? 0 : errno }
    close(probe)
    switch error {
    case ECONNREFUSED:
      guard unlink(path) == 0 || errno == ENOENT else {
        throw .system(step: "removing the old", path: path, errorNumber: errno)
      }
    case ENOENT: break
    case EACCES, EPERM: throw .system(step: "connecting to the old", path: path, errorNumber: error)
    // Connected, its queue is full (EAGAIN), or of another type (EPROTOTYPE): somebody is there.
    default: throw .inUse(path: path)
    }
  }

  private static func listen(
    _ path: String, _ address: sockaddr_un, backlog: CInt
  ) throws(ControlSocketError) -> (descriptor: CInt, file: nightjar_file) {
    let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    guard descriptor >= 0 else { throw .system(step: "making", path: path, errorNumber: errno) }
    // Linux gives the file the socket's own mode less the umask, so there is no moment in which others could connect,
    // and no need to change the umask, which is the whole process's.
    guard fchmod(descriptor, 0o660) == 0, address.withAddress({ bind(descriptor, $0, $1) }) == 0 else {
      let error = errno
      close(descriptor)
      throw .system(step: "making", path: path, errorNumber: error)
    }
    // What the umask took from the group is given back.
    if fchmodat(AT_FDCWD, path, 0o660, AT_SYMLINK_NOFOLLOW) == 0, Glibc.listen(descriptor, backlog) == 0,
      let file = nightjar_file(at: path)
    {
      return (descriptor, file)
    }
    let error = errno
    close(descriptor)
    unlink(path)
    throw .system(step: "making", path: path, errorNumber: error)
  }
}

extension nightjar_file {
  /// Of the file at `path`, not of what a symbolic link there points to; nil where there is none.
  fileprivate init?(at path: String) {
    self.init()
    guard nightjar_path_status(path, &self) == 0 else { return nil }
  }

  /// Whether it is the same file, whatever its name.
  fileprivate func isSame(as other: nightjar_file) -> Bool { device == other.device && inode == other.inode }
}
