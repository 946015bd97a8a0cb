public import ArgumentParser
public import Capture
import Control
import Encoding
import Glibc
import Media
import Streaming

/// `nightjar stream`.
struct StreamCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stream",
    abstract: "Stream a camera, the built-in synthetic camera, or a file.",
    discussion: """
      Without --to and --rtsp it streams to this machine: H.264 to port 5004 and MPEG-TS to port 5006, and prints the \
      commands that show the picture. Ctrl-C ends it with a summary.

      Each option may stand in a file too (--config), where several cameras can be told apart, and in the environment: \
      NIGHTJAR_KEYFRAME_INTERVAL=1s is --keyframe-interval 1s, lists are separated by spaces, and flags are true or \
      false. The command line goes before the environment, and the environment before the file.

      Examples:
        nightjar stream --to rtp://192.168.1.20:5004 --sdp camera.sdp
        nightjar stream --source /dev/video2 --size 1920x1080 --fps 30 --bitrate 4M
        nightjar stream --to 'rtp://239.1.2.3:5004?payload=mp2t&ttl=4'
        nightjar stream --to srtp://192.168.1.20:5004 --sdp camera.sdp
        nightjar stream --source file:clip.y4m --rate max --loop 1
        nightjar user add alice; nightjar stream --rtsp

      Exit codes are those of sysexits.h: 64 wrong options, 65 a broken configuration or clip, 66 no such camera or \
      file, 68 no such host, 69 the camera or encoder is gone (with --on-loss exit), 73 a file cannot be made, 74 nor \
      written, 75 the camera or a port is taken, 77 no permission.
      """)

  @Option(
    help: ArgumentHelp(
      "A configuration file: options as nightjar config example shows them; or none.",
      discussion: """
        Without it /etc/nightjar/nightjar.toml for root, else nightjar/nightjar.toml under $XDG_CONFIG_HOME or \
        ~/.config, where it is there. nightjar config check finds mistakes in it.
        """, valueName: "file"))
  var config: String?

  @Option(
    help: ArgumentHelp(
      "What the camera is called, in its URL too: 1 to 64 letters, digits, '-', '_' and '.'.", valueName: "name"),
    transform: OptionValues.cameraName)
  var name = "camera"

  @Option(
    help: ArgumentHelp(
      "Where pictures come from: auto, test, /dev/videoN, /dev/v4l/by-id/… or file:CLIP.y4m.",
      discussion: "auto is the first camera, or the built-in synthetic camera (test) where there is none.",
      valueName: "source"),
    transform: SourceSelection.init(text:))
  var source = SourceSelection.auto

  @Option(
    help: ArgumentHelp(
      "Picture size; without it 1280x720, or the nearest that the camera has.", valueName: "WxH"),
    transform: OptionValues.size)
  var size: PictureSize?

  @Option(
    help: ArgumentHelp(
      "Frames a second, as in 30 or 29.97; without it 30, or the nearest that the camera has.", valueName: "rate"),
    transform: OptionValues.frameRate)
  var fps: FrameRate?

  @Option(
    help: ArgumentHelp(
      "The camera's pixel format: auto, nv12, yuyv, uyvy, nv21, yu12, mjpeg, … (see nightjar devices).",
      discussion: "auto takes the cheapest that reaches size and rate.", valueName: "format"),
    transform: OptionValues.pixelFormat)
  var format = Choice<PixelFormat>.auto

  @OptionGroup(title: "Options for cameras that come and go")
  var survival: SurvivalOptions

  @OptionGroup(title: "Options for the camera's own settings")
  var settings: CameraControlOptions

  @OptionGroup(title: "Orientation options")
  var orientation: OrientationOptions

  @Option(
    help: ArgumentHelp(
      "Where nightjar ctl reaches this stream: a socket's path, or none.",
      discussion: """
        Without it \(ControlSocket.defaultPath), if no other stream listens there; under $XDG_RUNTIME_DIR for a user who \
        has one, else /run/nightjar.
        """, valueName: "path"))
  var control: String?

  @OptionGroup(title: "Encoder options")
  var encoding: EncoderOptions

  @OptionGroup(title: "Options for a machine at its limits")
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

  @Option(help: ArgumentHelp("For file: only: at the clip's own pace (realtime) or as fast as it goes (max)."))
  var rate: Y4MFile.Pacing?

  @Option(help: ArgumentHelp("For file: only: how often the clip is played; without it for ever.", valueName: "times"))
  var loop: Int?

  @Option(
    name: .customLong("to"),
    help: ArgumentHelp(
      "A destination, rtp://HOST:PORT, or srtp://HOST:PORT for encrypted packets; may be given several times.",
      discussion: """
        Behind it, as in ?payload=mp2t&ttl=4: payload is h264 (the usual one) or mp2t (MPEG-TS), \
        mtu the largest RTP packet in bytes (1200), ttl how many routers a packet may pass. RTCP goes to the next \
        port, or with rtcp=mux to the same one. srtp:// has suite=AES_CM_128_HMAC_SHA1_80 (the default), \
        AEAD_AES_128_GCM or AEAD_AES_256_GCM, and key-file=FILE; without a file each start makes a new key. Players \
        read the key from the session description. A multicast group may have interface=NAME, loop=1 for receivers on \
        this machine, ssm=1 for receivers that join it for this sender alone, and sap=1 to announce it (not srtp://). \
        A host without an address, or a group without its route or interface, is tried again after 1, 2, 4, … 60 s \
        while the stream goes on to others, to RTSP and to HTTP. With no other, it ends the start, but for a service and \
        with --wait.
        """,
      valueName: "url"),
    transform: OptionValues.destination)
  var destinations: [StreamDestination] = []

  @Option(
    name: .customLong("pacing"),
    help: ArgumentHelp(
      "Spread the packets of a large frame over this part of the frame interval: 0 to 1, 0 sends them at once.",
      discussion: """
        Without it 0.25, and 0 with --preset ultra-low-latency: it keeps bursts from the queues on the way and costs \
        some milliseconds, and slices leave with their picture. Large is what is more than twice an average frame. The first frame after a turn or a \
        fail-over is never spread.
        """, valueName: "part"),
    transform: OptionValues.pacing)
  var pacingPart: Double?

  @Option(
    help: ArgumentHelp(
      "Write the session description that players of H.264 need to this file.",
      discussion: "Of several H.264 destinations the first one's is FILE.sdp, the second one's FILE-2.sdp, and so on.",
      valueName: "file"))
  var sdp: String?

  @Option(
    help: ArgumentHelp("Stop after this time, as in 10s or 5m.", valueName: "time"),
    transform: { try OptionValues.duration($0, within: 0.1...31_536_000, example: "10s or 5m") })
  var duration: MediaTime?

  @Option(
    name: .customLong("stats-json"),
    help: ArgumentHelp("Write the final figures to this file; - is standard output.", valueName: "file"))
  var statisticsPath: String?

  /// The part of a frame interval over which a large frame is spread.
  var pacing: Double {
    if let pacingPart { return pacingPart }
    return encoding.preset == .ultraLowLatency || rate == .maximum ? 0 : 0.25
  }

  /// The most bytes of a slice that goes as one packet to all.
  var payloadLimit: Int { StreamDestination.payloadLimit(of: destinations) }

  /// Whether the stream does with less where it has to. A file at full speed takes all that there is.
  var adapts: Bool { rate != .maximum && (adaptation.followsLoad || adaptation.thermal != .off) }

  mutating func validate() throws {
    try announcing.validate(with: serving)
    try api.validate(with: serving)
    try http.validate(with: serving, api)
    if !source.isFile {
      guard rate == nil else { throw ValidationError("--rate is for --source file: only") }
      guard loop == nil else { throw ValidationError("--loop is for --source file: only") }
    } else {
      guard size == nil else { throw ValidationError("--size: a file has the size that it has") }
      guard fps == nil else { throw ValidationError("--fps: a file has the rate that it has") }
    }
    if !source.isCamera, survival.areGiven { throw ValidationError("--wait and --on-loss are for cameras only") }
    if !source.isCamera, settings.areGiven {
      throw ValidationError("--controls, --sensor-lock, --power-line and --night are for cameras only")
    }
    if !source.isCamera, format.value != nil { throw ValidationError("--format is for cameras only") }
    guard sdp != "" else { throw ValidationError("--sdp: name a file") }
    guard statisticsPath != "" else { throw ValidationError("--stats-json: name a file, or - for standard output") }
    if let loop, loop < 1 { throw ValidationError("--loop: choose 1 or more") }
    for (index, destination) in destinations.enumerated() {
      for other in destinations[..<index] where other.host == destination.host && other.port == destination.port {
        throw ValidationError("--to: \(destination.host) port \(destination.port) is given twice")
      }
    }
  }

  /// Runs until a signal, or until there is nothing more to stream.
  ///
  /// - Parameter arguments: what follows `nightjar stream`; what else there is to know is in the environment and a file.
  static func run(_ arguments: [String]) throws {
    let started = MediaTime.now()
    try reportingFailures {
      try StreamSession(started: started) {
        try BoxConfiguration.load(arguments: arguments, environment: ProcessEnvironment.variables)
      }.run()
    }
  }

  /// Whether it is asked what it can do, and not to stream.
  static func isQuestion(_ arguments: [String]) -> Bool {
    let questions: Set = ["--help", "-help", "-h", "--help-hidden", "--version", "--experimental-dump-help"]
    return arguments.prefix { $0 != "--" }.contains { questions.contains($0) }
  }
}

extension Y4MFile.Pacing: ExpressibleByArgument {
  /// `realtime` or `max`.
  public init?(argument: String) {
    switch argument {
    case "realtime": self = .realtime
    case "max": self = .maximum
    default: return nil
    }
  }
}
