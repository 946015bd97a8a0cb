import CLinux
import Glibc
import Platform

/// The bytes of a file or a pipe, in order.
///
/// The file is not mapped: if it shrinks during reading, that is an error here, but would be `SIGBUS` in a map.
struct Y4MStream: ~Copyable {
  /// The outcome of a read.
  enum Outcome: Equatable {
    /// All bytes were read.
    case complete
    /// The input ended after that many bytes.
    case end(after: Int)
    /// The interrupt came after that many bytes.
    case interrupted(after: Int)
  }

  /// `true` if the stream can go back: a file, not a pipe.
  let isSeekable: Bool
  /// The number of bytes read or skipped since the beginning.
  private(set) var offset: Int64 = 0
  private let descriptor: FileDescriptor

  /// Opens the file or pipe at `path`; a pipe need not have a writer yet.
  ///
  /// - Throws: ``Y4MError``.
  init(path: String) throws(Y4MError) {
    // Opening a pipe without a writer would block, perhaps forever. For files the flag makes no difference.
    let opened: FileDescriptor
    do throws(SystemFailure) {
      opened = try FileDescriptor(path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
    } catch {
      throw .open(path: path, errorNumber: error.errorNumber)
    }
    var status = stat()
    guard fstat(opened.number, &status) == 0 else { throw .open(path: path, errorNumber: errno) }
    switch status.st_mode & S_IFMT {
    case S_IFREG: isSeekable = true
    case S_IFIFO: isSeekable = false
    default: throw .notAFile(path: path)
    }
    // A hint; its result changes nothing.
    if isSeekable { _ = posix_fadvise(opened.number, 0, 0, POSIX_FADV_SEQUENTIAL) }
    descriptor = opened
  }

  /// Reads `count` bytes to `target`. For a pipe, waits for them until the descriptor `interrupt` (-1 for none) becomes
  /// readable, or for `patience`.
  ///
  /// - Throws: ``SystemFailure``.
  mutating func read(
    _ count: Int, to target: UnsafeMutableRawPointer, interrupt: CInt, patience: Duration? = nil
  ) throws(SystemFailure) -> Outcome {
    var done = 0
    // A pipe that no writer has opened yet reads as ended.
    var mustWait = !isSeekable && offset == 0
    while done < count {
      if mustWait, try !waitForInput(interrupt: interrupt, patience: patience) { return .interrupted(after: done) }
      mustWait = false
      let result = uninterrupted { Glibc.read(descriptor.number, target + done, count - done) }
      if result > 0 {
        done += result
        offset += Int64(result)
      } else if result == 0 {
        return .end(after: done)
      } else if errno == EAGAIN {
        mustWait = !isSeekable
      } else {
        throw SystemFailure("read")
      }
    }
    return .complete
  }

  /// Lets a pipe hold a good part of `bytes`, so that writer and reader wake each other a few times for a picture and not
  /// for each 64 kB, which the kernel gives a pipe otherwise. The pipe never holds more, because what waits in it is late.
  /// Where the kernel allows less, nothing changes.
  func enlargePipe(toward bytes: Int) {
    guard !isSeekable else { return }
    // The kernel rounds up to a power of two.
    var size = Self.pipeLimit
    while size > bytes { size /= 2 }
    while size > Self.usualPipe, nightjar_set_pipe_size(descriptor.number, Int32(size)) < 0 { size /= 2 }
  }

  /// The largest pipe that the kernel allows everybody by default (`/proc/sys/fs/pipe-max-size`), and the usual one.
  private static let pipeLimit = 1 << 20
  private static let usualPipe = 1 << 16

  /// Skips `count` bytes of a file.
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

  /// Returns the number of bytes left in a file.
  ///
  /// - Throws: ``SystemFailure``.
  func bytesLeft() throws(SystemFailure) -> Int64 {
    var status = stat()
    try syscall("fstat") { fstat(descriptor.number, &status) }
    return max(0, Int64(status.st_size) - offset)
  }

  /// Moves to byte `position` of a file.
  ///
  /// - Throws: ``SystemFailure``.
  mutating func seek(to position: Int64) throws(SystemFailure) {
    try syscall("lseek") { lseek(descriptor.number, off_t(position), SEEK_SET) }
    offset = position
  }

  /// Waits for a pipe. Returns `false` if interrupted, or after `patience`.
  private func waitForInput(interrupt: CInt, patience: Duration?) throws(SystemFailure) -> Bool {
    let deadline = patience.map { .now() + $0 }
    // A tuple instead of an array: this may be called for every few kilobytes.
    var descriptors = (
      pollfd(fd: descriptor.number, events: Int16(POLLIN), revents: 0),
      pollfd(fd: interrupt, events: Int16(POLLIN), revents: 0)
    )
    while true {
      let result = try syscall("poll") {
        withUnsafeMutablePointer(to: &descriptors) {
          $0.withMemoryRebound(to: pollfd.self, capacity: 2) {
            nightjar_poll($0, 2, deadline.map { max(0, ($0 - .now()).nanoseconds) } ?? -1)
          }
        }
      }
      if result > 0 { return descriptors.1.revents == 0 }
      if let deadline, Instant.now() >= deadline { return false }
    }
  }
}
