import CLinux
import Foundation
import Glibc
import Media
import Platform
import RTP
import RTSP
import Synchronization
import TestSupport
import Testing

/// A server of one connection on a socket, just enough of one to hear what a player makes of our answers. It sends no
/// picture.
final class Listener: Sendable {
  let port: UInt16
  private let socket: Int32
  private let log = Mutex<[String]>([])
  private let table: Mutex<SessionTable>
  private let description: SessionDescription

  /// Method and status of what was answered so far.
  var answers: [String] { log.withLock { $0 } }

  init(transports: TransportCapabilities, profile: MediaDescription.Profile) throws {
    let sets = try #require(
      ParameterSets(
        sequence: [0x67, 0x42, 0x00, 0x0a, 0x96, 0x53, 0x05, 0x89, 0x88], picture: [0x68, 0xc9, 0x63, 0x88]))
    description = SessionDescription(
      payload: .h264(sets), profile: profile, announcement: .rtsp, address: .loopback, port: 0, sessionID: 1)
    // A short life, so that the players keep the session alive while we watch: GStreamer does so five seconds before its end, which a
    // busy machine may need.
    table = Mutex(
      SessionTable(
        configuration: .init(presentations: ["/camera": 1], transports: transports, timeoutSeconds: 20)))
    let (socket, port) = try loopbackListener(backlog: 4)
    (self.socket, self.port) = (socket, port)
    Thread.detachNewThread { [self] in
      var number: UInt64 = 0
      while case let connection = accept(socket, nil, nil), connection >= 0 {
        number += 1
        serve(connection, number)
        close(connection)
      }
      // Here and nowhere else: the next listener may get this number while the thread still serves, and lose its player to it.
      close(socket)
    }
  }

  /// Ends the listening, and with it the thread.
  func stop() { shutdown(socket, Int32(SHUT_RDWR)) }

  private func serve(_ connection: Int32, _ number: UInt64) {
    var parser = RequestParser()
    var buffer = [UInt8](repeating: 0, count: 4096)
    while case let count = recv(connection, &buffer, buffer.count, 0), count > 0 {
      do {
        for message in try messages([buffer[..<count]], with: &parser) {
          guard case .request(let request) = message else { continue }
          let bytes = answer(request, number).bytes
          guard send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else { return }
        }
      } catch {
        log.withLock { $0.append("\(error)") }
        return
      }
    }
    _ = table.withLock { $0.connectionClosed(number) }
  }

  private func answer(_ request: Request, _ number: UInt64) -> Response {
    var answer = table.withLock {
      $0.answer(
        request, on: .init(identifier: number, client: .loopback, authority: "127.0.0.1:\(port)"), at: .now())
    }
    switch answer.effect {
    case .describe(_, let base, _): answer.response.setDescription(description.text, contentBase: base)
    case .setup(_, _, let transport):
      let server: TransportAnswer.Server =
        switch transport.delivery {
        case .udp: .udp(PortPair(rtp: 6970, rtcp: 6971), client: .loopback)
        case .interleaved: .interleaved
        case .multicast:
          .multicast(ConnectionAddress("239.255.1.1") ?? .loopback, PortPair(rtp: 15004, rtcp: 15005), timeToLive: 1)
        }
      answer.response.setTransport(TransportAnswer(transport, server: server, ssrc: 7))
    case .play(_, let urls):
      answer.response.setRTPInformation(
        urls.values.map { RTPInformation(url: $0, sequenceNumber: 1, timestamp: 2) })
    default: break
    }
    let transport = answer.response.headers["Transport"].map { " \($0.prefix { $0 != ";" })" } ?? ""
    log.withLock { $0.append("\(request.method) \(answer.response.status.rawValue)\(transport)") }
    return answer.response
  }
}

/// Players against our answers, over a real connection.
@Suite(.serialized) struct RTSPClientTests {
  /// Runs a player until it has got as far as `last`.
  static func run(
    _ player: [String], profile: MediaDescription.Profile = .avp, transports: TransportCapabilities = .init(),
    until last: String
  ) throws -> [String] {
    let listener = try Listener(transports: transports, profile: profile)
    defer { listener.stop() }
    let directory = try TemporaryDirectory()
    let process = try Subprocess(
      player.map { $0.replacing("URL", with: "rtsp://127.0.0.1:\(listener.port)/camera") }, in: directory)
    let isThere = eventually(within: 60) { listener.answers.contains(last) }
    #expect(isThere, "\(listener.answers)\n\(process.errorSoFar)")
    // A player that waits for a picture hears nothing else.
    process.send(SIGKILL)
    _ = try process.wait(limit: 60)
    return listener.answers
  }

  static func ffmpeg(_ transport: String) -> [String] {
    ["ffmpeg", "-nostdin", "-loglevel", "error"] + FFmpegTransport.options(transport)
      + ["-i", "URL", "-f", "null", "-"]
  }

  static func gstreamer(_ protocols: String) -> [String] {
    // Without a picture over UDP it would give up after five seconds.
    ["gst-launch-1.0", "-q", "rtspsrc", "location=URL", "protocols=\(protocols)", "timeout=0", "!", "fakesink"]
  }

  @Test(arguments: [
    ("udp", "RTP/AVP"), ("tcp", "RTP/AVP/TCP"), ("udp_multicast", "RTP/AVP"),
  ])
  func `ffmpeg plays`(transport: String, answered: String) throws {
    for profile in [MediaDescription.Profile.avp, .avpf()] {
      let answers = try Self.run(
        Self.ffmpeg(transport), profile: profile, transports: .init(isMulticastServed: true), until: "PLAY 200")
      #expect(answers.starts(with: ["OPTIONS 200", "DESCRIBE 200", "SETUP 200 \(answered)", "PLAY 200"]))
    }
  }

  @Test(arguments: [
    ("udp", "RTP/AVPF"), ("tcp", "RTP/AVPF/TCP"), ("udp-mcast", "RTP/AVPF"),
  ])
  func `GStreamer plays with early feedback and retransmissions, and keeps its session alive`(
    protocols: String, answered: String
  ) throws {
    let retransmission = MediaDescription.Retransmission(
      payloadType: try #require(RTPPayloadType(rawValue: 97)), milliseconds: 1000)
    // Over TCP without a picture it waits without a word.
    let answers = try Self.run(
      Self.gstreamer(protocols), profile: .avpf(retransmission: retransmission),
      transports: .init(isMulticastServed: true), until: protocols == "tcp" ? "PLAY 200" : "GET_PARAMETER 200")
    #expect(answers.starts(with: ["OPTIONS 200", "DESCRIBE 200", "SETUP 200 \(answered)", "PLAY 200"]))
  }

  @Test func `a player that is refused UDP goes on with TCP`() throws {
    let answers = try Self.run(
      Self.ffmpeg("udp+tcp"), transports: .init(isUDPServed: false), until: "PLAY 200")
    #expect(
      answers.prefix(5) == ["OPTIONS 200", "DESCRIBE 200", "SETUP 461", "SETUP 200 RTP/AVP/TCP", "PLAY 200"])
  }
}
