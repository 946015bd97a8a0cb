import CLinux
package import Foundation
import Synchronization

/// A client of RTSP (RFC 2326) that says what a test wants said, right or wrong.
package final class RTSPClient {
  /// The answer of a server.
  package struct Reply: Sendable {
    /// As in `RTSP/1.0 200 OK`.
    package let status: Int
    /// The fields' values by their names in lower case; several of one name in the order in which they came.
    package let headers: [String: [String]]
    /// The body.
    package let body: String
    /// The number of interleaved packets that had come before it, of all.
    package let packetsBefore: Int

    /// The first value of a field.
    package func header(_ name: String) -> String? { headers[name.lowercased()]?.first }

    /// The session without its parameters.
    package var session: String? { header("Session").map { String($0.prefix { $0 != ";" }) } }
    /// The server's port of RTCP.
    package var serverControlPort: UInt16? {
      header("Transport")?.split(separator: ";").first { $0.hasPrefix("server_port=") }
        .flatMap { UInt16($0.split(separator: "-").last ?? "") }
    }
    /// Where `RTP-Info` says that the stream begins.
    package var start: (sequence: UInt16, timestamp: UInt32)? {
      let parts = header("RTP-Info")?.split(separator: ";") ?? []
      guard let sequence = parts.first(where: { $0.hasPrefix("seq=") }).flatMap({ UInt16($0.dropFirst(4)) }),
        let time = parts.first(where: { $0.hasPrefix("rtptime=") }).flatMap({ UInt32($0.dropFirst(8)) })
      else { return nil }
      return (sequence, time)
    }
  }

  /// The interleaved packets that came so far, with their channels.
  package private(set) var packets: [(channel: UInt8, bytes: Data)] = []
  /// `true` if the server has closed the connection.
  package private(set) var isClosed = false
  /// The camera.
  package let url: String
  private let socket: Int32
  private var tunnel: Process?
  private var buffer = Data()
  private var replies: [Reply] = []
  private var lastSequence = 0
  /// The number of packets that came and are not in ``packets`` any more.
  private var packetsTaken = 0

  /// Connects.
  ///
  /// - Parameters:
  ///   - source: Where from, an address of this machine.
  ///   - receiveBuffer: The bytes that the kernel keeps of what comes.
  package init(
    host: String = "127.0.0.1", port: Int, path: String = "camera", from source: String? = nil,
    receiveBuffer: Int32? = nil
  ) throws {
    let isIPv6 = host.contains(":")
    url = "rtsp://\(isIPv6 ? "[\(host)]" : host):\(port)/\(path)"
    socket = Glibc.socket(isIPv6 ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    if var receiveBuffer {
      setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, socklen_t(MemoryLayout<Int32>.size))
    }
    if let source { try InternetAddress(source, 0).bind(socket) }
    guard try InternetAddress(host, UInt16(port)).connect(socket) else {
      close(socket)
      throw CocoaError(.fileNoSuchFile)
    }
    _ = fcntl(socket, F_SETFL, O_NONBLOCK)
  }

  /// Connects to this machine by TLS, which openssl speaks for it; certificates are not checked.
  package init(overTLS port: Int, path: String = "camera") throws {
    url = "rtsps://127.0.0.1:\(port)/\(path)"
    var ends: [Int32] = [-1, -1]
    guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else { throw CocoaError(.fileNoSuchFile) }
    socket = ends[0]
    _ = fcntl(ends[0], F_SETFD, FD_CLOEXEC)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["openssl", "s_client", "-quiet", "-connect", "127.0.0.1:\(port)"]
    let other = FileHandle(fileDescriptor: ends[1], closeOnDealloc: true)
    process.standardInput = other
    process.standardOutput = other
    process.standardError = FileHandle.nullDevice
    try process.run()
    try? other.close()
    tunnel = process
    _ = fcntl(socket, F_SETFL, O_NONBLOCK)
  }

  deinit {
    close(socket)
    tunnel?.terminate()
  }

  /// Sends bytes as they are, as far as the server takes them within `limit` seconds; how many it took.
  @discardableResult
  package func send(_ bytes: some Collection<UInt8>, within limit: Double = 10) -> Int {
    var rest = Array(bytes)[...]
    let deadline = Date(timeIntervalSinceNow: limit)
    while !rest.isEmpty, Date() < deadline {
      let count = rest.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if count < 0, errno != EAGAIN, errno != EINTR { break }
      if count > 0 { rest = rest.dropFirst(count) } else { usleep(2000) }
    }
    return bytes.count - rest.count
  }

  /// The text of a request, with the next `CSeq`.
  package func text(_ method: String, _ uri: String? = nil, _ headers: [String] = []) -> String {
    lastSequence += 1
    return (["\(method) \(uri ?? url) RTSP/1.0", "CSeq: \(lastSequence)"] + headers + ["", ""]).joined(
      separator: "\r\n")
  }

  /// Sends a request and waits for the answer.
  package func request(_ method: String, _ uri: String? = nil, _ headers: [String] = []) throws -> Reply {
    send(text(method, uri, headers).utf8)
    return try reply()
  }

  /// The next answer.
  package func reply(within limit: Double = 30) throws -> Reply {
    let deadline = Date(timeIntervalSinceNow: limit)
    while replies.isEmpty, !isClosed, Date() < deadline { pump(20) }
    guard !replies.isEmpty else { throw NoReply(isClosed: isClosed) }
    return replies.removeFirst()
  }

  /// SETUP of the one stream with `transport`, and PLAY.
  package func play(_ transport: String, _ headers: [String] = []) throws -> (setup: Reply, play: Reply) {
    let setup = try request("SETUP", url + "/trackID=0", ["Transport: \(transport)"] + headers)
    guard setup.status == 200, let session = setup.session else { throw Refused(reply: setup) }
    let play = try request("PLAY", nil, ["Session: \(session)", "Range: npt=now-"] + headers)
    guard play.status == 200 else { throw Refused(reply: play) }
    return (setup, play)
  }

  /// Waits for `count` packets of `channel`, and takes them; fewer after `limit` seconds.
  package func take(_ count: Int, channel: UInt8 = 0, within limit: Double = 30) -> [Data] {
    let deadline = Date(timeIntervalSinceNow: limit)
    while packets.count(where: { $0.channel == channel }) < count, !isClosed, Date() < deadline { pump(20) }
    defer {
      packetsTaken += packets.count
      packets.removeAll()
    }
    return packets.filter { $0.channel == channel }.map(\.bytes)
  }

  /// Forgets the packets that came before `reply`, and no other.
  package func drop(before reply: Reply) {
    let count = min(packets.count, max(0, reply.packetsBefore - packetsTaken))
    packets.removeFirst(count)
    packetsTaken += count
  }

  /// Sends an interleaved packet.
  package func send(channel: UInt8, _ bytes: [UInt8]) {
    send([0x24, channel, UInt8(bytes.count >> 8), UInt8(bytes.count & 255)] + bytes)
  }

  /// Waits until the server closes; false after `limit` seconds.
  package func waitForClose(within limit: Double = 30) -> Bool {
    let deadline = Date(timeIntervalSinceNow: limit)
    while !isClosed, Date() < deadline { pump(20) }
    return isClosed
  }

  /// Breaks the connection off as a machine does that loses its power and comes back: by a reset.
  package func reset() {
    var linger = linger(l_onoff: 1, l_linger: 0)
    setsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
    // Keeps the number taken until the end.
    let null = open("/dev/null", O_RDONLY)
    dup2(null, socket)
    close(null)
    isClosed = true
  }

  /// Reads what has come, waiting for at most `milliseconds`.
  ///
  /// - Parameter limit: The most bytes.
  package func pump(_ milliseconds: Int32, limit: Int = 65_536) {
    var descriptor = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    guard !isClosed, poll(&descriptor, 1, milliseconds) > 0 else { return }
    let count = withUnsafeTemporaryAllocation(byteCount: limit, alignment: 8) { memory in
      let count = recv(socket, memory.baseAddress, limit, 0)
      if count > 0 { buffer.append(contentsOf: UnsafeRawBufferPointer(rebasing: memory[..<count])) }
      return count
    }
    if count == 0 || (count < 0 && errno != EAGAIN) { isClosed = true }
    var next = buffer.startIndex
    while takeMessage(&next) {}
    buffer = Data(buffer[next...])
  }

  private func takeMessage(_ next: inout Data.Index) -> Bool {
    let rest = buffer[next...]
    if rest.first == 0x24 {
      guard rest.count >= 4 else { return false }
      let end = next + 4 + (Int(rest[next + 2]) << 8 | Int(rest[next + 3]))
      guard rest.endIndex >= end else { return false }
      packets.append((rest[next + 1], Data(rest[(next + 4)..<end])))
      next = end
      return true
    }
    guard let end = rest.range(of: Data("\r\n\r\n".utf8)) else { return false }
    let lines = String(decoding: rest[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
    var headers: [String: [String]] = [:]
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
      if parts.count == 2 { headers[parts[0].lowercased(), default: []].append(parts[1]) }
    }
    let count = headers["content-length"]?.first.flatMap { Int($0) } ?? 0
    guard rest.endIndex >= end.upperBound + count else { return false }
    let status = lines[0].split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? -1
    let body = String(decoding: rest[end.upperBound..<(end.upperBound + count)], as: UTF8.self)
    replies.append(
      Reply(status: status, headers: headers, body: body, packetsBefore: packetsTaken + packets.count))
    next = end.upperBound + count
    return true
  }

  /// No answer came.
  package struct NoReply: Error {
    /// `true` if the connection was closed instead.
    package let isClosed: Bool
  }

  /// A request was refused that should not have been.
  package struct Refused: Error {
    /// By this.
    package let reply: Reply
  }
}

/// Two UDP ports, for RTP and RTCP.
package final class DatagramPair {
  /// The even one.
  package let port: UInt16
  private let media: Int32
  private let control: Int32
  private let reader: DatagramReader?

  /// Of an address of this machine.
  ///
  /// - Parameter readsAlways: `true` takes what comes to the port of RTP at once, so that nothing is lost while the
  ///   test does something else for longer than the kernel has room for.
  package init(_ host: String = "127.0.0.1", port: UInt16? = nil, readsAlways: Bool = false) throws {
    let family = host.contains(":") ? AF_INET6 : AF_INET
    // What was free a moment ago may be taken, and was looked at on another address.
    for tries in (0..<(port == nil ? 10 : 1)).reversed() {
      let (media, control) = (
        socket(family, Int32(SOCK_DGRAM.rawValue), 0), socket(family, Int32(SOCK_DGRAM.rawValue), 0)
      )
      do {
        let first = try port ?? UDPPort.free()
        try InternetAddress(host, first).bind(media)
        try InternetAddress(host, first + 1).bind(control)
        for socket in [media, control] {
          var size: Int32 = 8 << 20
          let length = socklen_t(MemoryLayout<Int32>.size)
          // Root's may be larger than others' may.
          if setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, &size, length) != 0 {
            setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, length)
          }
          _ = fcntl(socket, F_SETFL, O_NONBLOCK)
        }
        (self.port, self.media, self.control) = (first, media, control)
        reader = readsAlways ? DatagramReader(media) : nil
        return
      } catch {
        close(media)
        close(control)
        guard tries > 0 else { throw error }
      }
    }
    throw CocoaError(.fileWriteNoPermission)
  }

  deinit {
    reader?.end()
    close(media)
    close(control)
  }

  /// `client_port=` of `Transport`.
  package var transport: String { "RTP/AVP;unicast;client_port=\(port)-\(port + 1)" }

  /// Returns the datagrams that have arrived at the port of RTP, or that of RTCP.
  package func drain(control isControl: Bool = false) -> [Data] {
    if !isControl, let reader { return reader.take() }
    return Self.datagrams(at: isControl ? control : media)
  }

  fileprivate static func datagrams(at socket: Int32) -> [Data] {
    var memory = [UInt8](repeating: 0, count: 65_536)
    var datagrams: [Data] = []
    for _ in 0..<4096 {
      let count = recv(socket, &memory, memory.count, 0)
      guard count >= 0 else { break }
      datagrams.append(Data(memory[..<count]))
    }
    return datagrams
  }

  /// Waits for `count` datagrams of RTP; fewer after `limit` seconds.
  package func take(_ count: Int, within limit: Double = 30) -> [Data] {
    var datagrams: [Data] = []
    _ = eventually(within: limit) {
      datagrams += drain()
      return datagrams.count >= count
    }
    return datagrams
  }

  /// Sends from the port of RTCP.
  package func send(_ bytes: [UInt8], to port: UInt16, host: String = "127.0.0.1") throws {
    try InternetAddress(host, port).with { address, length in
      _ = sendto(control, bytes, bytes.count, 0, address, length)
    }
  }
}

