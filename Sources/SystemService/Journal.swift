import CLinux
import CSystemd
import Glibc

/// How much a line of the log matters: the levels of syslog(3) that are in use.
public enum LogLevel: Int, Sendable {
  /// Something that the program is there for does not work.
  case error = 3
  /// Something was lost, or may be.
  case warning = 4
  /// What happens when all is well.
  case info = 6
}

/// A field of a journal entry besides its text.
public struct JournalField: Sendable {
  /// Upper-case letters, digits and `_`, at most 64, beginning with a letter (systemd.journal-fields(7)).
  public let name: String
  /// Whatever it is.
  public let value: String

  /// A field; see the properties.
  public init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// systemd's journal, by its native protocol: levels and fields, which a line on standard error has not.
public struct Journal: Sendable {
  /// The journal, where standard error leads there (`JOURNAL_STREAM`, systemd.exec(5)); nil elsewhere.
  public init?() {
    guard let stream = getenv("JOURNAL_STREAM").map({ String(cString: $0) }) else { return nil }
    var file = nightjar_file()
    guard nightjar_descriptor_status(STDERR_FILENO, &file) == 0, stream == "\(file.device):\(file.inode)" else {
      return nil
    }
  }

  /// Writes an entry; false where the journal does not take it.
  @discardableResult
  public func write(_ text: String, _ level: LogLevel, _ fields: [JournalField] = []) -> Bool {
    let assignments = ["MESSAGE=\(text)", "PRIORITY=\(level.rawValue)"] + fields.map { "\($0.name)=\($0.value)" }
    var bytes: [UInt8] = []
    var lengths: [Int] = []
    for assignment in assignments {
      lengths.append(assignment.utf8.count)
      bytes.append(contentsOf: assignment.utf8)
    }
    return bytes.withUnsafeMutableBytes { memory in
      var vectors: [iovec] = []
      var offset = 0
      for length in lengths {
        vectors.append(iovec(iov_base: memory.baseAddress.map { $0 + offset }, iov_len: length))
        offset += length
      }
      return sd_journal_sendv(&vectors, CInt(vectors.count)) == 0
    }
  }
}
