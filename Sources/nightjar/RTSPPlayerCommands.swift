import Glibc
import Listening
import Media
import RTSPServer

/// What a person pastes to see the picture by RTSP.
struct RTSPPlayerCommands {
  let configuration: ServerConfiguration
  let listeners: [ServerConfiguration.Listener]
  /// The camera's.
  let name: String

  /// The stream's URLs, those for each way in, without the two spellings of one.
  var urls: [String] {
    var urls: [String] = []
    for listener in listeners {
      let numeric = numericHost(of: listener).map { url(of: listener, host: $0) }
      for url in [url(of: listener), numeric].compactMap({ $0 }) where !urls.contains(url) { urls.append(url) }
    }
    return urls
  }

  /// The name of a player and its command, complete but for the password.
  var commands: [(player: String, command: String)] {
    // Whoever asked for encryption is shown how to have it.
    guard let listener = listeners.first(where: \.isEncrypted) ?? listeners.first else { return [] }
    let url = url(
      of: listener, host: numericHost(of: listener), user: configuration.users == nil ? "" : "NAME:PASSWORD@")
    // GStreamer goes by UDP where that is encrypted as well.
    let isWithinConnection = listener.isEncrypted && configuration.suite == nil
    return Self.commands(for: url, isEncrypted: listener.isEncrypted, isWithinConnection: isWithinConnection)
  }

  /// The players of a stream and their commands.
  ///
  /// - Parameters:
  ///   - url: the stream's, as a shell takes it.
  ///   - isEncrypted: whether it is one of `rtsps`.
  ///   - isWithinConnection: whether packets come by no other way than the connection itself.
  static func commands(
    for url: String, isEncrypted: Bool, isWithinConnection: Bool
  ) -> [(player: String, command: String)] {
    let quick = "-fflags nobuffer -flags low_delay -probesize 32 -analyzeduration 0"
    let ffplay = ("ffplay", "ffplay -rtsp_transport tcp \(quick) \(url)")
    guard !isEncrypted else {
      // Neither checks a certificate that nobody vouches for: compare the fingerprint where that matters.
      return [
        ffplay,
        (
          "GStreamer",
          "gst-launch-1.0 rtspsrc location=\(url) \(isWithinConnection ? "protocols=tcp " : "")tls-validation-flags=0 "
            + "! decodebin ! videoconvert ! autovideosink sync=false"
        ),
      ]
    }
    return [
      ffplay, ("VLC, but not Debian's or Ubuntu's", "vlc --network-caching=150 \(url)"),
      ("GStreamer", "gst-launch-1.0 playbin3 uri=\(url)"),
    ]
  }

  private func url(of listener: ServerConfiguration.Listener, host: String? = nil, user: String = "") -> String {
    let scheme = listener.isEncrypted ? "rtsps" : "rtsp"
    return "\(scheme)://\(user)\(host ?? Self.host(of: listener.address)):\(listener.port)/\(name)"
  }

  /// This machine's address as others on its network write it, where it listens on all: its name may mean nothing to them.
  private func numericHost(of listener: ServerConfiguration.Listener) -> String? {
    guard ["0.0.0.0", "::"].contains(listener.address) else { return nil }
    // A socket that systemd opens for :: takes IPv4 as well; ours does not, and has one beside it.
    let hasIPv4 =
      listener.descriptor != nil
      || listeners.contains { $0.address == "0.0.0.0" && $0.isEncrypted == listener.isEncrypted }
    if hasIPv4, let address = DefaultRoute.address(isIPv6: false) { return address }
    return listener.address == "::" ? DefaultRoute.address(isIPv6: true).map { "[\($0)]" } : nil
  }

  /// An address as a viewer writes it: this machine's name where it listens on all.
  static func host(of address: String) -> String {
    switch address {
    case "127.0.0.1", "::1": return "localhost"
    case "0.0.0.0", "::":
      var buffer = [CChar](repeating: 0, count: 256)
      guard gethostname(&buffer, buffer.count - 1) == 0 else { return "HOST" }
      let name = String(cBuffer: buffer)
      return name.isEmpty ? "HOST" : name
    default: return address.contains(":") ? "[\(address)]" : address
    }
  }
}
