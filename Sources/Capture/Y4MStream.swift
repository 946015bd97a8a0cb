import CLinux
import Glibc
import Media

/// The bytes of a file or of a pipe, one after the other.
///
/// Nothing is mapped: a file that shrinks while it is read is an error here, and would be `SIGBUS` there.
struct Y4MStream: ~Copyable {
  /// How a read ended.
  enum Outcome: Equatable {
    /// All bytes are there.
    case complete
    /// The input ended after so many bytes.
    case end(after: Int)
    /// The interrupt came after so many bytes.
    case interrupted(after: Int)
  }

  /// Whether one may go back in it: a file, no pipe.
  let isSeekable: Bool
  /// How many bytes were read or skipped since the beginning.
  private(set) var offset: Int64 = 0
  private let descriptor: CInt

  /// Opens the file or pipe at `path`; a pipe need not have a writer yet.
  ///
  /// - Throws: ``Y4MError``.
  init(path: String) throws(Y4MError) {
    // Opening a pipe without a writer would wait, for ever perhaps. Files do not mind.
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw .open(path: path, errorNumber: errno) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      let errorNumber = errno
      close(descriptor)
      throw .open(path: path, errorNumber: errorNumber)
    }
    switch status.st_mode & S_IFMT {
    case S_IFREG: isSeekable = true
    case S_IFIFO: isSeekable = false
    default:
      close(descriptor)
      throw .notAFile(path: path)
    }
    self.descriptor = descriptor
    // A hint; what it returns changes nothing.
    if isSeekable { _ = posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL) }
  }

  deinit {
    close(descriptor)
  }

  /// Reads `count` bytes to `target`. From a pipe it waits for them until the descriptor `interrupt` (-1 for none)
  /// becomes readable, or for `patience`.
  ///
  /// - Throws: ``SystemFailure``.
  mutating func read(
    _ count: Int, to target: UnsafeMutableRawPointer, interrupt: CInt, patience: MediaTime? = nil
  ) throws(SystemFailure) -> Outcome {
    var done = 0
    while done < count {
      if !isSeekable, try !waitForInput(interrupt: interrupt, patience: patience) { return .interrupted(after: done) }
      let result = Glibc.read(descriptor, target + done, count - done)
      if result > 0 {
        done += result
        offset += Int64(result)
      } else if result == 0 {
        return .end(after: done)
      } else if errno != EINTR && errno != EAGAIN {
        throw SystemFailure("read")
      }
    }
    return .complete
  }

  /// Leaves out `count` bytes of a file.
  ///
  /// - Throws: ``SystemFailure``.
  mutating func skip(_ count: Int) throws(SystemFailure) -> Outcome {
    let rest = try bytesLeft()
    guard rest >= Int64(count) else {
      offset += rest
      return .end(after: Int(rest))
    }
    try seek(to: offset + Int64(count))
    return .complete
  }

  /// How many bytes of a file are left.
  ///
  /// - Throws: ``SystemFailure``.
  func bytesLeft() throws(SystemFailure) -> Int64 {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw SystemFailure("fstat") }
    return max(0, Int64(status.st_size) - offset)
  }

  /// Goes to byte `position` of a file.
  ///
  /// - Throws: ``SystemFailure``.
  mutating func seek(to position: Int64) throws(SystemFailure) {
    guard lseek(descriptor, off_t(position), SEEK_SET) >= 0 else { throw SystemFailure("lseek") }
    offset = position
  }

  /// Waits for a pipe; false if interrupted, or out of patience.
  private func waitForInput(interrupt: CInt, patience: MediaTime?) throws(SystemFailure) -> Bool {
    let deadline = patience.map { .now() + $0 }
    // Indices instead of an array: this may be called for every few kilobytes.
    var descriptors = (
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: interrupt, events: Int16(POLLIN), revents: 0)
    )
    while true {
      let timeout = deadline.map { max(0, ($0 - .now()).nanoseconds) } ?? -1
      let result = withUnsafeMutablePointer(to: &descriptors) {
        $0.withMemoryRebound(to: pollfd.self, capacity: 2) { nightjar_poll($0, 2, timeout) }
      }
      if result < 0, errno != EINTR { throw SystemFailure("poll") }
      if result > 0 { return descriptors.1.revents == 0 }
      if let deadline, MediaTime.now() >= deadline { return false }
    }
  }
}
