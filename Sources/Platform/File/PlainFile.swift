package import CLinux
import Glibc

/// The reason why a plain file is not read.
package enum PlainFileError: Error, Hashable {
  /// The file does not exist.
  case missing
  /// The path is a directory, a device or a pipe.
  case notAFile(isDirectory: Bool)
  /// The file's permission bits let other users read or write it although they must not.
  case exposed(mode: UInt32)
  /// The file belongs to this user, who is neither the user that runs the program nor root.
  case foreign(owner: UInt32)
  /// The file has more bytes than the limit.
  case tooLarge
  /// The system refused to open the file (`isOpen` is false) or to read it.
  case system(isOpen: Bool, errorNumber: CInt)
}

/// A file that is read whole. The checks apply to the file that was opened.
package enum PlainFile {
  /// The access to the file that other users of the machine may have.
  package enum Trust {
    /// Other users may read and change it.
    case anything
    /// Other users may read it.
    case reading
    /// Other users have no access, because the file is secret. It belongs to the user who runs the program, or to root.
    case nothing
  }

  /// Returns the content of the file at `path`, at most `limit` bytes, and its status.
  ///
  /// - Throws: ``PlainFileError``.
  package static func contents(
    of path: String, limit: Int, others trust: Trust
  ) throws(PlainFileError) -> (bytes: [UInt8], status: nightjar_file) {
    var isOpen = false
    do {
      // Does not wait for the other end of a pipe.
      let file = try FileDescriptor(path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
      isOpen = true
      var status = nightjar_file()
      try syscall("fstat") { nightjar_descriptor_status(file.number, &status) }
      guard status.mode & S_IFMT == S_IFREG else {
        throw PlainFileError.notAFile(isDirectory: status.mode & S_IFMT == S_IFDIR)
      }
      switch trust {
      case .anything: break
      case .reading:
        guard status.mode & S_IWOTH == 0 else { throw PlainFileError.exposed(mode: status.mode & 0o7777) }
      case .nothing:
        guard status.mode & 0o007 == 0 else { throw PlainFileError.exposed(mode: status.mode & 0o7777) }
        guard status.user == geteuid() || status.user == 0 else { throw PlainFileError.foreign(owner: status.user) }
      }
      let bytes = try file.read(upTo: limit + 1)
      guard bytes.count <= limit else { throw PlainFileError.tooLarge }
      return (bytes, status)
    } catch let error as SystemFailure {
      throw !isOpen && error.errorNumber == ENOENT ? .missing : .system(isOpen: isOpen, errorNumber: error.errorNumber)
    } catch let error as PlainFileError {
      throw error
    } catch {
      throw .system(isOpen: isOpen, errorNumber: EIO)
    }
  }
}
