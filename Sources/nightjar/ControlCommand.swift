import Appliance
import ArgumentParser
import Glibc
import Media
import Platform
import Serving

/// `nightjar ctl`.
struct ControlCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ctl",
    abstract: "Show or change a running stream.",
    discussion: """
      You must be the owner of the stream's control socket or in its group.

      Examples:
        nightjar ctl status
        nightjar ctl status --watch
        nightjar ctl rotate 90 --camera nursery
        nightjar ctl add rtp://192.168.1.20:5004 --sdp camera.sdp
        nightjar ctl controls set brightness=10
        nightjar ctl audio mute
        nightjar ctl phone add
        nightjar ctl bitrate 2.5M --socket /run/nightjar/control.sock

      --json prints the answer as JSON on standard output, and a failure as JSON on standard error: {"error": …, \
      "failure": …}. docs/openapi.json describes both.

      Exit codes are those of sysexits.h: 64 wrong value, 66 no such camera, destination or control, 69 no such \
      stream, 77 no permission.
      """,
    subcommands: [
      StatusCommand.self, ViewersCommand.self, RotateCommand.self, KeyFrameCommand.self, BitrateCommand.self,
      AddCommand.self, RemoveCommand.self, ControlsCommand.self, AudioCommand.self,
      PhoneCommand.self, EventsListCommand.self, ReloadCommand.self,
    ])

  // The subcommands have these options too, for their help. ArgumentParser gives the subcommands the values that were
  // parsed here, wherever the options stood.
  @OptionGroup var stream: Stream

  /// The options that select the stream and the form of the answer.
  struct Stream: ParsableArguments {
    @Option(
      help: ArgumentHelp(
        "The stream's control socket.",
        discussion: "The default is nightjar/control.sock in $XDG_RUNTIME_DIR, else in /run.", valueName: "path"))
    var socket: String?

    @Option(
      help: ArgumentHelp("The camera's name, if there are several.", valueName: "name"),
      completion: NameCompletion.cameras)
    var camera: String?

    @Flag(help: "Print the answer, or the failure, as JSON.")
    var json = false

    mutating func validate() throws {
      if camera == "" { throw ValidationError("--camera: the name is empty; nightjar ctl status lists the names") }
    }

    /// The longest wait for an answer.
    static let patience = Duration(seconds: 10)

    /// Returns a client of the stream.
    func client(patience: Duration = Self.patience) -> ControlClient {
      ControlClient(path: socket ?? ControlSocket.clientPath, camera: camera, patience: patience)
    }

    /// Sends requests to the stream, and waits up to `patience` for each answer. A failure becomes one line and an exit
    /// code.
    func ask(patience: Duration = Self.patience, _ body: (ControlClient) throws -> Void) throws {
      // A reader that has seen enough would otherwise end the program by a signal, silently.
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        try body(client(patience: patience))
      }
    }

    /// Sends a request, and writes its answer: in words unless JSON is requested.
    func tell<Value>(
      patience: Duration = Self.patience, _ request: (ControlClient) throws -> ControlClient.Answer<Value>,
      _ words: (Value) -> String
    ) throws {
      try ask(patience: patience) { client in
        let answer = try request(client)
        try write(answer, words(answer.value))
      }
    }

    /// Writes an answer.
    func write<Value>(_ answer: ControlClient.Answer<Value>, _ words: String) throws {
      try writeOutput(json ? String(decoding: answer.json, as: UTF8.self) : words)
    }
  }

  struct RotateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "rotate",
      abstract: "Rotate the picture clockwise, by 0, 90, 180 or 270 degrees from the camera's own.",
      aliases: ["orientation"])

    @Argument(
      help: "0, 90, 180 or 270.", completion: .list(["0", "90", "180", "270"]),
      transform: { text in
        guard let degrees = SettingValues.number(text[...]), let rotation = try? Rotation(degrees: degrees) else {
          throw ValidationError("choose 0, 90, 180 or 270")
        }
        return rotation
      })
    var degrees: Rotation

    @Flag(
      name: [.customLong("mirror"), .customLong("mirrored")],
      help: "Also mirror it left to right, as nightjar stream --mirror does.")
    var mirror = false

    @OptionGroup var stream: Stream

    func run() throws {
      try stream.tell {
        try $0.rotate(to: Orientation(degrees, mirrored: mirror))
      } _: {
        "orientation: \($0.rotation) degrees\($0.isMirrored ? ", mirrored" : "")\n"
      }
    }
  }

  struct KeyFrameCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "keyframe", abstract: "Request a key frame, so that viewers can begin.")

    @OptionGroup var stream: Stream

    func run() throws {
      try stream.tell {
        try $0.requestKeyFrame()
      } _: {
        "key frame requested\n"
      }
    }
  }

  struct BitrateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "bitrate", abstract: "Change the bitrate, without a gap in the picture.")

    @Argument(
      help: "Bits per second, as in 2.5M or 800k.",
      transform: { text in
        let limits = EncoderConfiguration.bitrateLimits
        guard let bitrate = try? SettingValues.bitrate(text) else {
          throw ValidationError(
            "choose bits per second from \(limits.lowerBound / 1000)k to \(limits.upperBound / 1_000_000)M, as in 2.5M")
        }
        return bitrate
      })
    var bitsPerSecond: Int

    @OptionGroup var stream: Stream

    func run() throws {
      try stream.tell {
        try $0.changeBitrate(bitsPerSecond)
      } _: {
        "bitrate: \(Terminal.bitrate(Double($0)))\n"
      }
    }
  }

  struct ReloadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "reload",
      abstract: "Read the configuration file again and apply it.",
      discussion: """
        The stream also reads users, tokens and certificates again. If a file is wrong, nothing changes, and the \
        answer says why. If the files are right, the exit code is 0; a warning tells what could not be applied.
        """)

    @OptionGroup var stream: Stream

    func validate() throws {
      guard stream.camera == nil else {
        throw ValidationError("--camera: a reload is for all cameras; leave the option out")
      }
    }

    func run() throws {
      // Cameras are opened meanwhile, which takes a slow host longer than it takes to answer a question.
      try stream.tell(patience: Duration(seconds: 60)) {
        try $0.reload()
      } _: {
        Self.text($0)
      }
    }

    static func text(_ answer: ReloadAnswer) -> String {
      var lines: [String] = []
      for camera in answer.cameras {
        lines.append("camera \(camera.name): \(camera.outcome.rawValue)")
        lines += camera.changes.map { "  \($0)" }
      }
      lines += answer.server
      lines += answer.warnings.map { "warning: \($0)" }
      return lines.map { $0 + "\n" }.joined()
    }
  }
}
