import Alerts
import Glibc
import Media
import Platform
import Serving
import Streaming

/// Serves the control API of a target that only tells what it is asked:
/// `ControlServerTool PATH [REQUEST-SECONDS [CONNECTIONS [CAMERA…]]]`, until SIGTERM.
///
/// With the directory `CONTROL_HTTPS` it serves HTTPS too, on a port that it tells, with a certificate kept there and
/// to those in its files `users` and `tokens`, which it reads again at SIGHUP. At the end it tells its events.
@main
struct ControlServerTool {
  static func main() {
    // Blocked before any thread begins, so that only `sigwait` takes it.
    var signals = sigset_t()
    sigemptyset(&signals)
    for signal in [SIGTERM, SIGHUP] { sigaddset(&signals, signal) }
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    let arguments = CommandLine.arguments
    var limits = HTTPServer.Limits()
    var networkLimits = HTTPServer.Limits.network
    if arguments.count > 2, let seconds = Double(arguments[2]) {
      limits.requestTime = Duration(seconds: seconds)
      networkLimits.requestTime = limits.requestTime
    }
    if arguments.count > 3, let count = Int(arguments[3]) {
      limits.connections = count
      networkLimits.connectionsPerAddress = count
    }
    let cameras = arguments.count > 4 ? Array(arguments[4...]) : ["camera"]
    do {
      let path = arguments.count > 1 && arguments[1] != "default" ? arguments[1] : ControlSocket.defaultPath
      let box = Box(
        cameras: cameras, phones: try? Phones(path: "\(path).phones"),
        push: try? PushSubscriptions(directory: "\(path).push"))
      let server = try HTTPServer(path: path, limits: limits, target: box)
      let folder = getenv("CONTROL_HTTPS").map { String(cString: $0) }
      let network = try folder.map { try serveNetwork($0, networkLimits, box) }
      say("listening")
      while true {
        var number: CInt = 0
        sigwait(&signals, &number)
        guard number == SIGHUP, let folder else { break }
        network?.set(users: try users(folder), tokens: try tokens(folder))
        say("read again")
      }
      server.stop()
      network?.stop()
      // Those who ask by the socket alone count lines.
      for event in network.map({ $0.events.take() + server.events.take() }) ?? [] {
        say("\(event.isWarning ? "warning" : "note"): \(event)")
      }
      say("stopped")
    } catch let error as any Failure {
      say("\(error.kind): \(error)")
      exit(1)
    } catch {
      say("\(error)")
      exit(1)
    }
  }

  private static func serveNetwork(
    _ folder: String, _ limits: HTTPServer.Limits, _ target: any ControlTarget
  ) throws -> HTTPServer {
    let server = try HTTPServer(
      HTTPServer.Configuration(
        listeners: [TCPListener(address: "127.0.0.1", port: 0, isEncrypted: true)],
        identity: SelfSignedIdentity(directory: folder, at: Int64(time(nil))).identity, users: try users(folder),
        tokens: try tokens(folder), phones: target.phones, limits: limits), target: target)
    say("https \(server.listeners[0].port)")
    return server
  }

  private static func users(_ folder: String) throws -> UsersFile? {
    access("\(folder)/users", F_OK) == 0 ? try UsersFile(contentsOf: "\(folder)/users") : nil
  }

  private static func tokens(_ folder: String) throws -> TokensFile? {
    access("\(folder)/tokens", F_OK) == 0 ? try TokensFile(contentsOf: "\(folder)/tokens") : nil
  }

  /// A line on standard output, at once.
  static func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = write(STDOUT_FILENO, bytes, bytes.count)
  }
}

/// Cameras that write down what they are asked.
private struct Box: ControlTarget {
  let cameras: [String]
  let phones: Phones?
  let push: PushSubscriptions?
  var authority: [UInt8]? { nil }
  var pageURL: String? { "https://192.0.2.7:8443" }
  let changes = ChangeSignal()
  let alerts: AlertHistory = {
    let history = AlertHistory()
    let condition = AlertCondition(
      .crying, camera: "camera", since: .now(), confidence: 0.83, text: "probably crying: 3 bursts")
    // A JPEG of the smallest kind: its two markers.
    history.record([.begin(condition, suppressed: 0)], isQuiet: false) { _ in [0xff, 0xd8, 0xff, 0xd9] }
    history.pictures.store([0xff, 0xd8, 0xff, 0xd9], .after, of: 1)
    return history
  }()

  func camera(_ name: String) -> (any CameraTarget)? {
    // With one camera its lines are as short as its routes.
    cameras.contains(name) ? Witness(name: name, prefix: cameras.count > 1 ? "\(name): " : "") : nil
  }

  func status() -> ApplianceStatus {
    ApplianceStatus(
      uptimeSeconds: 3723.5, reloads: 2, listeners: [.init(scheme: "rtsp", address: "127.0.0.1", port: 8554)],
      announcements: [
        .init(
          camera: "camera", name: "camera on box", type: "_rtsp._tcp", port: 8554, path: "/camera", state: .announced),
        .init(
          camera: "camera", name: "camera on box", type: "_rtsps._tcp", port: 8322, path: "/camera", state: .waiting,
          reason: "Avahi does not run"),
      ],
      cameras: cameras.compactMap { camera($0)?.status() })
  }

