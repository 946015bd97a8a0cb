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
        nightjar ctl rotate 90
        nightjar ctl add rtp://192.168.1.20:5004 --sdp camera.sdp
        nightjar ctl bitrate 2.5M --socket /run/nightjar/control.sock

      Exit codes are those of sysexits.h: 64 wrong value, 69 no such stream, 77 no permission.
      """,
    subcommands: [
      StatusCommand.self, RotateCommand.self, KeyFrameCommand.self, BitrateCommand.self, AddCommand.self,
      RemoveCommand.self,
    ])

  // The subcommands have it too, for their help; ArgumentParser gives them what was parsed here, wherever it stood.
  @OptionGroup var stream: Stream

  /// Which stream.
  struct Stream: ParsableArguments {
    @Option(
      help: ArgumentHelp(
        "The stream's control socket; without it the usual one.",
        discussion: "That is nightjar/control.sock under $XDG_RUNTIME_DIR, else under /run.", valueName: "path"))
    var socket: String?

    /// Asks it; a failure becomes one line and an exit code.
    func ask(_ body: (ControlClient) throws -> Void) throws {
      // A reader that has seen enough would end the program with a signal, and without a word otherwise.
      signal(SIGPIPE, SIG_IGN)
      try reportingFailures {
        try body(socket.map { ControlClient(path: $0) } ?? ControlClient())
      }
    }
  }

  struct RotateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "rotate", abstract: "Turn the picture clockwise: 0, 90, 180 or 270 degrees from the camera's own.")

    @Argument(
      help: "0, 90, 180 or 270.",
      transform: { text in
        guard let degrees = OptionValues.number(text[...]), let rotation = try? Rotation(degrees: degrees) else {
          throw ValidationError("choose 0, 90, 180 or 270")
        }
        return rotation
      })
    var degrees: Rotation

    @Flag(help: "Mirror it left to right too.")
    var mirrored = false

    @OptionGroup var stream: Stream

    func run() throws {
      try stream.ask { client in
        let taken = try client.rotate(to: Orientation(degrees, mirrored: mirrored))
        try writeOutput("orientation: \(taken.rotation) degrees\(taken.isMirrored ? ", mirrored" : "")\n")
      }
    }
  }

  struct KeyFrameCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "keyframe", abstract: "Ask for a key frame, from which a viewer can begin.")

    @OptionGroup var stream: Stream

    func run() throws {
      try stream.ask { client in
        try client.requestKeyFrame()
        try writeOutput("key frame requested\n")
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
      try stream.ask { client in
        let taken = try client.changeBitrate(bitsPerSecond)
        try writeOutput("bitrate: \(Terminal.bitrate(Double(taken)))\n")
      }
    }
  }
}
