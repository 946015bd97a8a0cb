import CLinux
import Glibc

/// A file that holds secrets: read only where nobody else can have read or written it, and replaced as a whole.
struct PrivateFile {
  /// Where it is, links resolved.
  let path: String

  /// The file that `path` leads to, there or not.
  ///
  /// - Throws: ``PrivateFileError/notAFile(path:)`` for a link that leads nowhere.
  init(_ path: String) throws(PrivateFileError) {
    guard let resolved = realpath(path, nil) else {
      var file = nightjar_file()
      guard nightjar_path_status(path, &file) != 0 else {
        // A link that leads nowhere, or to where nobody is let in.
        if errno == EACCES { throw .system(step: "opening", path: path, errorNumber: EACCES) }
        throw .notAFile(path: path)
      }
      self.path = path
      return
    }
    self.path = String(cString: resolved)
    free(resolved)
  }

  /// What it holds, at most `limit` bytes, and whose it is. What is looked at is what was opened. One that is no secret
  /// may be read by everybody, and belong to anybody.
  ///
  /// - Throws: ``PrivateFileError``.
  func read(limit: Int, isSecret: Bool = true) throws(PrivateFileError) -> (bytes: [UInt8], status: nightjar_file) {
    // Without waiting for the other end of a pipe.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else {
      if errno == ENOENT { throw .missing(path: path) }
      throw .system(step: "opening", path: path, errorNumber: errno)
    }
    defer { close(descriptor) }
    var status = nightjar_file()
    guard nightjar_descriptor_status(descriptor, &status) == 0 else {
      throw .system(step: "reading", path: path, errorNumber: errno)
    }
    guard status.mode & S_IFMT == S_IFREG else { throw .notAFile(path: path) }
    if isSecret {
      guard status.mode & 0o007 == 0 else { throw .exposed(path: path, mode: status.mode & 0o7777) }
      guard status.user == geteuid() || status.user == 0 else { throw .foreign(path: path, owner: status.user) }
    }
    var bytes = [UInt8](repeating: 0, count: limit + 1)
    var count = 0
    while count < bytes.count {
      let taken = bytes.withUnsafeMutableBytes { memory in
        Glibc.read(descriptor, memory.baseAddress?.advanced(by: count), memory.count - count)
      }
      if taken < 0, errno == EINTR { continue }
      guard taken >= 0 else { throw .system(step: "reading", path: path, errorNumber: errno) }
      if taken == 0 { break }
      count += taken
    }
    guard count <= limit else { throw .tooLarge(path: path, limit: limit) }
    return (Array(bytes[..<count]), status)
  }

  /// Replaces it: readers see the old content or the new one, and so they do after a power cut. Owner and group stay as
  /// in `former`; of its mode nothing is kept but what `mode` allows.
  ///
  /// - Throws: ``PrivateFileError``; then the old content is still there.
  func replace(with bytes: [UInt8], mode: mode_t, former: nightjar_file?) throws(PrivateFileError) {
    let temporary = "\(path).\(getpid()).new"
    unlink(temporary)
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw .system(step: "making", path: temporary, errorNumber: errno) }
    do throws(PrivateFileError) {
      try fill(descriptor, with: bytes, mode: mode, former: former)
      guard rename(temporary, path) == 0 else { throw .system(step: "replacing", path: path, errorNumber: errno) }
    } catch {
      unlink(temporary)
      throw error
    }
    // The name is the directory's: only now does it outlive a power cut. Where the file system has no such thing, it is
    // as good as it gets.
    let directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard directory >= 0 else { return }
    fsync(directory)
    close(directory)
  }

  /// Closes the descriptor, whatever comes.
  private func fill(
    _ descriptor: CInt, with bytes: [UInt8], mode: mode_t, former: nightjar_file?
  ) throws(PrivateFileError) {
    var isOpen = true
    defer { if isOpen { close(descriptor) } }
    if let former {
      // Who could read it can read it; the owner first, for it may take the right to change the rest.
      var made = nightjar_file()
      guard nightjar_descriptor_status(descriptor, &made) == 0 else {
        throw .system(step: "making", path: path, errorNumber: errno)
      }
      if made.group != former.group || made.user != former.user {
        guard fchown(descriptor, former.user, former.group) == 0 else {
          throw .system(step: "keeping owner and group of", path: path, errorNumber: errno)
        }
      }
    }
    guard fchmod(descriptor, former.map { $0.mode & mode } ?? mode) == 0 else {
      throw .system(step: "setting the mode of", path: path, errorNumber: errno)
    }
    var rest = bytes[...]
    while !rest.isEmpty {
      let written = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      if written < 0, errno == EINTR { continue }
      guard written > 0 else { throw .system(step: "writing", path: path, errorNumber: errno) }
      rest = rest.dropFirst(written)
    }
    guard fsync(descriptor) == 0 else { throw .system(step: "writing", path: path, errorNumber: errno) }
    isOpen = false
    guard close(descriptor) == 0 else { throw .system(step: "writing", path: path, errorNumber: errno) }
  }

  /// The directory that it is in.
  var directory: String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// Makes the directory that it is in, and those above it, where they are missing.
  ///
  /// - Throws: ``PrivateFileError``.
  func makeDirectory(mode: mode_t) throws(PrivateFileError) {
    var made = directory.hasPrefix("/") ? "" : "."
    for name in directory.split(separator: "/") {
      made += "/\(name)"
      if mkdir(made, mode) == 0 || errno == EEXIST { continue }
      let error = errno
      // On a file system that is read-only, or not ours, what is there need not be made.
      guard access(made, F_OK) == 0 else { throw .system(step: "making", path: made, errorNumber: error) }
    }
  }
}

/// A lock beside a file (`PATH.lock`, flock(2)) that keeps two programs from writing it at once. The kernel drops it
/// with a process that dies.
struct FileLock: ~Copyable {
  private let path: String
  private let descriptor: CInt

  /// Waits for it, `limitSeconds` at most.
  ///
  /// - Throws: ``PrivateFileError/locked(path:)``, or what the system says.
  init(beside file: PrivateFile, limitSeconds: Int = 10) throws(PrivateFileError) {
    path = file.path + ".lock"
    let end = time(nil) + limitSeconds
    while true {
      let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
      guard descriptor >= 0 else { throw .system(step: "opening the lock", path: path, errorNumber: errno) }
      let isTaken = flock(descriptor, LOCK_EX | LOCK_NB) == 0
      let error = errno
      // Who held it before has removed it meanwhile: then this is nobody's lock any more.
      var (opened, named) = (nightjar_file(), nightjar_file())
      if isTaken, nightjar_descriptor_status(descriptor, &opened) == 0, nightjar_path_status(path, &named) == 0,
        opened.device == named.device, opened.inode == named.inode
      {
        self.descriptor = descriptor
        return
      }
      close(descriptor)
      if isTaken { continue }
      guard error == EWOULDBLOCK || error == EINTR else {
        throw .system(step: "locking", path: path, errorNumber: error)
      }
      guard time(nil) < end else { throw .locked(path: file.path) }
      usleep(50_000)
    }
  }

  deinit {
    unlink(path)
    close(descriptor)
  }
}