  let metrics = MetricsPage { text in
    text.add(.buildInfo, ["a\\b\"c\nd"], 1)
    text.add(.healthy, ["camera"], Double.nan)
    text.add(.latency, ["camera"], buckets: [(0.005, 3), (1, 4)], count: 6, sum: 2.25)
    text.add(.reloads, [], 2)
  }

  func health() -> HealthStatus {
    HealthStatus(
      cameras: cameras.map { .init(name: $0, state: .init(rawValue: $0) ?? .streaming, reason: "it is \($0)") })
  }

  func reload() async throws -> ReloadAnswer {
    if cameras.contains("unreadable") {
      throw Witness.Unable(description: "/etc/nightjar/nightjar.toml:3: bitrat: there is no such key", kind: .data)
    }
    ControlServerTool.say("reload")
    return ReloadAnswer(
      cameras: cameras.map { .init(name: $0, outcome: .changed, changes: ["bitrate: 2.5M"]) },
      server: ["users: 3 instead of 2"], warnings: ["the port stays"])
  }
}

/// Writes down what it is asked. It can do anything but 270 degrees and a million bits a second. The camera `silent`
/// has no sound, `loud` is loud and muted, and `deaf` lacks its microphone. The camera `shared` has a destination and
/// viewers.
private struct Witness: CameraTarget {
  let name: String
  let prefix: String

  struct Unable: Failure {
    let description: String
    let kind: FailureKind
  }

  func watch(
    _ offer: String, _ peer: ViewerPeer, isAllowed: @escaping @Sendable () -> Bool
  ) throws -> PeerServer.Answer {
    throw PeerServerError.notServed
  }

  func isWatching(_ session: String) -> Bool { false }

  func endWatching(_ session: String) -> Bool { false }

  func viewers() -> [StreamViewer] {
    status().destinations.map {
      StreamViewer(
        camera: name, isGuest: $0.url.hasPrefix("rtsp "), peer: ViewerPeer(.udp, address: "127.0.0.1", port: 5004),
        delivery: $0)
    }
  }

  func status() -> StreamStatus {
    StreamStatus(
      name: name, health: .init(name: name, state: .streaming),
      source: .init(name: "test", width: 1280, height: 720, fps: 30000.0 / 1001),
      sound: try? sound(),
      orientation: .init(degrees: 90, mirrored: true, width: 720, height: 1280, switches: 3),
      encoder: .init(name: "x264", codec: "h264", bitrate: 2_500_000, failovers: 1, busySeconds: 2.5),
      frames: .init(
        captured: 100, encoded: 98, keyFrames: 4, thinned: 1, unwatched: 6, sent: 97,
        droppedByCause: ["encoder_late": 2, "network": 1]),
      adaptation: .init(
        thermalState: "serious", temperature: 81.5, zone: "cpu-thermal", load: 0.25, maximumSize: nil, maximumFps: 25,
        x264Preset: nil, bitrateShare: 0.7, changes: 2),
      quality: .init(
        x264Preset: "veryfast", reason: "room", encodeP99Ms: 9.5, encodeLimitMs: 16.7, processors: 0.42,
        processorBudget: 2, threads: 2, changes: 1),
      threads: [
        .init(name: "nj-capture", policy: "rr", priority: 5, timerSlackNs: 1, cpus: "0-1"),
        .init(name: "nj-encode", policy: "other", priority: 0, timerSlackNs: 1, cpus: "0-1"),
        .init(name: "nj-send", policy: "rr", priority: 5, timerSlackNs: 1, cpus: "0-1"),
      ],
      destinations: name == "shared"
        ? [
          .init(
            url: "rtp://127.0.0.1:5004", kind: "destination", tracks: ["picture", "sound"], packets: 7, bytes: 840,
            packetsLost: 0),
          .init(
            url: "rtsp tcp 192.0.2.1:50000", kind: "rtsp", tracks: ["picture", "sound"], packets: 7, bytes: 840,
            packetsLost: 0),
          .init(
            url: "rtsp tcp 192.0.2.2:50000", kind: "rtsp", tracks: ["sound"], packets: 7, bytes: 840, packetsLost: 0),
          .init(
            url: "rtsp tcp 192.0.2.3:50000", kind: "rtsp", tracks: ["picture"], packets: 7, bytes: 840, packetsLost: 0),
        ] : [.init(url: "rtp://127.0.0.1:5004", packets: 700, bytes: 840_000, packetsLost: 5)],
      missingDestinations: [
        .init(url: "rtp://late.example:5004", reason: "cannot find the host 'late.example'; nightjar tries again")
      ],
      uptimeSeconds: 3723.5)
  }

  func noteSnapshot(_ peer: ViewerPeer, bytes: Int) -> Bool { false }

  var pictureOrigin: ServedPicture.Origin { ServedPicture.Origin(rawValue: name) ?? .live }

  func look(_ peer: ViewerPeer, isSnapshot: Bool) throws -> any LiveSequence<ServedPicture> {
    ControlServerTool.say(prefix + "look")
    return NoPictures(of: name)
  }

