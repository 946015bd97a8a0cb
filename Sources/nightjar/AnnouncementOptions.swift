import ArgumentParser
import Discovery

/// Whether the network is told of the streams.
struct AnnouncementOptions: ParsableArguments {
  @Flag(
    name: .customLong("announce"), inversion: .prefixedNo,
    help: ArgumentHelp(
      "Announce each camera that --rtsp and --rtsps serve to others, so that nightjar discover and players find it.",
      discussion: """
        By DNS-SD (_rtsp._tcp, _rtsps._tcp), through Avahi: everybody on the network learns that there is a camera, its \
        name, address and port; to watch it needs a user all the same. Without Avahi it is announced once that runs.
        """))
  var announces: Bool?

  @Option(
    name: .customLong("announce-name"),
    help: ArgumentHelp(
      "With --announce, what people read in the list of streams; without it the camera's name and the machine's: camera on HOST.",
      valueName: "text"),
    transform: Self.serviceName)
  var name: String?

  /// Checks what this has in common with the server.
  ///
  /// - Throws: `ValidationError`.
  func validate(with serving: RTSPOptions) throws {
    if announces == true, !serving.isServed { throw ValidationError("--announce is for --rtsp and --rtsps only") }
  }

  private static func serviceName(_ text: String) throws -> String {
    let limit = ServiceAnnouncement.nameLimit
    guard !text.isEmpty, text.utf8.count <= limit, text.unicodeScalars.allSatisfy(TerminalText.isHarmless) else {
      throw ValidationError("write 1 to \(limit) bytes of text without control characters, as in 'Front door'")
    }
    return text
  }
}
