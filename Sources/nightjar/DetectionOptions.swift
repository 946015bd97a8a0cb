import ArgumentParser

/// The options for alerts from sound and picture.
struct DetectionOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Alerts of noise: off (the default), low, medium, high, or decibels above the background, as in 12dB.",
      discussion: """
        The level of 300 to 3000 Hz counts. A fan, rain or other steady sound becomes the background within ten \
        seconds. low is 20 dB, medium 14 dB, high 8 dB. nightjar events shows the alerts.
        """, valueName: "level"))
  var noise: String?

  @Flag(
    help: ArgumentHelp(
      "Alerts of what is probably crying.",
      discussion: """
        The detector looks for the harmonics and the rhythm of a crying child. It is no medical device, and misses some \
        cries: see docs/detection.md.
        """))
  var crying = false

  @Option(
    help: ArgumentHelp(
      "Alerts of movement in the picture: off (the default), low, medium or high.", valueName: "sensitivity"))
  var movement: String?

  @Option(
    name: .customLong("movement-mask"),
    help: ArgumentHelp(
      "A part of the camera's picture in which movement does not count; repeat for more.",
      discussion: "Left, top, width and height in percent, as in 0,0,100,20 for the upper fifth.", valueName: "x,y,w,h")
  )
  var movementMask: [String] = []
}