/// A thread that takes datagrams from a socket as they come.
private final class DatagramReader: @unchecked Sendable {
  // Sendable: what is mutable is under the mutex.
  private struct State {
    var datagrams: [Data] = []
    var isOver = false
  }
  private let state = Mutex(State())
  private let hasEnded = DispatchSemaphore(value: 0)
  private let socket: Int32

  init(_ socket: Int32) {
    self.socket = socket
    Thread { [self] in run() }.start()
  }

  private func run() {
    while !state.withLock({ $0.isOver }) {
      var descriptor = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
      guard poll(&descriptor, 1, 50) > 0 else { continue }
      state.withLock { $0.datagrams += DatagramPair.datagrams(at: socket) }
    }
    hasEnded.signal()
  }

  /// Returns what has arrived since the last call.
  func take() -> [Data] {
    state.withLock { state in
      defer { state.datagrams = [] }
      return state.datagrams + DatagramPair.datagrams(at: socket)
    }
  }

  /// Ends the thread, after which the socket may be closed.
  func end() {
    state.withLock { $0.isOver = true }
    hasEnded.wait()
  }
}

/// A numeric address with a port.
private struct InternetAddress {
  private var storage = sockaddr_storage()
  private let length: socklen_t

  init(_ host: String, _ port: UInt16) throws {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, "\(port)", &hints, &list) == 0, let address = list?.pointee else {
      throw CocoaError(.fileNoSuchFile)
    }
    defer { freeaddrinfo(list) }
    length = address.ai_addrlen
    memcpy(&storage, address.ai_addr, Int(length))
  }

  func with<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
    withUnsafePointer(to: storage) { $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) } }
  }

  func bind(_ socket: Int32) throws {
    guard with({ Glibc.bind(socket, $0, $1) }) == 0 else { throw CocoaError(.fileWriteNoPermission) }
  }

  func connect(_ socket: Int32) -> Bool { with { Glibc.connect(socket, $0, $1) } == 0 }
}
