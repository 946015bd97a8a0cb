import ArgumentParser
import Capture
import Control

extension ControlCommand {
  /// `nightjar ctl controls`.
  struct ControlsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "controls", abstract: "List, read and set the camera's own settings while it streams.",
      discussion: """
        What is set here holds until the next reload, or until the program ends; it is set again when the camera comes \
        back after it was unplugged.

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

    /// Refuses what is given twice, which the API cannot: its names are the keys of an object.
    fileprivate static func requireDistinct(_ names: [String]) throws {
      for (index, name) in names.enumerated() where names[..<index].contains(name) {
        throw ValidationError("\(CameraControlError.twice(name: name))")
      }
    }
  }

  struct ListControlsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List all, with what they are and may be.")

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
        case "settling": "the sensor is locked once it has settled\n"
        case "locked": "the sensor is locked\n"
        default: ""
        }
      return lock + (answer.night == true ? "it is night\n" : "") + ControlsText.text(answer.controls)
    }
  }

  struct GetControlCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "get", abstract: "Tell what one is.")

    @Argument(help: "Its name.") var name: String

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
      commandName: "set", abstract: "Set some: automatics off, then what they set, then automatics on.")

    @Argument(help: "NAME=VALUE, as in brightness=10.", transform: CameraControlOptions.assignment)
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
      abstract: "Take back what was set so: to what the configuration says, else the camera's usual value.")

    @Argument(help: "Which; without any all that ctl controls set has set.") var names: [String] = []

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
        $0.sensorLock == "locked" ? "the sensor is locked\n" : "the sensor is locked once it has settled\n"
      }
    }
  }

  struct UnlockCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "unlock", abstract: "Let the camera set them by itself again.")

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

extension ControlsText {
  /// A line for each of `names`.
  fileprivate static func values(of names: [String], in answer: CameraControlsAnswer) -> String {
    answer.controls.filter { names.contains($0.name) }.map { "\($0.name): \(value(of: $0))\n" }.joined()
  }
}
