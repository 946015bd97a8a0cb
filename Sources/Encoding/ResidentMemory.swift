import Glibc
import Platform

/// The resident memory of this process.
enum ResidentMemory {
  /// The resident set in bytes, from `/proc/self/statm` (proc(5)); 0 if it cannot be read.
  static var bytes: Int {
    guard let bytes = try? FileDescriptor("/proc/self/statm", O_RDONLY).read(upTo: 256) else { return 0 }
    let fields = String(decoding: bytes, as: UTF8.self).split(separator: " ")
    guard fields.count > 1, let pages = Int(fields[1]) else { return 0 }
    return pages * sysconf(CInt(_SC_PAGESIZE))
  }
}
