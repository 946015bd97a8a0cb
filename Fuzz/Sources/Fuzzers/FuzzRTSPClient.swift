import Platform
import RTSP
import Receiving
import SRTP

/// A server that answers with any bytes: the first is the size of the chunks. What the client sends are requests that a server
/// can read, without the password.
enum FuzzRTSPClient {
  static func take(_ input: UnsafeRawBufferPointer) {
    guard let first = input.first,
      let url = try? StreamURL("\(first & 8 == 0 ? "rtsp" : "rtsps")://user:hunter2@host/path")
    else { return }
    let ports = [PortPair(rtp: 6000, rtcp: 6001), PortPair(rtp: 6002, rtcp: 6003)]
    let way: RTSPDialogue.Way = first & 1 == 0 ? .interleaved : first & 4 == 0 ? .udp(ports) : .multicast
    var dialogue = RTSPDialogue(
      url, way: way, credentials: first & 2 == 0 ? nil : .init(user: "user", password: "hunter2"), makeNonce: { "c" },
      makeControlKey: { (SRTPKey(random: $0), 1, "AAAA") })
    check(dialogue.begin())
    var parser = ServerMessageParser()
    var rest = input.dropFirst()
    do throws(ReceiverError) {
      while !rest.isEmpty {
        let part = rest.prefix(Int(first) + 1)
        rest = rest.dropFirst(part.count)
        try parser.take(
          UnsafeRawBufferPointer(rebasing: part),
          data: { _, bytes throws(ReceiverError) in precondition(bytes.count < 65_536) },
          message: { message throws(ReceiverError) in
            if let answer = try dialogue.take(message) { check(answer) }
          })
      }
      if dialogue.isPlaying { check(dialogue.keepAlive()) }
    } catch {
      precondition(!error.description.isEmpty && error.description.utf8.count < 8192)
    }
    precondition(dialogue.keepAliveInterval >= .seconds(1))
    precondition(dialogue.setUp.count <= 2)
    for track in dialogue.setUp {
      // No key of a connection in the clear, and nothing in the clear beside one that is encrypted.
      precondition(track.keys == nil || url.isEncrypted)
      precondition(!url.isEncrypted || track.keys != nil || way == .interleaved)
      if let keys = track.keys { _ = try? TrackProtection(keys) }
    }
    if let last = dialogue.end() { check(last) }
  }

  static func check(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    precondition(!text.contains("hunter2"), "the password is sent")
    // Answers to the server's own requests are no requests.
    guard !bytes.starts(with: "RTSP/".utf8) else { return }
    precondition(bytes.suffix(4).elementsEqual("\r\n\r\n".utf8))
    precondition(!text.dropLast(1).contains("\r\n\r\n"), "more than one request")
  }
}
