import Glibc

/// A file of pictures.
enum ClipFile {
  /// All of the file at `path`, which is not empty.
  static func read(_ path: String) throws(CameraToolError) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system("open \(path)", errorNumber: errno) }
    defer { close(descriptor) }
    let length = Int(lseek(descriptor, 0, SEEK_END))
    guard length > 0 else { throw .empty(path: path) }
    var bytes = [UInt8](repeating: 0, count: length)
    var done = 0
    while done < length {
      let count = bytes.withUnsafeMutableBytes { memory in
        let rest = UnsafeMutableRawBufferPointer(rebasing: memory[done...])
        return pread(descriptor, rest.baseAddress, rest.count, off_t(done))
      }
      guard count > 0 else { throw .system("read \(path)", errorNumber: errno) }
      done += count
    }
    return bytes
  }
}
