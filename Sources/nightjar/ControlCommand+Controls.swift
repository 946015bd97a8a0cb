import Appliance
import ArgumentParser
import Capture
import Serving

extension ControlCommand {
  /// `nightjar ctl controls`.
  struct ControlsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "controls", abstract: "List, read and set the camera's controls while it streams.",
      discussion: """
        A value lasts until the next reload, or until the program ends. If the camera is unplugged and comes back, \
        nightjar sets the value again.

        Examples:
          nightjar ctl controls
          nightjar ctl controls set brightness=10
          nightjar ctl controls set auto_exposure=1 exposure_time_absolute=300
          nightjar ctl controls reset brightness
        """,
      subcommands: [
        ListControlsCommand.self, GetControlCommand.self, SetControlsCommand.self, ResetControlsCommand.self,
        LockCommand.self, UnlockCommand.self,
      ], defaultSubcommand: ListControlsCommand.self)

    @OptionGroup var stream: Stream

    /// Refuses a name that is given twice. The API cannot express that, because names are the keys of an object.
    fileprivate static func requireDistinct(_ names: [String]) throws {
      for (index, name) in names.enumerated() where names[..<index].contains(name) {
        throw ValidationError("\(CameraControlError.twice(name: name))")
      }
    }
  }

  struct ListControlsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List all controls with value and range.")

    @OptionGroup var stream: Stream

    func run() throws {
      try stream.tell {
        try $0.controls()
      } _: {
        Self.text($0)
      }
    }

    private static func text(_ answer: CameraControlsAnswer) -> String {
      let lock =
        switch answer.sensorLock {
        case "settling": "the sensor will be locked once it has settled\n"
        case "locked": "the sensor is locked\n"
        default: ""
        }
      return lock + (answer.night == true ? "it is night\n" : "") + ControlsText.text(answer.controls)
    }
  }

  struct GetControlCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "get", abstract: "Print the value of one control.")

    @Argument(help: "The control's name.") var name: String

    @OptionGroup var stream: Stream

    func run() throws {
      try stream.ask { client in
        let answer = try client.controls()
        guard let control = answer.value.controls.first(where: { $0.name == name }) else {
          throw CameraControlError.unknown(name: name, among: answer.value.controls.map(\.name))
        }
        try writeOutput(stream.json ? ControlsText.json(control) : ControlsText.value(of: control) + "\n")
      }
    }
  }

  struct SetControlsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "set", abstract: "Set controls: automatics off, then their values, then automatics on.")

    @Argument(help: "NAME=VALUE, as in brightness=10.", transform: SettingValues.assignment)
    var assignments: [ControlAssignment]

    @OptionGroup var stream: Stream

    func validate() throws { try ControlsCommand.requireDistinct(assignments.map(\.name)) }

    func run() throws {
      try stream.tell {
        try $0.changeControls(assignments.map { ($0.name, $0.value) })
      } _: {
        ControlsText.values(of: assignments.map(\.name), in: $0)
      }
    }
  }

  struct ResetControlsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "reset",
      abstract: "Reset controls to the configuration's value, else to the camera's default.")

    @Argument(help: "The controls' names; the default is all that nightjar ctl controls set has set.") var names:
      [String] = []

    @OptionGroup var stream: Stream

    func validate() throws { try ControlsCommand.requireDistinct(names) }

    func run() throws {
      try stream.ask { client in
        let names =
          try names.isEmpty ? client.controls().value.controls.filter { $0.setBy == "ctl" }.map(\.name) : names
        let answer = try names.isEmpty ? client.controls() : client.changeControls(names.map { ($0, nil) })
        try stream.write(
          answer, names.isEmpty ? "nothing was set\n" : ControlsText.values(of: names, in: answer.value))
      }
    }
  }

  struct LockCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "lock", abstract: "Fix exposure, gain, white balance and focus once they have settled.")

    @OptionGroup var stream: Stream

    func run() throws {
      try stream.tell {
        try $0.lockSensor(true)
      } _: {
        $0.sensorLock == "locked" ? "the sensor is locked\n" : "the sensor will be locked once it has settled\n"
      }
    }
  }

  struct UnlockCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "unlock", abstract: "Let the camera adjust exposure, gain, white balance and focus again.")

    @OptionGroup var stream: Stream

    func run() throws {
      try stream.ask { client in
        let wasLocked = try client.controls().value.sensorLock != "off"
        try stream.write(
          client.lockSensor(false),
          wasLocked
            ? "the sensor is unlocked: the camera sets exposure, gain, colours and focus by itself\n"
            : "the sensor was not locked: nothing has changed\n")
      }
    }
  }
}
