import Platform
import RTP
import SRTP
import Streaming

/// The commands that a person pastes to see the picture.
struct PlayerCommands {
  let destination: StreamDestination
  /// The format of the packets.
  let payload: any PayloadFormat
  let address: SocketAddress
  /// The suite that protects the packets; `nil` if they are not protected.
  let suite: SRTPSuite?
  let sessionDescriptionPath: String?
  let isSessionDescriptionTemporary: Bool
  /// The port of the sound and its channels; `nil` if no packets of their own carry sound.
  var sound: (port: UInt16, channels: OpusChannels)?

  /// The names of players and their commands, complete as they stand.
  var commands: [(player: String, command: String)] {
    if let suite { return protected(by: suite) }
    return payload.players.needsDescription ? described : addressed
  }

  private var described: [(player: String, command: String)] {
    let options = "-protocol_whitelist file,udp,rtp -fflags nobuffer -flags low_delay -probesize 32 -analyzeduration 0"
    var commands: [(player: String, command: String)] = []
    if let path = sessionDescriptionPath {
      commands.append(("ffplay", "ffplay \(options) -i \(ShellWord.quoted(place(of: path)))"))
    }
    commands.append(
      (
        "GStreamer",
        "gst-launch-1.0 \(received(payload, at: destination.port)) ! videoconvert ! autovideosink sync=false"
          + (sound.map {
            " \(received(StreamPayload.opus($0.channels).format, at: $0.port)) ! audioconvert ! autoaudiosink"
          } ?? "")
      ))
    return commands
  }

  /// Returns GStreamer's elements that receive and decode the packets at a port.
  private func received(_ payload: any PayloadFormat, at port: UInt16) -> String {
    "udpsrc \(receiver(port)) caps=\"\(caps(payload))\" ! rtpjitterbuffer latency=50 ! "
      + payload.players.gstreamerElements
  }

  /// Returns the commands for a protected stream. Only the session description contains the key, so that no log shows
  /// the key: the shell assembles GStreamer's caps from the description. The process list of the player's host shows
  /// the caps during playback, because `srtpdec` has no other way to receive a key on a command line.
  private func protected(by suite: SRTPSuite) -> [(player: String, command: String)] {
    guard let path = sessionDescriptionPath else { return [] }
    let file = ShellWord.quoted(place(of: path))
    let key =
      "$(sed -n 's/^a=crypto:.*inline://p' \(file) | tr -d '\\r' | base64 -d | od -An -v -tx1 | tr -d ' \\n')"
    let (cipher, tag) =
      switch suite {
      case .aes128CounterHMAC80: ("aes-128-icm", "hmac-sha1-80")
      case .aes128GCM: ("aes-128-gcm", "null")
      case .aes256GCM: ("aes-256-gcm", "null")
      }
    let ffplay = (
      "ffplay",
      // The reorder queue of ffplay treats packets of a source whose sequence number begins at 0 as late.
      "ffplay -protocol_whitelist file,udp,rtp,srtp,crypto -reorder_queue_size 0 -fflags nobuffer -flags low_delay "
        + "-probesize 32 -analyzeduration 0 -i \(file)"
    )
    let gstreamer = (
      "GStreamer (\(sound == nil ? "" : "picture only; ")its key shows in that host's list of processes)",
      // srtpdec needs caps for each source, so the sources are separated in front of it.
      "gst-launch-1.0 udpsrc \(receiver(destination.port)) caps=\"\(caps(payload))\" ! rtpssrcdemux name=sources sources. : funnel ! capssetter join=false "
        + "caps=\"application/x-srtp,srtp-key=(buffer)\(key),srtp-cipher=\(cipher),srtp-auth=\(tag),"
        + "srtcp-cipher=\(cipher),srtcp-auth=\(tag)\" ! srtpdec ! rtpjitterbuffer latency=50 "
        + "! \(payload.players.gstreamerElements) ! videoconvert ! autovideosink sync=false"
    )
    // ffmpeg supports counter mode alone.
    return suite == .aes128CounterHMAC80 && payload.players.isReadEncryptedByFFmpeg ? [ffplay, gstreamer] : [gstreamer]
  }

  /// The step that a player elsewhere needs before it can read the session description; `nil` if there is none.
  var preparation: String? {
    let isNeeded = payload.players.needsDescription || suite != nil
    guard isNeeded, let path = sessionDescriptionPath, !isHere else { return nil }
    let mend =
      isSessionDescriptionTemporary ? "write it with --sdp FILE, and copy that" : "copy \(ShellWord.quoted(path))"
    guard suite != nil else {
      return "ffplay needs the session description: \(mend) to where the player is"
    }
    return "players need the session description, which holds the key: \(mend) to where the player is, as by scp"
  }

  /// `true` if the player is on this host; the players of a group may be anywhere.
  private var isHere: Bool { address.isLoopback }

  /// Returns the description's path on the player's host: its file name, after a copy.
  private func place(of path: String) -> String {
    guard !isHere else { return path }
    let name = isSessionDescriptionTemporary ? "FILE" : path.split(separator: "/").last.map(String.init) ?? path
    return name.hasPrefix("-") ? "./\(name)" : name
  }

  private var addressed: [(player: String, command: String)] {
    let group = address.isMulticast ? address.text : address.isIPv6 ? "::" : ""
    let bound = address.isIPv6 ? "[\(group)]" : group
    let host = address.isIPv6 ? "[\(address.text)]" : address.text
    return [
      ("VLC", "vlc --network-caching=150 rtp://@\(bound):\(destination.port)"),
      ("ffplay", "ffplay -fflags nobuffer -flags low_delay rtp://\(host):\(destination.port)"),
    ]
  }

  /// Returns GStreamer's name for the packets.
  private func caps(_ payload: any PayloadFormat) -> String {
    let encoding = payload.encoding
    return "application/x-rtp,media=\(encoding.mediaType.rawValue),clock-rate=\(encoding.clockRate),"
      + "encoding-name=\(encoding.encodingName.uppercased()),payload=\(encoding.payloadType)"
  }

  private func receiver(_ port: UInt16) -> String {
    let bound = address.isMulticast ? "address=\(address.text) " : address.isIPv6 ? "address=:: " : ""
    return "\(bound)port=\(port)"
  }
}
