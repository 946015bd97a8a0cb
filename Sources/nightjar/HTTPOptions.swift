import ArgumentParser

/// The options of the plain HTTP server.
struct HTTPOptions: ParsableArguments {
  @Option(
    defaultAsFlag: "the usual one",
    help: ArgumentHelp(
      "Serve http://127.0.0.1:8080/snapshot.jpg, /stream.mjpg, /listen.mp3, /camera.sdp, /metrics, /healthz, not encrypted.",
      discussion: """
        HTTP changes nothing. With several cameras, all paths except /metrics are below /cameras/NAME. This host needs \
        no login, except through a proxy or tunnel; :PORT listens on this host only. ADDRESS:PORT or ADDRESS also \
        serves users (nightjar user add NAME) on other hosts: 0.0.0.0 is every IPv4 address, [::] every IPv6 address. \
        Users log in by Digest, which sends no password, but everybody on the way can see and hear the stream; --https \
        encrypts them.
        """, valueName: "address:port"))
  var http: String?
}
