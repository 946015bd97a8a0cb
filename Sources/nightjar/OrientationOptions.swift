import ArgumentParser

/// The options for rotating and mirroring the pictures.
struct OrientationOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Rotate the picture clockwise: 0, 90, 180, 270, or auto.",
      discussion: "auto follows the device's accelerometer, directly or through iio-sensor-proxy.", valueName: "degrees"
    ))
  var orientation: String?

  @Flag(help: "Mirror the picture left to right, after the rotation.")
  var mirror = false

  @Option(
    help: ArgumentHelp(
      "For auto: where the camera looks, away (from the user, the default) or user (at the user).",
      valueName: "direction"))
  var facing: String?

  /// The path where sysfs is mounted: for tests with sensors that are files, thermal zones too.
  @Option(help: .hidden)
  var sysfs: String?

  /// The path of udev's database, also for tests.
  @Option(help: .hidden)
  var udev: String?
}
