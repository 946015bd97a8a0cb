import Appliance
import ArgumentParser

/// The options for the stream without its camera.
struct SurvivalOptions: ParsableArguments {
  @Flag(
    name: .customLong("wait"),
    help: ArgumentHelp(
      "Start without a camera, and stream a placeholder until one appears.",
      discussion: """
        The stream is then 1280x720 at 30 fps, or follows --size and --fps. The camera's pictures are scaled to it, \
        also if a present camera lacks that size. nightjar also waits for missing destinations. \
        --source test and files take neither --wait nor --on-loss.
        """))
  var waits = false

  @Option(
    name: .customLong("on-loss"),
    help: ArgumentHelp(
      "The reaction if the camera is unplugged, stalls or fails: placeholder, or exit with 69.",
      discussion: """
        With placeholder, the default, the same stream continues with a picture that says since when the camera is \
        lost. When the camera is back, nightjar opens it again. It finds the camera by the given link, else by serial \
        number, USB port or name.
        """, valueName: "what"))
  var lossBehavior: CameraLoss.Reaction?
}

extension CameraLoss.Reaction: ExpressibleByArgument {}
