import Glibc

/// The resident memory of this process.
enum ResidentMemory {
  /// The resident set in bytes, from `/proc/self/statm` (proc(5)); 0 if it cannot be read.
  static var bytes: Int {
    let file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return 0 }
    defer { close(file) }
    return withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { buffer in
      let count = read(file, buffer.baseAddress, buffer.count)
      guard count > 0 else { return 0 }
      let fields = String(decoding: buffer.prefix(count), as: UTF8.self).split(separator: " ")
      guard fields.count > 1, let pages = Int(fields[1]) else { return 0 }
      return pages * sysconf(CInt(_SC_PAGESIZE))
    }
  }
}
