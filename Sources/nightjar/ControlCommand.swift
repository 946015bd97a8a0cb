import ArgumentParser
import Control
import Glibc
import Media

/// `nightjar ctl`.
struct ControlCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ctl",
    abstract: "Ask a running stream how it is, or change it.",
    discussion: """
      You must be the owner of the stream's control socket or in its group.

      Examples:
        nightjar ctl status
        nightjar ctl status --watch
        nightjar ctl rotate 90 --camera nursery
        nightjar ctl add rtp://192.168.1.20:5004 --sdp camera.sdp
        nightjar ctl controls set brightness=10
        nightjar ctl bitrate 2.5M --socket /run/nightjar/control.sock

      With --json an answer is JSON on standard output, and a failure is JSON on standard error: {"error": …, \
      "failure": …}, as docs/openapi.json describes it.

      Exit codes are those of sysexits.h: 64 wrong value, 66 no such camera, destination or control, 69 no such stream, 77 no \
      permission.
      """,
    subcommands: [
      StatusCommand.self, ViewersCommand.self, RotateCommand.self, KeyFrameCommand.self, BitrateCommand.self,
      AddCommand.self, RemoveCommand.self, ControlsCommand.self, ReloadCommand.self,
    ])

  // The subcommands have it too, for their help; ArgumentParser gives them what was parsed here, wherever it stood.
  @OptionGroup var stream: Stream

  /// Which stream, and how its answer is shown.
  struct Stream: ParsableArguments {
    @Option(
      help: ArgumentHelp(
        "The stream's control socket; without it the usual one.",
        discussion: "That is nightjar/control.sock under $XDG_RUNTIME_DIR, else under /run.", valueName: "path"))
    var socket: String?

    @Option(
      help: ArgumentHelp("Which camera, where there are several.", valueName: "name"),
      completion: NameCompletion.cameras)
    var camera: String?

    @Flag(help: "Write the answer as JSON, and a failure too.")
    var json = false

    mutating func validate() throws {
      if camera == "" { throw ValidationError("--camera: name one, as nightjar ctl status does") }
    }

    /// A client of it.
    func client(patience: MediaTime = MediaTime(seconds: 10)) -> ControlClient {
      ControlClient(path: socket ?? ControlSocket.clientPath, camera: camera, patience: patience)
    }

    /// Asks it; a failure becomes one line and an exit code.
    func ask(_ body: (ControlClient) throws -> Void) throws {
      // A reader that has seen enough would end the program with a signal, and without a word otherwise.
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        try body(client())
      }
    }

    /// Asks it, and writes its answer, in words unless JSON is wanted.
    func tell<Value>(
      _ request: (ControlClient) throws -> ControlClient.Answer<Value>, _ words: (Value) -> String
    ) throws {
      try ask { client in
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
      commandName: "rotate", abstract: "Turn the picture clockwise: 0, 90, 180 or 270 degrees from the camera's own.",
      aliases: ["orientation"])

    @Argument(
      help: "0, 90, 180 or 270.", completion: .list(["0", "90", "180", "270"]),
      transform: { text in
        guard let degrees = OptionValues.number(text[...]), let rotation = try? Rotation(degrees: degrees) else {
          throw ValidationError("choose 0, 90, 180 or 270")
        }
        return rotation
      })
    var degrees: Rotation

    @Flag(
      name: [.customLong("mirror"), .customLong("mirrored")],
      help: "Mirror it left to right too, as --mirror of nightjar stream does.")
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
      commandName: "keyframe", abstract: "Ask for a key frame, from which a viewer can begin.")

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
      help: "Bits a second, as in 2.5M or 800k.",
      transform: { text in
        let limits = EncoderConfiguration.bitrateLimits
        guard let bitrate = try? OptionValues.bitrate(text).value else {
          throw ValidationError(
            "choose bits a second from \(limits.lowerBound / 1000)k to \(limits.upperBound / 1_000_000)M, as in 2.5M")
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
      abstract: "Have the configuration file read again, and what it says now done.",
      discussion: """
        Users, tokens and certificates are read again, too. Where a file is wrong nothing changes, and the answer says why. \
        Where it was taken the exit code is 0; what could not be done of it is a warning.
        """)

    @OptionGroup var stream: Stream

    func validate() throws {
      guard stream.camera == nil else { throw ValidationError("--camera: a reload is of all cameras; leave it out") }
    }

    func run() throws {
      try stream.tell {
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
