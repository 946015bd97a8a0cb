import Glibc
package import Platform

/// The file of the history: a log with a checksum in each line, of which the program appends and never changes a line.
///
/// An event is in the file before anybody is told of it, so that `kill -9` loses none. A line that a crash has cut is
/// dropped at the next start. Once the file has twice as many lines as the history, the newest are written to another
/// file, which then replaces it.
package struct AlertJournal: ~Copyable {
  private let path: String
  private var file: FileDescriptor
  private let lock: FileDescriptor
  /// The length of the good lines, and their number.
  private var (bytes, lines) = (0, 0)
  /// Lines that the file system did not take yet.
  private var waiting: [[UInt8]] = []
  /// The errno of the last attempt to write; 0 if it succeeded.
  package private(set) var errorNumber: CInt = 0

  /// The largest file that is read: ten times what the history needs.
  private static let byteLimit = 40 << 20
  /// The most lines that wait for room in the file system.
  private static let waitingLimit = AlertHistory.limit

  /// The reason why the file is not used.
  package enum OpenError: Failure, Hashable {
    /// Another process has it open.
    case inUse(path: String)
    /// The system refuses it.
    case system(path: String, errorNumber: CInt)

    /// One line for the user at the terminal.
    package var description: String {
      switch self {
      case .inUse(let path): "another program writes the history \(path): choose another file with --events-file"
      case .system(let path, let errorNumber):
        "history \(path): \(SystemFailure.text(errorNumber)); choose another file with --events-file"
      }
    }

    /// The failure's kind.
    package var kind: FailureKind {
      switch self {
      case .inUse: .temporary
      case .system: .cannotCreate
      }
    }
  }

  /// Opens or creates the file at `path`, and reads the newest events of it into `alerts`.
  ///
  /// - Throws: ``OpenError``.
  package init(path: String, into alerts: inout [Alert]) throws(OpenError) {
    // The file itself is replaced from time to time, so that another one has the lock.
    let lock = try Self.open("\(path).lock", for: path)
    guard flock(lock.number, LOCK_EX | LOCK_NB) == 0 else {
      throw errno == EWOULDBLOCK ? .inUse(path: path) : .system(path: path, errorNumber: errno)
    }
    let file = try Self.open(path, for: path)
    do throws(SystemFailure) {
      let content = try file.read(upTo: Self.byteLimit)
      // Whatever stands behind the last whole line is what a crash left of one.
      bytes = content.lastIndex(of: 0x0a).map { $0 + 1 } ?? 0
      (alerts, lines) = Self.alerts(in: content[..<bytes])
      let length = off_t(bytes)
      if bytes < content.count || content.count == Self.byteLimit {
        try syscall("ftruncate") { ftruncate(file.number, length) }
      }
    } catch {
      throw .system(path: path, errorNumber: error.errorNumber)
    }
    self.path = path
    self.lock = lock
    self.file = file
  }

  private static func open(_ path: String, for history: String) throws(OpenError) -> FileDescriptor {
    do throws(SystemFailure) {
      return try FileDescriptor(path, O_RDWR | O_CREAT, mode: 0o600)
    } catch {
      throw .system(path: history, errorNumber: error.errorNumber)
    }
  }

  /// Returns the newest events of a file, and the number of its lines. Damaged lines are passed over, and so are lines
  /// out of order.
  private static func alerts(in content: ArraySlice<UInt8>) -> (alerts: [Alert], lines: Int) {
    var alerts: [Alert] = []
    var lines = 0
    for line in content.split(separator: 0x0a) {
      lines += 1
      guard let alert = AlertRecord.alert(of: line), alert.id > alerts.last?.id ?? 0 else { continue }
      alerts.append(alert)
    }
    return (alerts.suffix(AlertHistory.limit), lines)
  }

  /// Appends an event, and returns once the kernel has it; `kill -9` does not lose it any more. A file system without
  /// room leaves the event waiting, and the next call tries again.
  package mutating func append(_ alert: Alert) {
    guard let line = AlertRecord.line(of: alert) else { return }
    waiting.append(line)
    if waiting.count > Self.waitingLimit { waiting.removeFirst() }
    retry()
  }

  /// Writes the lines that wait.
  package mutating func retry() {
    while let line = waiting.first {
      do throws(SystemFailure) {
        try write(line, at: bytes)
        bytes += line.count
        lines += 1
        waiting.removeFirst()
        errorNumber = 0
      } catch {
        // A part of the line may be in the file, and the next line must not follow it.
        _ = ftruncate(file.number, off_t(bytes))
        errorNumber = error.errorNumber
        return
      }
    }
  }

  private func write(_ line: [UInt8], at offset: Int) throws(SystemFailure) {
    var written = 0
    while written < line.count {
      let place = off_t(offset + written)
      let count = try syscall("pwrite") { pwrite(file.number, Array(line[written...]), line.count - written, place) }
      guard count > 0 else { throw SystemFailure("pwrite", errorNumber: EIO) }
      written += count
    }
  }

  /// Makes the kernel write the file to its disk, and shortens it where it has grown.
  ///
  /// - Parameter alerts: the history, oldest first.
  package mutating func settle(_ alerts: @autoclosure () -> [Alert]) {
    guard lines > 2 * AlertHistory.limit, waiting.isEmpty else {
      // A power failure loses what this call has not reached; the file stays whole, because each line has a checksum.
      _ = fdatasync(file.number)
      return
    }
    do throws(SystemFailure) {
      try rewrite(alerts())
    } catch {
      // The long file is as good, and the next call tries again.
      errorNumber = error.errorNumber
    }
  }

  private mutating func rewrite(_ alerts: [Alert]) throws(SystemFailure) {
    let new = try FileDescriptor("\(path).new", O_RDWR | O_CREAT | O_TRUNC, mode: 0o600)
    let content = alerts.compactMap { AlertRecord.line(of: $0) }
    let joined = Array(content.joined())
    try FileDescriptor.write(joined.span.bytes, to: new.number)
    try syscall("fdatasync") { fdatasync(new.number) }
    try syscall("rename") { rename("\(path).new", path) }
    file = new
    (bytes, lines) = (joined.count, content.count)
  }
}
