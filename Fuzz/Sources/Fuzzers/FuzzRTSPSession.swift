import Media
import Platform
import RTP
import RTSP

/// Requests, time, closed connections and RTCP in the order that the input says, from three clients on four connections,
/// with raw requests between them. The table keeps its limits, and its effects its state: what is told to start was
/// set up, and what has ended is never named again.
enum FuzzRTSPSession {
  static func take(_ input: UnsafeRawBufferPointer) {
    var script = input[...]
    var run = RTSPSessionRun()
    while let action = script.popFirst() { run.step(action, &script) }
    run.end()
  }
}

struct RTSPSessionRun {
  static let transports = [
    "RTP/AVP;unicast;client_port=5000-5001", "RTP/AVP/TCP;unicast;interleaved=0-1", "RTP/AVP;multicast",
    "RTP/SAVP;unicast;client_port=1-2", "RTP/AVPF/TCP,RTP/AVP;unicast;client_port=7", "RTP/AVP;client_port=0",
  ]
  static let uris = [
    "rtsp://h/camera", "rtsp://h/camera/trackID=0", "rtsp://h/two", "rtsp://h/two/trackID=0", "rtsp://h/two/trackID=1",
    "rtsp://h/none", "*", "rtsp:",
  ]
  static let methods: [RequestMethod] = [
    .setup, .play, .pause, .teardown, .options, .describe, .getParameter, .record,
  ]
  static let clients = ["192.0.2.1", "192.0.2.2", "2001:db8::1"].compactMap { ConnectionAddress($0) }

  private struct Known {
    var client: ConnectionAddress
    var connection: UInt64
    var tracks: Set<Int> = []
    var isPlaying = false
  }

  private var table = SessionTable(
    configuration: .init(
      presentations: ["/camera": 1, "/two": 2], transports: TransportCapabilities(isMulticastServed: true),
      timeoutSeconds: 60, maximumSessions: 5, maximumSessionsPerAddress: 3))
  private var time = Instant.zero
  private var known: [SessionIdentifier: Known] = [:]
  private var order: [SessionIdentifier] = []
  private var ended: Set<SessionIdentifier> = []

  mutating func step(_ action: UInt8, _ script: inout UnsafeRawBufferPointer.SubSequence) {
    let argument = script.popFirst() ?? 0
    let number = UInt64(argument & 3)
    let connection = SessionTable.Connection(
      identifier: number, client: Self.clients[Int(number) % Self.clients.count], authority: "h:8554")
    switch action >> 5 {
    case 0:
      time = time + Duration(nanoseconds: Int64(argument) * 500_000_000)
      let over = table.expire(at: time)
      for identifier in over { forget(identifier) }
      precondition(table.nextDeadline.map { $0 > time } ?? true)
    case 1:
      for identifier in table.connectionClosed(number) { forget(identifier) }
    case 2:
      guard let identifier = pick(argument & 63) else { break }
      if argument & 0x80 == 0 {
        table.keepAlive(identifier, at: time)
      } else {
        table.note(identifier, isRefusing: argument & 0x40 == 0)
      }
    case 3:
      raw(Int(argument), connection, &script)
    default:
      let options = script.popFirst() ?? 0
      var request = Request(Self.methods[Int(action & 7)], Self.uris[Int(options & 7)], headers: [.init("CSeq", "1")])
      if options & 0x80 == 0, let identifier = pick(argument >> 2) { request.headers["Session"] = "\(identifier)" }
      if request.method == .setup {
        request.headers["Transport"] = Self.transports[Int(options >> 3 & 15) % Self.transports.count]
      } else if options & 0x40 != 0 {
        request.headers["Range"] = options & 8 == 0 ? "npt=now-" : "clock=1-"
      }
      answer(request, connection)
    }
    precondition(table.sessions.count <= 5)
    for client in Self.clients { precondition(table.sessions.values.count { $0.client == client } <= 3) }
  }

  /// Anything as a request.
  private mutating func raw(
    _ count: Int, _ connection: SessionTable.Connection, _ script: inout UnsafeRawBufferPointer.SubSequence
  ) {
    var parser = RequestParser()
    var bytes = UnsafeRawBufferPointer(rebasing: script.prefix(count))
    script = script.dropFirst(count)
    while let message = try? parser.next(from: &bytes) {
      if case .request(let request) = message { answer(request, connection) }
    }
  }

  private mutating func answer(_ request: Request, _ connection: SessionTable.Connection) {
    let former = table.sessions
    let answer = table.answer(request, on: connection, at: time)
    precondition(answer.response.status.isSuccess == (answer.refusal == nil))
    precondition(answer.refusal == nil || answer.effect == .none)
    precondition(answer.response.sequenceNumber == request.sequenceNumber)
    precondition(!answer.response.bytes.isEmpty && !(answer.refusal?.description.isEmpty ?? false))
    if let session = answer.ended {
      let own = former.values.count { $0.client == connection.client }
      precondition(own >= 3 ? session.client == connection.client : former.count == 5, "there was room")
      precondition(session.openConnections.isEmpty, "a session with a connection makes room")
      precondition(session.isRefusing || session.deadline - time <= Duration.seconds(45), "it was heard")
      guard case .setup = answer.effect else { preconditionFailure("a session makes room for none") }
      forget(session.identifier)
    }
    switch answer.effect {
    case .none, .describe: break
    case .setup(let identifier, let track, _):
      precondition(!ended.contains(identifier))
      if known[identifier] == nil {
        order.append(identifier)
        known[identifier] = Known(client: connection.client, connection: connection.identifier)
      }
      precondition(known[identifier]?.client == connection.client && known[identifier]?.isPlaying == false)
      known[identifier]?.tracks.insert(track)
    case .play(let identifier, let urls):
      precondition(known[identifier]?.client == connection.client)
      precondition(known[identifier]?.tracks == Set(urls.keys))
      known[identifier]?.isPlaying = true
    case .pause(let identifier):
      precondition(known[identifier]?.isPlaying == true && known[identifier]?.client == connection.client)
      known[identifier]?.isPlaying = false
    case .release(let identifier, let track):
      precondition(known[identifier]?.client == connection.client)
      precondition(known[identifier]?.tracks.remove(track) != nil && known[identifier]?.tracks.isEmpty == false)
    case .teardown(let identifier):
      precondition(known[identifier]?.client == connection.client)
      forget(identifier)
    }
    for (identifier, session) in table.sessions {
      precondition(known[identifier]?.tracks == Set(session.transports.keys))
      precondition(known[identifier]?.isPlaying == (session.state == .playing) && session.state != .initial)
      precondition(known[identifier]?.connection == session.connection)
    }
    checkChannels()
  }

  /// No two streams on one channel of one connection.
  private func checkChannels() {
    var used: Set<[UInt64]> = []
    for session in table.sessions.values {
      for transport in session.transports.values {
        guard case .interleaved(let channels) = transport.delivery else { continue }
        for channel in [channels.rtp, channels.rtcp] {
          precondition(used.insert([session.connection, UInt64(channel)]).inserted, "a channel is used twice")
        }
      }
    }
  }

  private func pick(_ number: UInt8) -> SessionIdentifier? {
    order.isEmpty ? nil : order[Int(number) % order.count]
  }

  private mutating func forget(_ identifier: SessionIdentifier) {
    precondition(known.removeValue(forKey: identifier) != nil, "a session that was not there has ended")
    ended.insert(identifier)
  }

  mutating func end() {
    time = time + Duration.seconds(61)
    for identifier in table.expire(at: time) { forget(identifier) }
    precondition(known.isEmpty && table.sessions.isEmpty, "a session without an end")
  }
}
