import Appliance
import ArgumentParser

/// The options for the camera's own controls.
struct CameraControlOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Set a control of the camera, as in brightness=10; repeat for more. nightjar devices --controls lists controls.",
      discussion: """
        The value of a menu is the number or the name of an entry. nightjar sets controls at the start, when the \
        camera comes back, and at a reload, in an order that drivers accept. A control that the camera lacks causes a \
        warning. Nothing is reset at the end. In a file, write a table [controls] or [camera.controls].
        """, valueName: "name=value"))
  var controls: [String] = []

  @Flag(
    name: .customLong("sensor-lock"),
    help: ArgumentHelp(
      "Fix exposure, gain, white balance and focus once they have been steady for a second.",
      discussion: """
        Until then the camera adjusts them, also those that were set by hand. The camera also keeps its rate in the \
        dark. After ten seconds all are fixed as they are.
        """))
  var locksSensor = false

  @Option(
    name: .customLong("power-line"),
    help: ArgumentHelp(
      "The mains frequency, against the flicker of lamps: 50, 60, off or auto.",
      discussion: "It sets the camera's control power_line_frequency.", valueName: "frequency"))
  var powerLine: CameraControlSettings.PowerLine?

  @Option(
    help: ArgumentHelp(
      "The limits of night: from=19:30 and to=06:30 in local time, or below=20 and above=30 as the picture's mean "
        + "brightness, 0 to 255. Give both.",
      discussion: """
        Night begins when the picture was darker than below for a minute (three seconds at the start). Day begins when \
        the picture was brighter than above for a minute. Choose above higher than the brightness of a dark room with \
        the night's controls. In a file, write a table [night].
        """, valueName: "key=value"))
  var night: [String] = []

  @Option(
    name: .customLong("night-controls"),
    help: ArgumentHelp(
      "Set a control of the camera at night, and set it back by day; repeat for more.",
      discussion: "In a file, write a table [night.controls].", valueName: "name=value"))
  var nightControls: [String] = []
}

extension CameraControlSettings.PowerLine: ExpressibleByArgument {}
