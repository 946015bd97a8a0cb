import Glibc
import Platform

/// A file that is replaced as a whole: readers see the old content or the new one, never a part. A link is followed to
/// the file that is replaced. In a directory that everybody may write, links, files and pipes of another user are
/// refused. A terminal, a pipe or a device such as `/dev/null` is written in place, and never replaced or removed.
package struct OutputFile {
  /// The path as the person wrote it.
  package let path: String

  private let target: Target
  /// `true` if the file existed when it was checked.
  let existed: Bool
  /// The permissions of the file that existed before, without others' right to write where it was another user's.
  private let mode: mode_t?
  /// `true` if the file holds a secret: only its owner may read it, whatever the permissions before.
  private let isSecret: Bool

  private enum Target {
    /// A file, or none yet, at the end of all links.
    case replaced(path: String)
    /// A device or a pipe.
    case writtenInPlace
  }

  /// Refuses a path that cannot be written before anything is started.
  ///
  /// - Parameter isSecret: `true` if only the owner may read the file.
  /// - Throws: ``ApplianceFailure`` with the reason.
  package init(checking path: String, isSecret: Bool = false) throws {
    self.path = path
    self.isSecret = isSecret
    let end = try Self.followingLinks(path)
    var status = stat()
    let exists = stat(path, &status) == 0
    // After any other error the path may still lead to a file, or to another user's link to one.
    guard exists || errno == ENOENT else { throw Self.failure(path, errno, isWriting: false) }
    existed = exists
    let type = exists ? status.st_mode & S_IFMT : S_IFREG
    if exists, type == S_IFREG || type == S_IFIFO {
      // A pipe's owner would read what is written, and nobody but root could replace the file.
      try Self.refuse(type == S_IFIFO ? "pipe" : "file", ofOthers: status, end, in: Self.split(end).directory, path)
    }
    switch type {
    case S_IFREG:
      target = .replaced(path: end)
      // Another user's file stays as private as it was, but nobody else may change the new one.
      let foreign: mode_t = status.st_uid == geteuid() ? 0 : 0o022
      mode = exists ? status.st_mode & 0o777 & ~foreign : nil
      let temporary = Self.temporary(beside: end)
      _ = try create(temporary)
      unlink(temporary)
    case S_IFCHR, S_IFBLK, S_IFIFO:
      target = .writtenInPlace
      mode = nil
      guard access(path, W_OK) == 0 else { throw failure(errno) }
    case S_IFDIR:
      throw Self.failure(path, EISDIR, isWriting: false)
    default:
      throw Self.failure(path, ENXIO, isWriting: false)
    }
  }

  /// Returns `true` if both would replace the same file.
  func isSameFile(as other: OutputFile) -> Bool {
    guard case .replaced(let path) = target, case .replaced(let otherPath) = other.target else { return false }
    let (own, others) = (Self.split(path), Self.split(otherPath))
    var (status, otherStatus) = (stat(), stat())
    guard own.name == others.name, stat(own.directory, &status) == 0, stat(others.directory, &otherStatus) == 0 else {
      return false
    }
    return status.st_dev == otherStatus.st_dev && status.st_ino == otherStatus.st_ino
  }

  /// Replaces the file's content.
  ///
  /// - Throws: ``ApplianceFailure``; then a file's old content is still there.
  package func write(_ text: String) throws {
    guard case .replaced(let real) = target else { return try writeInPlace(text) }
    let temporary = Self.temporary(beside: real)
    let file = try create(temporary)
    do throws(SystemFailure) {
      // The new file keeps the permissions of the old one; a secret was created for its owner alone.
      if let mode, !isSecret { fchmod(file.number, mode) }
      try FileDescriptor.write(text.utf8.span.bytes, to: file.number)
      // Some file systems report only now that there was no space.
      try file.close()
      try syscall("rename") { rename(temporary, real) }
    } catch {
      unlink(temporary)
      throw failure(error.errorNumber, isWriting: true)
    }
  }

  /// Replaces the file by an empty one, which the caller writes to.
  ///
  /// - Throws: ``ApplianceFailure``; then a file's old content is still there.
  func open() throws -> FileDescriptor {
    guard case .replaced(let real) = target else { return try openInPlace() }
    let temporary = Self.temporary(beside: real)
    let file = try create(temporary)
    guard rename(temporary, real) == 0 else {
      let failure = failure(errno, isWriting: true)
      unlink(temporary)
      throw failure
    }
    return file
  }

  /// Removes the file. A device or a pipe stays.
  func remove() {
    if case .replaced(let real) = target { unlink(real) }
  }

  private func openInPlace() throws -> FileDescriptor {
    // Without blocking: a pipe without a reader would hold up the end of the program for ever.
    let file = try open(O_WRONLY | O_NONBLOCK | O_NOCTTY, path, isWriting: true)
    // A slow reader, in contrast, is waited for.
    _ = fcntl(file.number, F_SETFL, fcntl(file.number, F_GETFL) & ~O_NONBLOCK)
    return file
  }

  private func writeInPlace(_ text: String) throws {
    let file = try openInPlace()
    let error = writeAll(text, to: file.number)
    guard error == 0 else { throw failure(error, isWriting: true) }
  }

  /// Returns the path of a new file beside the real one, so that `rename` stays on one file system.
  private static func temporary(beside real: String) -> String { "\(real).\(getpid()).new" }

  private func create(_ temporary: String) throws -> FileDescriptor {
    unlink(temporary)
    return try open(O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, temporary, isWriting: false)
  }

  private func open(_ flags: CInt, _ place: String, isWriting: Bool) throws -> FileDescriptor {
    do throws(SystemFailure) {
      return try FileDescriptor(place, flags, mode: isSecret ? 0o600 : 0o644)
    } catch {
      throw failure(error.errorNumber, isWriting: isWriting)
    }
  }

  private func failure(_ errorNumber: CInt, isWriting: Bool = false) -> ApplianceFailure {
    Self.failure(path, errorNumber, isWriting: isWriting)
  }

  private static func failure(_ path: String, _ errorNumber: CInt, isWriting: Bool) -> ApplianceFailure {
    let isForbidden = errorNumber == EACCES || errorNumber == EPERM
    let reason =
      errorNumber == ENXIO && isWriting ? "nobody reads from this pipe" : SystemFailure.text(errorNumber)
    return ApplianceFailure(
      kind: isForbidden ? .noPermission : isWriting ? .inputOutput : .cannotCreate,
      description: "cannot write \(path): \(reason)")
  }

  /// Returns the path of the file that a person named, with its links followed one by one as the kernel follows them,
  /// whether a file is there or not.
  ///
  /// - Throws: ``ApplianceFailure`` for a link that another user has created in a directory that everybody may write,
  ///   such as /tmp: the link could lead to any file of this user. The rule is that of `fs.protected_symlinks`
  ///   (proc(5)), but for the links to directories on the way too.
  private static func followingLinks(_ given: String) throws -> String {
    // The last name is the next one.
    var names = Array(Self.names(in: given).reversed())
    var place = isAbsolute(given) ? "/" : ""
    // The kernel follows as many.
    var linksLeft = 40
    while let name = names.popLast() {
      // A slash at the end stays: the kernel takes no file for a directory.
      if name.isEmpty, !names.isEmpty { continue }
      let path = "\(place)\(name)"
      var target = [CChar](repeating: 0, count: Int(PATH_MAX))
      guard readlink(path, &target, target.count) > 0 else {
        guard errno == EINVAL || errno == ENOENT && names.isEmpty else { throw failure(given, errno, isWriting: false) }
        place = names.isEmpty ? path : "\(path)/"
        continue
      }
      guard linksLeft > 0 else { throw failure(given, ELOOP, isWriting: false) }
      linksLeft -= 1
      var link = stat()
      guard lstat(path, &link) == 0 else { throw failure(given, errno, isWriting: false) }
      try refuse("link", ofOthers: link, path, in: place.isEmpty ? "." : place, given)
      if place.utf8.starts(with: "/proc/".utf8), !names.isEmpty {
        // Such a directory may be elsewhere than its text says, as /proc/PID/root is.
        place = "\(path)/"
        continue
      }
      let text = String(cBuffer: target)
      if isAbsolute(text) { place = "/" }
      names += Self.names(in: text).reversed()
    }
    return place
  }

  private static func isAbsolute(_ path: String) -> Bool { path.utf8.first == UInt8(ascii: "/") }

  /// Returns what stands between the slashes.
  private static func names(in path: String) -> [String] {
    path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
  }

  /// Refuses what another user, and not the directory's owner, has created in a directory that everybody may write. The
  /// kernel does so by default on most hosts (`fs.protected_symlinks`, `fs.protected_regular`, `fs.protected_fifos`).
  private static func refuse(
    _ kind: String, ofOthers entry: stat, _ path: String, in directory: String, _ given: String
  ) throws {
    var place = stat()
    guard stat(directory, &place) == 0 else { throw failure(given, errno, isWriting: false) }
    let isForAll = place.st_mode & S_ISVTX != 0 && place.st_mode & S_IWOTH != 0
    guard isForAll, entry.st_uid != geteuid(), entry.st_uid != place.st_uid else { return }
    throw ApplianceFailure(
      kind: .noPermission,
      description:
        "cannot write \(given): \(path) is a \(kind) of another user (uid \(entry.st_uid)) in a directory for all; "
        + "choose a file in a directory of your own")
  }

  private static func split(_ path: String) -> (directory: String, name: Substring) {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return (".", path[...]) }
    let directory = path[..<slash]
    return (directory.isEmpty ? "/" : String(directory), path[path.utf8.index(after: slash)...])
  }
}