  func listen(_ peer: ViewerPeer) throws -> any LiveSequence<MP3Frames> {
    if name == "silent" { throw ControlFailure.noSound(name) }
    ControlServerTool.say(prefix + "listen")
    return NoSound()
  }

  func sessionDescription(ofDestination number: Int?) -> DescribedDestination? {
    number ?? 1 == 1 ? DescribedDestination(text: "v=0\r\n", hasKey: false) : nil
  }

  func rotate(to orientation: Orientation) throws {
    if orientation.rotation == .threeQuarters {
      throw Unable(description: "the camera is gone: plug it in", kind: .unavailable)
    }
    ControlServerTool.say(prefix + "rotate \(orientation)")
  }

  func requestKeyFrame() { ControlServerTool.say(prefix + "key frame") }

  func changeBitrate(_ bitsPerSecond: Int) throws {
    if bitsPerSecond == 1_000_000 { throw Unable(description: "a broken heart", kind: .software) }
    ControlServerTool.say(prefix + "bitrate \(bitsPerSecond)")
  }

  func addDestination(_ url: String) async throws -> String {
    if url.contains("taken") { throw Unable(description: "\(url) is taken", kind: .usage) }
    ControlServerTool.say(prefix + "add \(url)")
    return "v=0\r\n"
  }

  func sound() throws -> StreamStatus.Sound {
    if name == "silent" { throw Unable(description: "camera silent has no sound", kind: .unavailable) }
    let isLoud = name == "loud"
    return StreamStatus.Sound(
      present: name != "deaf", name: "C920", rmsDbfs: isLoud ? -6 : -42.5, peakDbfs: isLoud ? 0 : -20,
      digitalSilenceSeconds: 75, muted: isLoud, gainDb: 3, clipped: 7, silenceSeconds: 0.5, driftPpm: -12.5,
      periodMs: 10, timestamps: "driver", overruns: 1, losses: 0, encoded: 500)
  }

  func changeSound(muted: Bool?, gain: Double?) throws -> StreamStatus.Sound {
    _ = try sound()
    ControlServerTool.say(prefix + "sound" + (muted.map { " muted \($0)" } ?? "") + (gain.map { " gain \($0)" } ?? ""))
    return try sound()
  }

  func controls() async throws -> CameraControlsAnswer {
    CameraControlsAnswer(
      sensorLock: name == "locked" ? "locked" : "off", night: nil,
      controls: [
        .init(
          name: "brightness", title: "Brightness", type: "integer", value: 10, default: 0, minimum: -64, maximum: 64,
          step: 1, menu: nil, flags: [], setBy: "ctl", inactivity: nil),
        .init(
          name: "auto_exposure", title: "Auto Exposure", type: "menu", value: 3, default: 3, minimum: 0, maximum: 3,
          step: 1, menu: [.init(value: 1, text: "Manual Mode"), .init(value: 3, text: "Aperture Priority Mode")],
          flags: [], setBy: nil, inactivity: nil),
      ])
  }

  func changeControls(_ values: [(name: String, value: String?)]) async throws -> CameraControlsAnswer {
    for (name, value) in values {
      if name == "sharpness" { throw Unable(description: "the camera has no control 'sharpness'", kind: .noInput) }
      ControlServerTool.say(prefix + "control \(name) \(value ?? "as usual")")
    }
    return try await controls()
  }

  func lockSensor(_ isLocked: Bool) async throws -> CameraControlsAnswer {
    ControlServerTool.say(prefix + (isLocked ? "lock" : "unlock"))
    return try await controls()
  }

  func removeDestination(_ url: String) throws {
    if url.contains("unknown") { throw Unable(description: "there is no \(url)", kind: .noInput) }
    ControlServerTool.say(prefix + "remove \(url)")
  }
}

/// Bytes that look like JPEGs to those who look at their ends only, every tenth of a second; of the camera `large` six
/// million bytes each, of the camera `broken` none, and of one that is called as an origin pictures of that.
private final class NoPictures: LiveSequence {
  private let camera: String

  init(of camera: String) { self.camera = camera }

  func next(until deadline: Instant) async throws -> ServedPicture {
    try await Task.sleep(nanoseconds: 100_000_000)
    if camera == "broken" { throw Witness.Unable(description: "the picture is damaged", kind: .data) }
    return ServedPicture(
      [0xff, 0xd8] + [UInt8](repeating: 0xff, count: camera == "large" ? 6_000_000 : 1) + [0xd9],
      ServedPicture.Origin(rawValue: camera) ?? .live)
  }

  func noteSent(_ units: Int, bytes: Int) { ControlServerTool.say("sent \(bytes)") }
}

/// A sound of which each part is one byte of nothing, every tenth of a second.
private final class NoSound: LiveSequence {
  func next(until deadline: Instant) async throws -> MP3Frames {
    try await Task.sleep(nanoseconds: 100_000_000)
    return MP3Frames(bytes: [0xff], frames: 1)
  }

  func noteSent(_ units: Int, bytes: Int) { ControlServerTool.say("sent sound") }
}
