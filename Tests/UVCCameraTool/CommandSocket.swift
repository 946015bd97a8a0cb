import CLinux
import Glibc

/// A Unix socket that takes lines and answers each with one.
final class CommandSocket {
  private let listener: CInt
  private let path: String
  private var clients: [(descriptor: CInt, line: [UInt8])] = []
  /// The most bytes of a line.
  private static let lineLimit = 200

  /// Listens at `path`; what a killed run left there goes.
  init(path: String) throws(CameraToolError) {
    self.path = path
    unlink(path)
    listener = try Self.socket(path) { bind($0, $1, $2) }
    guard listen(listener, 8) == 0 else { throw .system("listen \(path)", errorNumber: errno) }
  }

  deinit {
    for client in clients { close(client.descriptor) }
    close(listener)
    unlink(path)
  }

  /// The descriptors to wait for.
  var descriptors: [CInt] { [listener] + clients.map(\.descriptor) }

  /// Takes what has come, without waiting, and answers each whole line with what `answer` makes of it.
  func serve(_ answer: (String) -> String) {
    while true {
      let client = accept(listener, nil, nil)
      guard client >= 0 else { break }
      clients.append((client, []))
    }
    clients = clients.compactMap { client in
      var client = client
      if Self.serve(&client.line, of: client.descriptor, answer) { return client }
      close(client.descriptor)
      return nil
    }
  }

  /// False where the client has gone.
  private static func serve(_ line: inout [UInt8], of descriptor: CInt, _ answer: (String) -> String) -> Bool {
    var bytes = [UInt8](repeating: 0, count: lineLimit)
    let count = recv(descriptor, &bytes, bytes.count, CInt(MSG_DONTWAIT))
    guard count > 0 else { return count < 0 && (errno == EAGAIN || errno == EINTR) }
    line += bytes[0..<count]
    while let end = line.firstIndex(of: 0x0a) {
      let reply = Array((answer(String(decoding: line[..<end], as: UTF8.self)) + "\n").utf8)
      line.removeFirst(end + 1)
      guard send(descriptor, reply, reply.count, CInt(MSG_NOSIGNAL)) == reply.count else { return false }
    }
    return line.count < lineLimit
  }

  /// Sends `line` to the tool that listens at `path`, and gives its answer.
  static func ask(_ line: String, at path: String) throws(CameraToolError) -> String {
    let descriptor = try socket(path) { connect($0, $1, $2) }
    defer { close(descriptor) }
    // The listener's own descriptors do not wait; neither may this one, but for the answer.
    var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    let request = Array((line + "\n").utf8)
    guard write(descriptor, request, request.count) == request.count else {
      throw .system("write \(path)", errorNumber: errno)
    }
    var answer: [UInt8] = []
    while answer.last != 0x0a {
      guard poll(&waiting, 1, -1) > 0 else { throw .system("poll", errorNumber: errno) }
      var bytes = [UInt8](repeating: 0, count: 4096)
      let count = read(descriptor, &bytes, bytes.count)
      guard count > 0 else { throw .system("read \(path)", errorNumber: count < 0 ? errno : ECONNRESET) }
      answer += bytes[0..<count]
    }
    return String(decoding: answer.dropLast(), as: UTF8.self)
  }

  private static func socket(
    _ path: String, _ attach: (CInt, UnsafePointer<sockaddr>, socklen_t) -> CInt
  ) throws(CameraToolError) -> CInt {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { throw .pathTooLong(path) }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let descriptor = Glibc.socket(
      AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0)
    guard descriptor >= 0 else { throw .system("socket", errorNumber: errno) }
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        attach(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard result == 0 else {
      let reason = errno
      close(descriptor)
      throw .system(path, errorNumber: reason)
    }
    return descriptor
  }
}
