import CLinux
import Foundation
import Platform
import Synchronization
import TestSupport

/// An RTSP server on loopback that says what a test wants said. Each connection has a thread.
final class ScriptedServer: @unchecked Sendable {
  // Sendable: descriptors and what is under the mutex.

  /// The answer to a request: bytes as they are; nil closes the connection.
  typealias Script = @Sendable (_ request: String, _ connection: Int) -> [UInt8]?

  let port: UInt16
  private let listening: Int32
  private let script: Script
  private let state = Mutex(State())

  private struct State {
    var connections: [Int32] = []
    var accepted = 0
    var requests: [String] = []
  }

  /// The requests that came so far.
  var requests: [String] { state.withLock { $0.requests } }

  init(_ script: @escaping Script) throws {
    self.script = script
    port = UInt16(try TCPPort.free())
    listening = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard withLoopbackAddress(port, { bind(listening, $0, $1) }) == 0, listen(listening, 8) == 0 else {
      throw SystemFailure("listen at port \(port)")
    }
    let thread = Thread { [listening, weak self] in
      defer { close(listening) }
      while case let made = accept(listening, nil, nil), made >= 0 {
        guard let self else { return }
        let number = state.withLock { state in
          state.connections.append(made)
          state.accepted += 1
          return state.accepted
        }
        let talk = Thread { [weak self] in
          Self.serve(made, number) { self }
          guard let self else {
            close(made)
            return
          }
          ended(made)
        }
        talk.start()
      }
    }
    thread.start()
  }

  /// Closes everything.
  func end() {
    shutdown(listening, Int32(SHUT_RDWR))
    // Under the lock: a descriptor that its thread has closed may be another file's by now.
    state.withLock { state in for made in state.connections { shutdown(made, Int32(SHUT_RDWR)) } }
  }

  private func ended(_ descriptor: Int32) {
    state.withLock { state in
      state.connections.removeAll { $0 == descriptor }
      close(descriptor)
    }
  }

  private static func serve(_ descriptor: Int32, _ number: Int, _ server: () -> ScriptedServer?) {
    var pending: [UInt8] = []
    var memory = [UInt8](repeating: 0, count: 65_536)
    while case let count = recv(descriptor, &memory, memory.count, 0), count > 0 {
      pending += memory[..<count]
      while let text = takeRequest(from: &pending) {
        guard let server = server() else { return }
        server.state.withLock { $0.requests.append(text) }
        guard let answer = server.script(text, number) else { return }
        var rest = answer[...]
        while !rest.isEmpty {
          let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
          guard count > 0 else { return }
          rest = rest.dropFirst(count)
        }
      }
    }
  }

  /// Takes the next request, without its empty line, and the interleaved packets before it (RFC 2326 section 10.12): the last byte of
  /// a report may be a letter. Returns nil where more bytes are needed.
  private static func takeRequest(from pending: inout [UInt8]) -> String? {
    while pending.first == UInt8(ascii: "$") {
      guard pending.count >= 4 else { return nil }
      let end = 4 + Int(pending[2]) << 8 + Int(pending[3])
      guard pending.count >= end else { return nil }
      pending.removeFirst(end)
    }
    guard let end = pending.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
    defer { pending.removeFirst(end.upperBound) }
    return String(decoding: pending[..<end.lowerBound], as: UTF8.self)
  }
}

/// The answers of a server that plays.
enum Answers {
  /// A response with the request's `CSeq`.
  static func response(_ status: String, to request: String, _ fields: [String] = [], body: String = "") -> [UInt8] {
    let number = request.components(separatedBy: "\r\n").first { $0.hasPrefix("CSeq:") } ?? "CSeq: 0"
    let length = body.isEmpty ? [] : ["Content-Length: \(body.utf8.count)"]
    return Array((["RTSP/1.0 \(status)", number] + fields + length + ["", ""]).joined(separator: "\r\n").utf8)
      + body.utf8
  }

  static let description = """
    v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\na=control:*\r
    m=audio 0 RTP/AVP 0\r\na=control:sound\r
    m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\na=control:trackID=1\r\n
    """

  /// The answers of a server that plays, and sends nothing.
  static func playing(_ request: String) -> [UInt8] {
    switch request.prefix(while: { $0 != " " }) {
    case "OPTIONS": response("200 OK", to: request, ["Public: DESCRIBE, SETUP, PLAY, TEARDOWN, GET_PARAMETER"])
    case "DESCRIBE": response("200 OK", to: request, ["Content-Type: application/sdp"], body: description)
    case "SETUP":
      response(
        "200 OK", to: request, ["Session: 77;timeout=2", "Transport: RTP/AVP/TCP;unicast;interleaved=0-1"])
    default: response("200 OK", to: request, ["Session: 77"])
    }
  }
}
