import Appliance
import ArgumentParser
import Platform
import Serving

/// `nightjar stream`.
struct StreamCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stream",
    abstract: "Stream a camera, the built-in synthetic camera, or a file.",
    discussion: """
      Without --to and --rtsp it streams to this host: H.264 to port 5004 and MPEG-TS to port 5006. It prints the \
      commands that show the picture. Ctrl-C ends it with a summary.

      Each option may also stand in a file (--config), which may have several cameras, and in the environment: \
      NIGHTJAR_KEYFRAME_INTERVAL=1s is --keyframe-interval 1s. There, spaces separate the items of a list, and flags \
      are true or false. The command line overrides the environment, and the environment overrides the file.

      Examples:
        nightjar stream --to rtp://192.168.1.20:5004 --sdp camera.sdp
        nightjar stream --source /dev/video2 --size 1920x1080 --fps 30 --bitrate 4M
        nightjar stream --to 'rtp://239.1.2.3:5004?payload=mp2t&ttl=4'
        nightjar stream --to srtp://192.168.1.20:5004 --sdp camera.sdp
        nightjar stream --source file:clip.y4m --rate max --loop 1
        nightjar user add alice; nightjar stream --rtsp

      Exit codes are those of sysexits.h: 64 wrong options, 65 broken configuration or clip, 66 no such camera or \
      file, 68 no such host, 69 lost camera (with --on-loss exit) or encoder, 73 a file cannot be created, 74 a file \
      cannot be written, 75 the camera or a port is in use, 77 no permission.
      """)

  @Option(
    help: ArgumentHelp(
      "A configuration file, as nightjar config example prints it; or none.",
      discussion: """
        The default, if it exists, is /etc/nightjar/nightjar.toml for root, else nightjar/nightjar.toml in \
        $XDG_CONFIG_HOME or ~/.config. nightjar config check finds mistakes in the file.
        """, valueName: "file"))
  var config: String?

  @Option(
    help: ArgumentHelp(
      "The camera's name, also in its URL: 1 to 64 letters, digits, '-', '_' and '.'.", valueName: "name"))
  var name: String?

  @Option(
    help: ArgumentHelp(
      "The source of the pictures: auto, test, /dev/videoN, /dev/v4l/by-id/… or file:CLIP.y4m.",
      discussion: "auto is the first camera, or the built-in synthetic camera (test) if there is none.",
      valueName: "source"))
  var source: String?

  @Option(
    help: ArgumentHelp(
      "The picture size; the default is 1280x720, or the camera's nearest.", valueName: "WxH"))
  var size: String?

  @Option(
    help: ArgumentHelp(
      "Frames per second, as in 30 or 29.97; the default is 30, or the camera's nearest.", valueName: "rate"))
  var fps: String?

  @Option(
    help: ArgumentHelp(
      "The camera's pixel format: auto, nv12, yuyv, uyvy, nv21, yu12, mjpeg, … (see nightjar devices).",
      discussion: """
        auto takes the cheapest format that reaches size and rate. h264 is --encoder camera. With --encoder camera, this \
        is the format of pictures that are encoded here.
        """, valueName: "format"))
  var format: String?

  @OptionGroup(title: "Options for lost and missing cameras")
  var survival: SurvivalOptions

  @OptionGroup(title: "Camera control options")
  var settings: CameraControlOptions

  @OptionGroup(title: "Sound options")
  var sound: SoundOptions

  @OptionGroup(title: "Alert options")
  var detection: DetectionOptions

  @OptionGroup(title: "Orientation options")
  var orientation: OrientationOptions

  @Option(
    help: ArgumentHelp(
      "The path of the control socket for nightjar ctl, or none.",
      discussion: """
        The default is \(ControlSocket.defaultPath), if no other stream listens there: in $XDG_RUNTIME_DIR for a user \
        that has one, else in /run/nightjar.
        """, valueName: "path"))
  var control: String?

  @OptionGroup(title: "Encoder options")
  var encoding: EncoderOptions

  @OptionGroup(title: "Options for a hot or overloaded host")
  var adaptation: AdaptationOptions

  @OptionGroup(title: "Scheduling options")
  var scheduling: SchedulingOptions

  @OptionGroup(title: "Trace options")
  var tracing: TraceOptions

  @OptionGroup(title: "RTSP options")
  var serving: RTSPOptions

  @OptionGroup(title: "Discovery options")
  var announcing: AnnouncementOptions

  @OptionGroup(title: "Control API options")
  var api: APIOptions

  @OptionGroup(title: "HTTP options")
  var http: HTTPOptions

  @OptionGroup(title: "Event options")
  var events: EventOptions

  @Option(help: ArgumentHelp("For file: only: at the clip's own rate (realtime) or as fast as possible (max)."))
  var rate: String?

  @Option(
    help: ArgumentHelp(
      "For file: only: the number of times to play the clip; the default is for ever.", valueName: "times"))
  var loop: String?

  @Option(
    name: .customLong("to"),
    help: ArgumentHelp(
      "A destination: rtp://HOST:PORT, or srtp://HOST:PORT for encrypted packets; repeat for more.",
      discussion: """
        Parameters follow the URL, as in ?payload=mp2t&ttl=4. payload is that of the codec (h264 or hevc), or mp2t \
        (MPEG-TS). mtu is the largest RTP packet in bytes (1200). ttl is the number of routers that a packet may pass. \
        RTCP goes to the next port, or with rtcp=mux to the same port. mp2t carries picture and sound together. With \
        h264 and hevc, the sound goes to the port plus 4, or with audio=PORT to that port; audio=none sends no sound. \
        srtp:// has \
        suite=AES_CM_128_HMAC_SHA1_80 (the default), AEAD_AES_128_GCM or AEAD_AES_256_GCM, and key-file=FILE. \
        Without a key file, each start makes a new key. Players read the key from the session description. A multicast \
        group may have interface=NAME, loop=1 for receivers on this host, ssm=1 for receivers that join the group for \
        this sender alone, and sap=1 to announce it (not srtp://). If a host has no address, or a group no route or \
        interface, nightjar tries again after 1, 2, 4, … 60 s. Meanwhile the stream continues to other destinations, \
        to RTSP and to HTTP. If there are none, the start fails, except for a service and with --wait.
        """,
      valueName: "url"))
  var destinations: [String] = []

  @Option(
    name: .customLong("pacing"),
    help: ArgumentHelp(
      "Spread the packets of a large frame over this part of the frame interval: 0 to 1; 0 sends them at once.",
      discussion: """
        The default is 0.25, and 0 with --preset ultra-low-latency. Spreading avoids bursts in the network's queues, \
        costs some milliseconds, and makes slices leave with their picture. A frame is large above twice the average. \
        The first frame after a rotation or a fail-over is never spread.
        """, valueName: "part"))
  var pacingPart: String?

  @Option(
    help: ArgumentHelp(
      "Write the session description, which players of H.264 and HEVC need, to this file.",
      discussion: "With several such destinations, the first has FILE.sdp, the second FILE-2.sdp, and so on.",
      valueName: "file"))
  var sdp: String?

  @Option(
    help: ArgumentHelp("Stop after this time, as in 10s or 5m.", valueName: "time"))
  var duration: String?

  @Option(
    name: .customLong("stats-json"),
    help: ArgumentHelp("Write the final figures as JSON to this file; - is standard output.", valueName: "file"))
  var statisticsPath: String?

  /// Runs until a signal, or until there is nothing more to stream.
  ///
  /// - Parameter arguments: the arguments after `nightjar stream`. The other options come from the environment and a
  ///   file.
  static func run(_ arguments: [String]) throws {
    let started = Instant.now()
    try reportingFailures {
      do {
        try StreamSession(started: started) {
          try configuration(of: arguments)
        }.run()
      } catch let error as CommandLineError {
        writeError(
          """
          Error: \(error)
          Usage: nightjar stream <options>
            See 'nightjar stream --help' for more information.

          """)
        throw ExitCode(error.kind.exitCode)
      }
    }
  }

  /// Reads the configuration: arguments, environment and file.
  static func configuration(of arguments: [String]) throws -> ApplianceConfiguration {
    try ApplianceConfiguration.load(
      arguments: arguments, environment: ProcessEnvironment.variables, checkSyntax: checkSyntax)
  }

  /// Checks that all words are options, and have values where they need them. The configuration reads the values.
  ///
  /// - Throws: the errors of ArgumentParser.
  static func checkSyntax(_ arguments: [String]) throws {
    let command = try Nightjar.parseAsRoot([configuration.commandName ?? "stream"] + arguments)
    guard command is StreamCommand else { throw CleanExit.helpRequest(StreamCommand.self) }
  }

  /// Returns `true` if the arguments request help or the version, and no stream.
  static func isQuestion(_ arguments: [String]) -> Bool {
    let questions: Set = ["--help", "-help", "-h", "--help-hidden", "--version", "--experimental-dump-help"]
    return arguments.prefix { $0 != "--" }.contains { questions.contains($0) }
  }
}
