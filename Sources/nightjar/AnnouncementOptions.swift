import ArgumentParser

/// The options for announcing the streams on the network.
struct AnnouncementOptions: ParsableArguments {
  @Flag(
    name: .customLong("announce"), inversion: .prefixedNo,
    help: ArgumentHelp(
      "Announce each camera that --rtsp and --rtsps serve to other hosts. nightjar discover and players find it.",
      discussion: """
        Avahi announces it by DNS-SD (_rtsp._tcp, _rtsps._tcp). Everybody on the network learns the camera's name, \
        address and port; only users may watch. If Avahi does not run, the announcement follows when it does.
        """))
  var announces: Bool?

  @Option(
    name: .customLong("announce-name"),
    help: ArgumentHelp(
      "The name that --announce shows in lists of streams. The default is the camera's and the host's: camera on HOST.",
      valueName: "text"))
  var name: String?
}
