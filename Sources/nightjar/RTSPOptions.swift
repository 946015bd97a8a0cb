import ArgumentParser

/// The options of the RTSP server.
struct RTSPOptions: ParsableArguments {
  @Option(
    defaultAsFlag: "the usual one",
    help: ArgumentHelp(
      "Serve rtsp://HOST:8554/NAME; NAME is the value of --name. Viewers may join and leave.",
      discussion: """
        Without users (nightjar user add NAME) it listens on this host only, with users on every address. \
        ADDRESS:PORT, :PORT or ADDRESS selects another address: 0.0.0.0 is every IPv4 address, [::] every IPv6 address. \
        Sockets that systemd has opened under the name rtsp or rtsps replace it; without users they too serve this host \
        only.
        """, valueName: "address:port"))
  var rtsp: String?

  @Option(
    defaultAsFlag: "the usual one",
    help: ArgumentHelp(
      "Serve rtsps://HOST:8322/NAME: like --rtsp, encrypted.",
      discussion: "Without --tls-cert, nightjar makes a certificate at the first start and keeps it.",
      valueName: "address:port"))
  var rtsps: String?

  @Option(
    help: ArgumentHelp(
      "The users file, written by nightjar user. Users may watch by RTSP and HTTP and use HTTPS.",
      discussion: "The default is the usual file, if it exists.", valueName: "file"))
  var users: String?

  @Option(
    name: .customLong("tls-cert"),
    help: ArgumentHelp(
      "The certificate for --rtsps and --https, with its chain, in PEM.", valueName: "file"))
  var certificate: String?

  @Option(
    name: .customLong("tls-key"),
    help: ArgumentHelp("The certificate's private key, in PEM. Only its owner may read the file.", valueName: "file"))
  var key: String?

  @Option(
    name: .customLong("rtsp-multicast"),
    help: ArgumentHelp(
      "The group for viewers that request multicast; without it nightjar refuses them.",
      discussion: """
        A group takes two ports, from an even one on. With sound it takes four: two for pictures, then two for sound. \
        Everybody on the network can watch the group, users or not, unless --require-encryption encrypts it. The TTL is \
        1.
        """, valueName: "group:port"))
  var group: String?

  @Flag(
    name: .customLong("require-encryption"),
    help: ArgumentHelp(
      "Send the stream only to viewers of rtsps, in their encrypted connection or by SRTP.",
      discussion: """
        nightjar refuses viewers of --rtsp, and UDP without SRTP. The group of --rtsp-multicast is encrypted.
        """))
  var requiresEncryption = false

  @Option(
    name: .customLong("rtsps-suite"),
    help: ArgumentHelp(
      "The SRTP suite of --rtsps: AES_CM_128_HMAC_SHA1_80, AEAD_AES_128_GCM, AEAD_AES_256_GCM or none.",
      discussion: """
        The first is the default. Each viewer gets its own key. Players without SRTP get the picture in the \
        connection. none is for players that refuse a session description with SRTP.
        """, valueName: "suite"))
  var suite: String?

  @Option(
    name: .customLong("rtsp-sessions"),
    help: ArgumentHelp(
      "The most viewers of --rtsp and --rtsps at once, for all cameras.",
      discussion: """
        One address may have an eighth of them, or 16 if an eighth is less. The default depends on memory and \
        descriptors, 1024 at most: 512 with 2 GB, 256 at most in the service.
        """, valueName: "n"))
  var sessions: String?

  @Flag(name: .customLong("always-encode"), help: "Encode also while nobody watches.")
  var alwaysEncodes = false
}
