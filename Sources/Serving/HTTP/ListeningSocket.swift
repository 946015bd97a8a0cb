import CLinux
import Glibc
import Platform

/// A Unix socket that listens at a path. Only its owner and group can connect to it.
///
/// A lock beside it (`PATH.lock`, flock(2)) is held as long as the socket lives. The lock keeps two programs that start
/// at once from taking the path from each other; the kernel drops it with a process that dies.
struct ListeningSocket: ~Copyable {
  /// The path, for messages.
  let path: String
  /// The group of the socket's file: its members may connect.
  let group: gid_t
  /// The socket, close-on-exec and non-blocking. Its new owner closes it.
  let descriptor: CInt
  private let lock: FileDescriptor
  private let file: nightjar_file

  /// Listens at `path`; creates its directory (0750) if that is missing, and replaces a dead process's socket.
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
      Self.removeLock(path)
      throw error
    }
    self.lock = lock
    self.path = path
  }

  deinit {
    // Leaves a file that another process may have put there meanwhile.
    if nightjar_file(at: path)?.isSame(as: file) == true { unlink(path) }
    Self.removeLock(path)
  }

  private static func makeDirectory(of path: String) throws(ControlSocketError) {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash != path.startIndex else { return }
    let directory = String(path[..<slash])
    guard mkdir(directory, 0o750) == 0 || errno == EEXIST else {
      throw .system(step: "making the directory", path: directory, errorNumber: errno)
    }
  }

  private static func takeLock(_ socketPath: String) throws(ControlSocketError) -> FileDescriptor {
    let path = socketPath + ".lock"
    while true {
      // Never through a symbolic link, and never waiting for the other end of a FIFO.
      let lock: FileDescriptor
      do throws(SystemFailure) {
        lock = try FileDescriptor(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode: 0o600)
      } catch {
        if error.errorNumber == ELOOP { throw .foreignLock(path: path) }
        throw .system(step: "opening the lock", path: path, errorNumber: error.errorNumber)
      }
      var file = nightjar_file()
      guard nightjar_descriptor_status(lock.number, &file) == 0, file.mode & S_IFMT == S_IFREG,
        file.user == geteuid() || geteuid() == 0
      else { throw .foreignLock(path: path) }
      guard flock(lock.number, LOCK_EX | LOCK_NB) == 0 else {
        if errno == EWOULDBLOCK { throw .inUse(path: socketPath) }
        throw .system(step: "locking", path: path, errorNumber: errno)
      }
      // The former holder may have removed the file in between: then this lock protects nothing any more.
      if nightjar_file(at: path)?.isSame(as: file) == true { return lock }
    }
  }

  /// Removes the lock's file; the caller still holds the lock.
  private static func removeLock(_ socketPath: String) {
    unlink(socketPath + ".lock")
  }

  /// Removes a socket at which no process listens.
  private static func removeDead(_ path: String, _ address: sockaddr_un) throws(ControlSocketError) {
    guard let file = nightjar_file(at: path) else { return }
    guard file.mode & S_IFMT == S_IFSOCK else { throw .notASocket(path: path) }
    let error: CInt
    do throws(SystemFailure) {
      let probe = try ControlSocket.open()
      error = address.withAddress { connect(probe.number, $0, $1) == 0 ? 0 : errno }
    } catch {
      throw .system(step: "making", path: path, errorNumber: error.errorNumber)
    }
    switch error {
    case ECONNREFUSED:
      guard unlink(path) == 0 || errno == ENOENT else {
        throw .system(step: "removing the old", path: path, errorNumber: errno)
      }
    case ENOENT: break
    case EACCES, EPERM: throw .system(step: "connecting to the old", path: path, errorNumber: error)
    // Connected, its queue is full (EAGAIN), or of another type (EPROTOTYPE): a process listens.
    default: throw .inUse(path: path)
    }
  }

  private static func listen(
    _ path: String, _ address: sockaddr_un, backlog: CInt
  ) throws(ControlSocketError) -> (descriptor: CInt, file: nightjar_file) {
    var isBound = false
    do throws(SystemFailure) {
      let descriptor = try ControlSocket.open()
      // Linux gives the file the socket's own mode less the umask, so others can connect at no moment. The umask, which
      // belongs to the whole process, need not change.
      try syscall("fchmod") { fchmod(descriptor.number, 0o660) }
      try syscall("bind") { address.withAddress { bind(descriptor.number, $0, $1) } }
      isBound = true
      // Gives the group back what the umask took from it.
      try syscall("fchmodat") { fchmodat(AT_FDCWD, path, 0o660, AT_SYMLINK_NOFOLLOW) }
      try syscall("listen") { Glibc.listen(descriptor.number, backlog) }
      guard let file = nightjar_file(at: path) else { throw SystemFailure("lstat") }
      return (descriptor.take(), file)
    } catch {
      if isBound { unlink(path) }
      throw .system(step: "making", path: path, errorNumber: error.errorNumber)
    }
  }
}

extension nightjar_file {
  /// Reads the status of the file at `path`, not of a symbolic link's target; nil if there is none.
  fileprivate init?(at path: String) {
    self.init()
    guard nightjar_path_status(path, &self) == 0 else { return nil }
  }

  /// Returns `true` if both are the same file, whatever their names.
  fileprivate func isSame(as other: nightjar_file) -> Bool { device == other.device && inode == other.inode }
}
