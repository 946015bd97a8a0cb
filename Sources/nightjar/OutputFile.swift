import Glibc
import Media

/// A file that is replaced as a whole: readers see the old content or the new one, never a part.
struct OutputFile {
  let path: String

  /// Refuses a path that cannot be written before anything is started.
  ///
  /// - Throws: ``CommandFailure`` with the reason.
  init(checking path: String) throws {
    self.path = path
    var status = stat()
    if stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
      throw failure(EISDIR)
    }
    let (temporary, descriptor) = try create()
    close(descriptor)
    unlink(temporary)
  }

  /// Replaces the file's content.
  ///
  /// - Throws: ``CommandFailure``; then the old content is still there.
  func write(_ text: String) throws {
    let (temporary, descriptor) = try create()
    var text = text
    let isWritten = text.withUTF8 { bytes -> Bool in
      var done = 0
      while done < bytes.count {
        let written = Glibc.write(descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done)
        if written < 0, errno == EINTR { continue }
        guard written > 0 else { return false }
        done += written
      }
      return true
    }
    let error = errno
    close(descriptor)
    guard isWritten else {
      unlink(temporary)
      throw failure(error)
    }
    guard rename(temporary, path) == 0 else {
      let error = errno
      unlink(temporary)
      throw failure(error)
    }
  }

  /// Removes the file.
  func remove() {
    unlink(path)
  }

  /// A fresh file beside the real one, so that `rename` stays on one file system.
  private func create() throws -> (path: String, descriptor: CInt) {
    let temporary = "\(path).\(getpid()).new"
    unlink(temporary)
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o644)
    guard descriptor >= 0 else { throw failure(errno) }
    return (temporary, descriptor)
  }

  private func failure(_ errorNumber: CInt) -> CommandFailure {
    CommandFailure(
      kind: errorNumber == EACCES || errorNumber == EPERM ? .noPermission : .cannotCreate,
      description: "cannot write \(path): \(SystemFailure.text(errorNumber))")
  }
}
