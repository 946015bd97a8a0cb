import CLinux
import Foundation
import TestSupport

/// A control server in a process of its own, and curl, which asks it.
final class ServedControl {
  let directory: TemporaryDirectory
  let socket: String
  let process: Subprocess

  /// The answer that curl got.
  struct Answer {
    let status: Int
    let body: String
    let headers: String
    /// curl's own exit code: 0 where an answer came.
    let curl: Int32

    subscript(key: String) -> String? {
      let object = try? JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any]
      return object?[key].map { "\($0)" }
    }
  }

  /// Starts one and waits until it listens.
  init(
    requestSeconds: Double = 60, connections: Int = 16, cameras: [String] = [], in directory: TemporaryDirectory? = nil,
    environment: [String: String] = [:]
  ) throws {
    self.directory = try directory ?? TemporaryDirectory()
    socket = self.directory.path("control.sock")
    process = try Self.start(
      socket, requestSeconds, connections, cameras, in: self.directory, environment: environment)
    let (running, socket) = (process, socket)
    guard eventually({ !running.isRunning || Self.answers(socket) }), running.isRunning else {
      throw Ended(output: try process.wait(limit: 1).outputText)
    }
  }

  deinit { process.send(SIGKILL) }

  /// It has ended at once.
  struct Ended: Error { let output: String }

  /// The server's program.
  static let tool = builtPath("ControlServerTool")

  static func start(
    _ socket: String, _ requestSeconds: Double = 60, _ connections: Int = 16, _ cameras: [String] = [],
    in directory: TemporaryDirectory, environment: [String: String] = [:]
  ) throws -> Subprocess {
    try Subprocess(
      [tool, socket, "\(requestSeconds)", "\(connections)"] + cameras, in: directory, environment: environment)
  }

  static func answers(_ socket: String) -> Bool {
    guard let connection = try? RawConnection(socket) else { return false }
    connection.end()
    return true
  }

  /// Ends it; what it was asked, line by line.
  func finish() throws -> [String] {
    process.send(SIGTERM)
    return try process.wait(limit: 60).outputText.split(separator: "\n").map(String.init)
  }

  /// The number of connections that the server has, by the kernel's account. Among them are those that it has not
  /// accepted yet, and those whose client has gone and that it has not closed yet.
  func connections() throws -> Int {
    let sockets = try KernelFile.text("/proc/net/unix").split(separator: "\n").count { $0.hasSuffix(" \(socket)") }
    // One of them listens.
    return sockets - 1
  }

  /// Asks by curl.
  func curl(_ arguments: [String], _ route: String, before: [String] = []) throws -> Answer {
    let body = directory.path("body-\(UUID().uuidString)")
    let headers = body + ".headers"
    let result = try Subprocess.run(
      before + ["curl", "-sS", "--max-time", "60", "--unix-socket", socket, "-D", headers, "-w", "%{http_code}"]
        + ["-o", body] + arguments + ["http://localhost" + route], in: directory)
    return Answer(
      status: Int(result.outputText) ?? -1, body: (try? String(contentsOfFile: body, encoding: .utf8)) ?? "",
      headers: (try? String(contentsOfFile: headers, encoding: .utf8)) ?? "", curl: result.status)
  }

  /// Asks by curl for a stream; see ``stream(_:in:until:)``.
  func stream(
    _ arguments: [String], _ route: String, until isEnough: (String) -> Bool = { _ in true }
  ) throws -> Answer {
    try Self.stream(
      ["--unix-socket", socket] + arguments + ["http://localhost" + route], in: directory, until: isEnough)
  }

  /// Asks by curl for a stream, which has no end, and leaves once its head and so much of its body have come that
  /// `isEnough` says so. Another answer is waited for to its end.
  static func stream(
    _ arguments: [String], in directory: TemporaryDirectory, until isEnough: (String) -> Bool
  ) throws -> Answer {
    let file = directory.path("headers-\(UUID().uuidString)")
    let client = try Subprocess(["curl", "-sSN", "-D", file] + arguments, in: directory)
    defer { client.send(SIGKILL) }
    func headers() -> String { (try? String(contentsOfFile: file, encoding: .utf8)) ?? "" }
    _ = eventually {
      HTTPFields(headers()).status == 200 && headers().hasSuffix("\r\n\r\n") && isEnough(client.outputSoFar)
        || !client.isRunning
    }
    let status = try client.isRunning ? 0 : client.wait().status
    return Answer(
      status: HTTPFields(headers()).status ?? -1, body: client.outputSoFar, headers: headers(), curl: status)
  }

  /// `nightjar ctl`.
  func ctl(_ arguments: String..., before: [String] = []) throws -> Subprocess.Result {
    try Subprocess.run(before + [nightjarPath, "ctl"] + arguments + ["--socket", socket], in: directory)
  }
}

/// A connection that sends what no proper client does.
final class RawConnection {
  private let descriptor: Int32

  init(_ path: String) throws {
    descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard result == 0 else {
      close(descriptor)
      throw CocoaError(.fileNoSuchFile)
    }
  }

  /// Returns `true` if the other side still takes it.
  func send(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    return Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
  }

  /// Returns the bytes until the other side ends; nil if `seconds` have passed.
  func read(within seconds: Int) -> String? {
    var patience = timeval(tv_sec: seconds, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    var text: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count < 0, errno == EAGAIN { return nil }
      guard count > 0 else { return String(decoding: text, as: UTF8.self) }
      text += buffer[..<count]
    }
  }

  /// Closes this side of the connection.
  func endOutput() { shutdown(descriptor, Int32(SHUT_WR)) }

  func end() { close(descriptor) }
}
