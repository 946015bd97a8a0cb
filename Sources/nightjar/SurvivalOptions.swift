import ArgumentParser
import Capture

/// What becomes of the stream without its camera.
struct SurvivalOptions: ParsableArguments {
  /// What follows a camera that is lost.
  enum Loss: String, CaseIterable, ExpressibleByArgument {
    /// The stream goes on with a picture that says so.
    case placeholder
    /// The program ends.
    case exit
  }

  @Flag(
    name: .customLong("wait"),
    help: ArgumentHelp(
      "Begin without a camera, and stream a placeholder until one comes.",
      discussion: """
        The stream is 1280x720 at 30 fps then, or as --size and --fps say; the camera's pictures are scaled to it, also \
        where the camera that is there does not have that size. Destinations that are not there are waited for too.
        """))
  var waits = false

  @Option(
    name: .customLong("on-loss"),
    help: ArgumentHelp(
      "When the camera is unplugged, stalls or fails: placeholder, or exit with 69.",
      discussion: """
        With placeholder, which is the default, the same stream goes on with a picture that says since when, and the \
        camera is taken again as soon as it is back: by the link that was named, else by its serial number, its USB \
        port or its name.
        """, valueName: "what"))
  var lossBehavior: Loss?

  /// What the source is told.
  var cameras: CameraSurvival { waits ? .always : onLoss == .exit ? .none : .onceStarted }

  /// What follows a camera that is lost.
  var onLoss: Loss { lossBehavior ?? .placeholder }

  /// Whether any of these was given.
  var areGiven: Bool { waits || lossBehavior != nil }

  mutating func validate() throws {
    guard !waits || onLoss == .placeholder else {
      throw ValidationError("--wait and --on-loss exit exclude each other")
    }
  }
}
