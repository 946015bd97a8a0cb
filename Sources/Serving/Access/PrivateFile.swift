import CLinux
import Glibc
import Platform

/// A file that holds secrets. It is read only if no other user can have read or written it, and replaced as a whole.
struct PrivateFile {
  /// The path, with links resolved.
  let path: String

  /// Resolves `path`, whether the file exists or not.
  ///
  /// - Throws: ``PrivateFileError/notAFile(path:)`` for a link without a target.
  init(_ path: String) throws(PrivateFileError) {
    guard let resolved = realpath(path, nil) else {
      var file = nightjar_file()
      guard nightjar_path_status(path, &file) != 0 else {
        // A link without a target, or with a target that may not be accessed.
        if errno == EACCES { throw .system(step: "opening", path: path, errorNumber: EACCES) }
        throw .notAFile(path: path)
      }
      self.path = path
      return
    }
    self.path = String(cString: resolved)
    free(resolved)
  }

  /// Returns the content, at most `limit` bytes, and the status with the owner. The check applies to the opened file. A
  /// file that is no secret may be readable by everybody, and belong to any user.
  ///
  /// - Throws: ``PrivateFileError``.
  func read(limit: Int, isSecret: Bool = true) throws(PrivateFileError) -> (bytes: [UInt8], status: nightjar_file) {
    do throws(PlainFileError) {
      return try PlainFile.contents(of: path, limit: limit, others: isSecret ? .nothing : .anything)
    } catch {
      throw PrivateFileError(error, path: path, limit: limit)
    }
  }

  /// Replaces the file: readers see the old content or the new one, even after a power cut. Owner and group stay as in
  /// `former`; of its mode only the bits that `mode` allows are kept.
  ///
  /// - Throws: ``PrivateFileError``; then the old content is still there.
  func replace(with bytes: [UInt8], mode: mode_t, former: nightjar_file?) throws(PrivateFileError) {
    let temporary = "\(path).\(getpid()).new"
    unlink(temporary)
    let file: FileDescriptor
    do throws(SystemFailure) {
      file = try FileDescriptor(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
    } catch {
      throw .system(step: "making", path: temporary, errorNumber: error.errorNumber)
    }
    do throws(PrivateFileError) {
      try fill(file, with: bytes, mode: mode, former: former)
      guard rename(temporary, path) == 0 else { throw .system(step: "replacing", path: path, errorNumber: errno) }
    } catch {
      unlink(temporary)
      throw error
    }
    // The name belongs to the directory: only now does it survive a power cut. A file system without this operation
    // gives no better guarantee.
    if let directory = try? FileDescriptor(directory, O_RDONLY | O_DIRECTORY) { fsync(directory.number) }
  }

  /// Writes the file and closes it.
  private func fill(
    _ file: consuming FileDescriptor, with bytes: [UInt8], mode: mode_t, former: nightjar_file?
  ) throws(PrivateFileError) {
    let descriptor = file.number
    if let former {
      // Former readers stay readers; the owner changes first, because that may remove the right to change the rest.
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
    do throws(SystemFailure) {
      try FileDescriptor.write(bytes.span.bytes, to: descriptor)
      try syscall("fsync") { fsync(descriptor) }
      try file.close()
    } catch {
      throw .system(step: "writing", path: path, errorNumber: error.errorNumber)
    }
  }

  /// The directory of the file.
  var directory: String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// Creates the directory of the file, and those above it, if they are missing.
  ///
  /// - Throws: ``PrivateFileError``.
  func makeDirectory(mode: mode_t) throws(PrivateFileError) {
    var made = directory.hasPrefix("/") ? "" : "."
    for name in directory.split(separator: "/") {
      made += "/\(name)"
      if mkdir(made, mode) == 0 || errno == EEXIST { continue }
      let error = errno
      // On a read-only or foreign file system, an existing directory need not be created.
      guard access(made, F_OK) == 0 else { throw .system(step: "making", path: made, errorNumber: error) }
    }
  }
}

/// A lock beside a file (`PATH.lock`, flock(2)) that keeps two programs from writing it at once. The kernel drops the
/// lock with a process that dies.
struct FileLock: ~Copyable {
  private let path: String
  private let file: FileDescriptor

  /// Waits for the lock, `limitSeconds` at most.
  ///
  /// - Throws: ``PrivateFileError/locked(path:)``, or the system's error.
  init(beside file: PrivateFile, limitSeconds: Int = 10) throws(PrivateFileError) {
    path = file.path + ".lock"
    let end = time(nil) + limitSeconds
    while true {
      let opened: FileDescriptor
      do throws(SystemFailure) {
        opened = try FileDescriptor(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode: 0o600)
      } catch {
        throw .system(step: "opening the lock", path: path, errorNumber: error.errorNumber)
      }
      let number = opened.number
      let isTaken = uninterrupted { flock(number, LOCK_EX | LOCK_NB) } == 0
      let error = errno
      // The former holder has removed the file meanwhile: then this lock protects nothing any more.
      var (own, named) = (nightjar_file(), nightjar_file())
      if isTaken, nightjar_descriptor_status(opened.number, &own) == 0, nightjar_path_status(path, &named) == 0,
        own.device == named.device, own.inode == named.inode
      {
        self.file = opened
        return
      }
      if isTaken { continue }
      guard error == EWOULDBLOCK else {
        throw .system(step: "locking", path: path, errorNumber: error)
      }
      guard time(nil) < end else { throw .locked(path: file.path) }
      usleep(50_000)
    }
  }

  deinit {
    unlink(path)
  }
}
