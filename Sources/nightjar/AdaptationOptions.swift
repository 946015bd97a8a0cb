import ArgumentParser

/// The options that restrict the stream when the host is too hot or too slow.
struct AdaptationOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The limits for heat: auto, off, or three temperatures in degrees Celsius, as in 65,75,85.",
      discussion: """
        From the first on, the state is fair. From the second on, it is serious: the bitrate falls by 30 %. From the \
        third on, it is critical: the stream also has at most 1280x720 at 25 frames a second. auto uses the kernel's \
        trip points.
        """, valueName: "temperatures"))
  var thermal: String?

  @Flag(
    name: .customLong("load-adaptation"), inversion: .prefixedNo,
    help: ArgumentHelp(
      "Reduce effort, then frames, then picture size, while encoding takes over 80 % of the time."))
  var followsLoad = true
}
