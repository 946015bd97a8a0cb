import ArgumentParser
import Capture
import Media

/// What the camera's own settings are to be.
struct CameraControlOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Set a control of the camera, as in brightness=10; may be given several times. nightjar devices --controls lists "
        + "them.",
      discussion: """
        A menu's value is the number or the name of its entry. They are set at the start, each time the camera comes back, \
        and at a reload, in an order that drivers accept. What the camera does not have is a warning. Nothing is set back \
        at the end. In a file it is a table, [controls] or [camera.controls].
        """, valueName: "name=value"),
    transform: CameraControlOptions.assignment)
  var controls: [ControlAssignment] = []

  @Flag(
    name: .customLong("sensor-lock"),
    help: ArgumentHelp(
      "Fix exposure, gain, white balance and focus once they have held still for a second.",
      discussion: """
        What of them somebody has set by hand is left to the camera until then. Pictures do not get fewer in the dark \
        either. After ten seconds all are fixed as they are.
        """))
  var locksSensor = false

  @Option(
    name: .customLong("power-line"),
    help: ArgumentHelp(
      "The mains' frequency, against flicker of lamps: 50, 60, off or auto.",
      discussion: "It sets the camera's power_line_frequency.", valueName: "frequency"))
  var powerLine: PowerLine?

  @Option(
    help: ArgumentHelp(
      "When it is night: from=19:30 and to=06:30 by the local time, or below=20 and above=30 by the mean brightness of the "
        + "picture, 0 to 255. Given twice.",
      discussion: """
        It becomes night when the picture was darker than below for a minute (three seconds at the start), and day when it \
        was lighter than above for a minute; choose above higher than what the night's controls make of a dark room. In a \
        file it is a table, [night].
        """, valueName: "key=value"),
    transform: CameraControlOptions.assignment)
  var night: [ControlAssignment] = []

  @Option(
    name: .customLong("night-controls"),
    help: ArgumentHelp(
      "Set a control of the camera while it is night, and back by day; may be given several times.",
      discussion: "In a file it is a table, [night.controls].", valueName: "name=value"),
    transform: CameraControlOptions.assignment)
  var nightControls: [ControlAssignment] = []

  /// What the mains have.
  enum PowerLine: String, CaseIterable, ExpressibleByArgument {
    case off
    case fifty = "50"
    case sixty = "60"
    case auto

    /// `V4L2_CID_POWER_LINE_FREQUENCY_*`.
    var value: Int {
      switch self {
      case .off: 0
      case .fifty: 1
      case .sixty: 2
      case .auto: 3
      }
    }
  }

  private static let powerLineControl = "power_line_frequency"

  /// Whether any of these was given.
  var areGiven: Bool {
    !controls.isEmpty || locksSensor || powerLine != nil || !night.isEmpty || !nightControls.isEmpty
  }

  /// What is wanted of the camera.
  var profile: ControlProfile {
    let power = powerLine.map { [ControlAssignment(name: Self.powerLineControl, value: "\($0.value)")] } ?? []
    // Checked by `validate`.
    let condition = try? NightSchedule.condition(night)
    return ControlProfile(
      values: power + controls, locksSensor: locksSensor,
      night: condition.flatMap { $0 }.map { NightProfile($0, values: nightControls) })
  }

  mutating func validate() throws {
    for (option, assignments) in [("controls", controls), ("night-controls", nightControls)] {
      for (index, assignment) in assignments.enumerated()
      where assignments[..<index].contains(where: { $0.name == assignment.name }) {
        throw ValidationError("--\(option): \(assignment.name) is given twice")
      }
      for assignment in assignments {
        do {
          try ControlAssignment.requireSettable(assignment.name)
        } catch {
          throw ValidationError("--\(option): \(error)")
        }
      }
    }
    if powerLine != nil, controls.contains(where: { $0.name == Self.powerLineControl }) {
      throw ValidationError("--power-line sets \(Self.powerLineControl), which --controls sets too: leave one out")
    }
    let condition = try NightSchedule.condition(night)
    if condition != nil, nightControls.isEmpty {
      throw ValidationError("--night: say what is otherwise then, by --night-controls")
    }
    if condition == nil, !nightControls.isEmpty {
      throw ValidationError("--night-controls: say when it is night, by --night")
    }
  }

  /// `brightness=10`.
  static func assignment(_ text: String) throws -> ControlAssignment {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let isName = parts[0].utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F }
    guard parts.count == 2, isName, (1...64).contains(parts[0].utf8.count), (1...128).contains(parts[1].utf8.count)
    else {
      throw ValidationError("write NAME=VALUE, as in brightness=10")
    }
    return ControlAssignment(name: String(parts[0]), value: String(parts[1]))
  }
}

/// When it is night, as `--night` says it.
enum NightSchedule {
  private static let rule = "choose from and to, as in from=19:30 to=06:30, or below and above, as in below=20 above=30"

  /// Nil where nothing is said.
  static func condition(_ entries: [ControlAssignment]) throws -> NightProfile.Condition? {
    guard !entries.isEmpty else { return nil }
    let values = Dictionary(entries.map { ($0.name, $0.value) }) { first, _ in first }
    guard values["controls"] == nil else {
      throw ValidationError(
        "--night: controls is a table of its own, [night.controls], with a line such as brightness = 10")
    }
    guard values.count == entries.count, values.count == 2 else { throw ValidationError("--night: \(rule)") }
    if let from = values["from"], let to = values["to"] {
      let (start, end) = (try minute(from, "from"), try minute(to, "to"))
      guard start != end else { throw ValidationError("--night: from and to are the same: \(rule)") }
      return .time(from: start, to: end)
    }
    guard let below = values["below"], let above = values["above"] else { throw ValidationError("--night: \(rule)") }
    guard let low = OptionValues.number(below[...]), let high = OptionValues.number(above[...]),
      (1...254).contains(low),
      (low + 1...255).contains(high)
    else {
      throw ValidationError("--night: choose 1 to 254 for below, and for above more than that, up to 255")
    }
    return .darkness(below: low, above: high)
  }

  private static func minute(_ text: String, _ key: String) throws -> Int {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[1].utf8.count == 2, parts[0].utf8.count <= 2,
      let hour = OptionValues.number(parts[0]),
      let minute = OptionValues.number(parts[1]), hour < 24, minute < 60
    else { throw ValidationError("--night: \(key) is '\(text)': write hours and minutes, as in 19:30") }
    return hour * 60 + minute
  }
}
