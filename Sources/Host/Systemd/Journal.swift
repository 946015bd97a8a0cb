import CLinux
import CSystemd
import Glibc

/// A log line's level: the levels of syslog(3) that are in use.
package enum LogLevel: Int, Sendable {
  /// A main function of the program does not work.
  case error = 3
  /// Data was lost, or may be.
  case warning = 4
  /// Normal operation.
  case info = 6
}

/// A field of a journal entry besides its text.
package struct JournalField: Sendable {
  /// Upper-case letters, digits and `_`, at most 64, beginning with a letter (systemd.journal-fields(7)).
  package let name: String
  /// The field's value.
  package let value: String

  /// Creates a field; see the properties.
  package init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// systemd's journal, by its native protocol, which has levels and fields, unlike a line on standard error.
package struct Journal: Sendable {
  /// Creates the journal where standard error leads to it (`JOURNAL_STREAM`, systemd.exec(5)); nil elsewhere.
  package init?() {
    guard let stream = getenv("JOURNAL_STREAM").map({ String(cString: $0) }) else { return nil }
    var file = nightjar_file()
    guard nightjar_descriptor_status(STDERR_FILENO, &file) == 0, stream == "\(file.device):\(file.inode)" else {
      return nil
    }
  }

  /// Writes an entry; returns `false` where the journal does not accept it.
  @discardableResult
  package func write(_ text: String, _ level: LogLevel, _ fields: [JournalField] = []) -> Bool {
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
