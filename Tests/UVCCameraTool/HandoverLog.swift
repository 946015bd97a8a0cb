import Glibc
import Media
import Platform

/// When each picture left the camera: a line of its number, and `CLOCK_MONOTONIC` in nanoseconds when its first and its
/// last byte were handed over.
final class HandoverLog {
  private let descriptor: CInt

  /// Begins the file at `path` anew.
  init(path: String) throws(CameraToolError) {
    descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw .system("open \(path)", errorNumber: errno) }
  }

  deinit { close(descriptor) }

  /// Writes a picture down. The line is there at once, for who reads it while the camera runs.
  func add(_ number: Int, begin: Instant, end: Instant) {
    let line = Array("\(number) \(begin.nanoseconds) \(end.nanoseconds)\n".utf8)
    _ = write(descriptor, line, line.count)
  }
}
