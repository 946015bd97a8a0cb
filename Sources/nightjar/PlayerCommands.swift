import RTP
import SRTP
import Streaming

/// What a person pastes to see the picture.
struct PlayerCommands {
  let destination: StreamDestination
  let address: SocketAddress
  /// What the packets are protected with; nil where they are not.
  let suite: SRTPSuite?
  let sessionDescriptionPath: String?
  let isSessionDescriptionTemporary: Bool

  /// The name of a player and its command, complete as it stands.
  var commands: [(player: String, command: String)] {
    if let suite { return protected(by: suite) }
    return switch destination.payload {
    case .h264: h264
    case .mp2t: transportStream
    }
  }

  private var h264: [(player: String, command: String)] {
    let options = "-protocol_whitelist file,udp,rtp -fflags nobuffer -flags low_delay -probesize 32 -analyzeduration 0"
    var commands: [(player: String, command: String)] = []
    if let path = sessionDescriptionPath {
      commands.append(("ffplay", "ffplay \(options) -i \(quoted(place(of: path)))"))
    }
    commands.append(
      (
        "GStreamer",
        "gst-launch-1.0 udpsrc \(receiver) caps=\"application/x-rtp,media=video,clock-rate=90000,encoding-name=H264,"
          + "payload=\(RTPPayloadType.h264)\" ! rtpjitterbuffer latency=50 ! rtph264depay ! avdec_h264 "
          + "! videoconvert ! autovideosink sync=false"
      ))
    return commands
  }

  /// The key is in the session description alone, so that no log shows it: GStreamer's caps are put together from it by
  /// the shell. The list of processes of the player's machine shows them while it plays, for there is no other way to
  /// give a key to `srtpdec` on a command line.
  private func protected(by suite: SRTPSuite) -> [(player: String, command: String)] {
    guard let path = sessionDescriptionPath else { return [] }
    let file = quoted(place(of: path))
    let key =
      "$(sed -n 's/^a=crypto:.*inline://p' \(file) | tr -d '\\r' | base64 -d | od -An -v -tx1 | tr -d ' \\n')"
    let (cipher, tag) =
      switch suite {
      case .aes128CounterHMAC80: ("aes-128-icm", "hmac-sha1-80")
      case .aes128GCM: ("aes-128-gcm", "null")
      case .aes256GCM: ("aes-256-gcm", "null")
      }
    let (format, decoding) =
      switch destination.payload {
      case .h264: ("H264,payload=\(RTPPayloadType.h264)", "rtph264depay ! avdec_h264")
      case .mp2t: ("MP2T,payload=\(RTPPayloadType.transportStream)", "rtpmp2tdepay ! decodebin")
      }
    let ffplay = (
      "ffplay",
      // Its queue for packets out of order takes a source that begins at 0 for packets that come too late.
      "ffplay -protocol_whitelist file,udp,rtp,srtp,crypto -reorder_queue_size 0 -fflags nobuffer -flags low_delay "
        + "-probesize 32 -analyzeduration 0 -i \(file)"
    )
    let gstreamer = (
      "GStreamer (its key shows in that machine's list of processes)",
      // srtpdec wants to be told of each source by caps: so they are told apart in front of it.
      "gst-launch-1.0 udpsrc \(receiver) caps=\"application/x-rtp,media=video,clock-rate=90000,"
        + "encoding-name=\(format)\" ! rtpssrcdemux name=sources sources. : funnel ! capssetter join=false "
        + "caps=\"application/x-srtp,srtp-key=(buffer)\(key),srtp-cipher=\(cipher),srtp-auth=\(tag),"
        + "srtcp-cipher=\(cipher),srtcp-auth=\(tag)\" ! srtpdec ! rtpjitterbuffer latency=50 "
        + "! \(decoding) ! videoconvert ! autovideosink sync=false"
    )
    // ffmpeg knows counter mode alone, and takes no key for a transport stream.
    return suite == .aes128CounterHMAC80 && destination.payload == .h264 ? [ffplay, gstreamer] : [gstreamer]
  }

  /// What must be done before a player elsewhere can read the session description; nil where nothing must.
  var preparation: String? {
    guard destination.payload == .h264 || suite != nil, let path = sessionDescriptionPath, !isHere else { return nil }
    let mend = isSessionDescriptionTemporary ? "write it with --sdp FILE, and copy that" : "copy \(quoted(path))"
    guard suite != nil else {
      return "ffplay needs the session description: \(mend) to where the player is"
    }
    return "players need the session description, which holds the key: \(mend) to where the player is, as by scp"
  }

  /// Whether the player is on this machine; a group's may be anywhere.
  private var isHere: Bool { address.isLoopback }

  /// The description's path on the player's machine: its name, where it was copied to.
  private func place(of path: String) -> String {
    guard !isHere else { return path }
    let name = isSessionDescriptionTemporary ? "FILE" : path.split(separator: "/").last.map(String.init) ?? path
    return name.hasPrefix("-") ? "./\(name)" : name
  }

  private var transportStream: [(player: String, command: String)] {
    let group = address.isMulticast ? address.text : address.isIPv6 ? "::" : ""
    let bound = address.isIPv6 ? "[\(group)]" : group
    let host = address.isIPv6 ? "[\(address.text)]" : address.text
    return [
      ("VLC", "vlc --network-caching=150 rtp://@\(bound):\(destination.port)"),
      ("ffplay", "ffplay -fflags nobuffer -flags low_delay rtp://\(host):\(destination.port)"),
    ]
  }

  private var receiver: String {
    let bound = address.isMulticast ? "address=\(address.text) " : address.isIPv6 ? "address=:: " : ""
    return "\(bound)port=\(destination.port)"
  }

  /// The text as one word of a shell.
  private func quoted(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
        || [0x2d, 0x2e, 0x2f, 0x5f].contains(byte)
    }
    if isPlain { return text }
    return "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
  }
}
