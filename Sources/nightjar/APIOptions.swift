import ArgumentParser

/// The options of the control API over the network.
struct APIOptions: ParsableArguments {
  @Option(
    defaultAsFlag: "the usual one",
    help: ArgumentHelp(
      "Serve the control API at https://HOST:8443/v1/status, encrypted.",
      discussion: """
        It serves users (nightjar user) and programs with a token (nightjar token). Each has a role: read allows \
        figures, view also pictures and sound (/snapshot.jpg, /stream.mjpg, /listen.mp3), control everything that \
        nightjar ctl does. Without users and tokens it listens on this host only, and changes nothing. ADDRESS:PORT, \
        :PORT or ADDRESS selects another address. It uses the certificate of --rtsps.
        """, valueName: "address:port"))
  var https: String?

  @Option(
    help: ArgumentHelp(
      "The tokens file, written by nightjar token. Programs with a token may use --https.",
      discussion: "The default is the usual file, if it exists.", valueName: "file"))
  var tokens: String?

  @Option(
    help: ArgumentHelp(
      "The port of all browsers that watch by WebRTC (https), for UDP and TCP.",
      discussion: "The default is 8189; 0 takes any free one.", valueName: "port"))
  var webrtcPort: Int?

  @Option(
    help: ArgumentHelp(
      "An address at which browsers reach this host, beside those of its interfaces.",
      discussion: "Name the address of a router that forwards --webrtc-port, or of a VPN.", valueName: "address"))
  var webrtcAddress: [String] = []
}
