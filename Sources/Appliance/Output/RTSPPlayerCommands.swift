import Glibc
import Platform
import Serving

/// The commands that a person pastes to see the picture by RTSP.
package struct RTSPPlayerCommands {
  let configuration: RTSPServerConfiguration
  let listeners: [RTSPServerConfiguration.Listener]
  /// The camera's name.
  let name: String

  /// The stream's URLs, one for each listener, without duplicate spellings.
  var urls: [String] {
    var urls: [String] = []
    for listener in listeners {
      let numeric = listener.numericHost(beside: listeners).map { url(of: listener, host: $0) }
      for url in [url(of: listener), numeric].compactMap({ $0 }) where !urls.contains(url) { urls.append(url) }
    }
    return urls
  }

  /// The names of players and their commands, complete except for the password.
  var commands: [(player: String, command: String)] {
    // If there is an encrypted listener, the commands show that one.
    guard let listener = listeners.first(where: \.isEncrypted) ?? listeners.first else { return [] }
    let url = url(
      of: listener, host: listener.numericHost(beside: listeners),
      user: configuration.users == nil ? "" : "NAME:PASSWORD@")
    // GStreamer uses UDP if that is encrypted as well.
    let isWithinConnection = listener.isEncrypted && configuration.suite == nil
    return Self.commands(for: url, isEncrypted: listener.isEncrypted, isWithinConnection: isWithinConnection)
  }

  /// Returns the names of players and their commands.
  ///
  /// - Parameters:
  ///   - url: the stream's URL, quoted for a shell.
  ///   - isEncrypted: `true` for a URL of `rtsps`.
  ///   - isWithinConnection: `true` if packets arrive by the connection itself alone.
  package static func commands(
    for url: String, isEncrypted: Bool, isWithinConnection: Bool
  ) -> [(player: String, command: String)] {
    // With -fflags nobuffer, ffplay throws away what it has read to find the tracks: often the key frame, so that the first
    // picture comes with the next one.
    let quick = "-flags low_delay -probesize 32 -analyzeduration 0"
    let ffplay = ("ffplay", "ffplay -rtsp_transport tcp \(quick) \(url)")
    guard !isEncrypted else {
      // Neither player verifies a self-signed certificate: compare the fingerprint if that matters.
      return [
        ffplay,
        (
          "GStreamer, picture only",
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

  private func url(of listener: RTSPServerConfiguration.Listener, host: String? = nil, user: String = "") -> String {
    let scheme = listener.isEncrypted ? "rtsps" : "rtsp"
    return "\(scheme)://\(user)\(host ?? Self.host(of: listener.address)):\(listener.port)/\(name)"
  }

  /// Returns an address as a viewer writes it: this host's name if the listener is bound to all addresses.
  static func host(of address: String) -> String {
    switch address {
    case "127.0.0.1", "::1": return "localhost"
    case "0.0.0.0", "::":
      var buffer = [CChar](repeating: 0, count: 256)
      guard gethostname(&buffer, buffer.count - 1) == 0 else { return "HOST" }
      let name = String(cBuffer: buffer)
      return name.isEmpty ? "HOST" : name
    default: return IPAddress.bracketed(address)
    }
  }
}
