package import Capture

/// The settings for the camera's own controls.
package struct CameraControlSettings: Hashable, Sendable {
  /// The mains frequency.
  package enum PowerLine: String, CaseIterable, Sendable {
    case off
    case fifty = "50"
    case sixty = "60"
    case auto

    /// The value of `V4L2_CID_POWER_LINE_FREQUENCY_*`.
    fileprivate var value: Int {
      switch self {
      case .off: 0
      case .fifty: 1
      case .sixty: 2
      case .auto: 3
      }
    }
  }

  var controls: [ControlAssignment] = []
  var locksSensor = false
  var powerLine: PowerLine?
  var night: [ControlAssignment] = []
  var nightControls: [ControlAssignment] = []

  private static let powerLineControl = "power_line_frequency"

  /// `true` if any of these settings was given.
  package var areGiven: Bool {
    !controls.isEmpty || locksSensor || powerLine != nil || !night.isEmpty || !nightControls.isEmpty
  }

  /// The requested controls of the camera.
  package var profile: ControlProfile {
    let power = powerLine.map { [ControlAssignment(name: Self.powerLineControl, value: "\($0.value)")] } ?? []
    // `check` has checked the entries.
    let condition = try? NightSchedule.condition(night)
    return ControlProfile(
      values: power + controls, locksSensor: locksSensor,
      night: condition.flatMap { $0 }.map { NightProfile($0, values: nightControls) })
  }

  /// Reports settings that contradict each other.
  func check(_ faults: inout SettingFaults) {
    for (setting, assignments) in [(CameraSetting.controls, controls), (.nightControls, nightControls)] {
      for (index, assignment) in assignments.enumerated()
      where assignments[..<index].contains(where: { $0.name == assignment.name }) {
        faults.add(setting, "\(assignment.name) is given twice")
      }
      for assignment in assignments {
        do { try ControlAssignment.requireSettable(assignment.name) } catch { faults.add(setting, "\("\(error)")") }
      }
    }
    if powerLine != nil, controls.contains(where: { $0.name == Self.powerLineControl }) {
      faults.add("\(.powerLine) sets \(Self.powerLineControl), which \(.controls) sets too: leave one out")
    }
    do throws(ValueError) {
      let condition = try NightSchedule.condition(night)
      if condition != nil, nightControls.isEmpty {
        faults.add(.night, "add the controls of the night: \(.nightControls)")
      }
      if condition == nil, !nightControls.isEmpty {
        faults.add(.nightControls, "add the limits of the night: \(.night)")
      }
    } catch {
      faults.add(.night, error.reason)
    }
  }
}

/// The parser of `night`, which tells when it is night.
enum NightSchedule {
  private static let rule = """
    choose from and to, as in from=19:30 to=06:30, or below and above, as in below=20 above=30; in a file, write a \
    table [night] with the lines from = "19:30" and to = "06:30"
    """

  /// Parses `from=19:30`, one of the two entries.
  static func entry(_ text: String) throws(ValueError) -> ControlAssignment {
    guard let entry = try? SettingValues.assignment(text) else { throw ValueError("\(rule)") }
    return entry
  }

  /// Returns the condition; nil if there are no entries.
  static func condition(_ entries: [ControlAssignment]) throws(ValueError) -> NightProfile.Condition? {
    guard !entries.isEmpty else { return nil }
    let values = Dictionary(entries.map { ($0.name, $0.value) }) { first, _ in first }
    guard values["controls"] == nil else {
      throw ValueError("controls is a separate table, [night.controls], with a line such as brightness = 10")
    }
    guard values.count == entries.count, values.count == 2 else { throw ValueError("\(rule)") }
    if let from = values["from"], let to = values["to"] {
      let (start, end) = (try minute(from, "from"), try minute(to, "to"))
      guard start != end else { throw ValueError("from and to are the same: \(rule)") }
      return .time(from: start, to: end)
    }
    guard let below = values["below"], let above = values["above"] else { throw ValueError("\(rule)") }
    guard let low = SettingValues.number(below[...]), let high = SettingValues.number(above[...]),
      (1...254).contains(low), (low + 1...255).contains(high)
    else { throw ValueError("choose 1 to 254 for below, and for above more than that, up to 255") }
    return .darkness(below: low, above: high)
  }

  private static func minute(_ text: String, _ key: String) throws(ValueError) -> Int {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[1].utf8.count == 2, parts[0].utf8.count <= 2,
      let hour = SettingValues.number(parts[0]), let minute = SettingValues.number(parts[1]), hour < 24, minute < 60
    else { throw ValueError("\(key) is '\(text)': write hours and minutes, as in 19:30") }
    return hour * 60 + minute
  }
}
