public import ArgumentParser
import Decoding
import Glibc
import Platform
import RTP
import Receiving

/// The program `nightjar-watch`: receives a stream as a viewer does, and says how it is.
@main
struct WatchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "nightjar-watch",
    abstract: "Watch a stream, show its figures, and fail if it is worse than expected.",
    discussion: """
      Every picture is decoded. A picture that is damaged, or whose reference was lost, does not count: what counts is what a \
      viewer sees.

      Examples:
        nightjar-watch rtsp://192.168.1.20:8554/camera
        nightjar-watch rtsp://192.168.1.20:8554/camera --expect-fps 25 --max-freeze 1s --for 60s
        nightjar-watch rtsp://192.168.1.20:8554/camera --play
        nightjar-watch camera.sdp --png now.png --for 1s

      Exit codes: 0 the stream is as expected, 1 a limit was passed or no picture came, 64 wrong options, 66 a file cannot be \
      read, 69 the server refuses or no window opens, 74 a file cannot be written, 77 wrong user or password. With --once also \
      65 the server's messages make no sense, 68 no such host, 75 no connection, silence, or the stream ended.
      """,
    version: Release.version)

  @Argument(help: "rtsp://… or rtsps://…, or the file of a session description (.sdp).")
  var stream: String

  @Option(
    help: ArgumentHelp(
      "The way of the packets: automatic, udp, tcp or multicast. With rtsps, udp and multicast are encrypted by SRTP.",
      valueName: "way"))
  var transport = StreamReceiver.Transport.automatic

  @Option(
    help: ArgumentHelp("The interface on which multicast groups are joined, such as eth0.", valueName: "name"))
  var interface: String?

  @Option(help: ArgumentHelp("The user name, if the URL has none.", valueName: "name"))
  var user: String?

  @Option(
    help: ArgumentHelp(
      "The file with the password, if the URL has none: its first line.", valueName: "file"))
  var passwordFile: String?

  @Option(
    help: ArgumentHelp(
      "Trust the server's certificate by its SHA-256 fingerprint, and no other.", valueName: "hex"))
  var fingerprint: Fingerprint?

  @Option(
    name: .customLong("for"),
    help: ArgumentHelp(
      "End so long after the first picture, as in 60s or 5m. Without a picture, end after so long, and 10 s at least.",
      valueName: "time"))
  var duration: TimeLength?

  @Option(
    help: ArgumentHelp(
      "Fail if fewer than 95 % of this many pictures a second were shown.", valueName: "rate"))
  var expectFps: Double?

  @Option(
    help: ArgumentHelp(
      "Fail if no new picture was shown for longer than this, from the first picture on.", valueName: "time"))
  var maxFreeze: TimeLength?

  @Option(help: ArgumentHelp("Write the last picture to this file.", valueName: "file"))
  var png: String?

  @Option(name: .customLong("y4m"), help: ArgumentHelp("Write all pictures to this file.", valueName: "file"))
  var y4m: String?

  @Flag(help: "Show the pictures in a window, and play the sound. Q closes the window, and ends the program.")
  var play = false

  @Flag(help: "Receive no sound.")
  var noSound = false

  @Flag(help: "Do not connect again after a loss: end with 75.")
  var once = false

  @Flag(help: "Decode in software, whatever hardware there is.")
  var software = false

  @Option(
    help: ArgumentHelp("Decode by the VA-API driver of this node, such as /dev/dri/renderD128.", valueName: "path"))
  var renderNode: String?

  func validate() throws {
    if let expectFps, !(0.1...1000).contains(expectFps) {
      throw ValidationError("--expect-fps \(expectFps): choose 0.1 to 1000")
    }
    if software, renderNode != nil { throw ValidationError("--software and --render-node exclude each other") }
  }

  func run() async throws {
    do {
      var configuration = StreamReceiver.Configuration(
        transport: transport, user: user, password: try passwordFile.map(Self.password(in:)),
        certificateFingerprint: fingerprint?.bytes)
      configuration.reconnects = !once
      configuration.receivesSound = !noSound
      configuration.interface = interface
      // A picture of 4K with 200 Mbit/s has half of it at most; pictures that wait take as many times the memory.
      configuration.limits = .init(nalBytes: 2 << 20, unitBytes: 2 << 20)
      let receiver = try StreamReceiver(try source(), configuration: configuration)
      Signals.call { receiver.stop() }
      let player = play ? try await Player(title: title, playsSound: !noSound) { receiver.stop() } : nil
      let viewing = try Viewing(
        receiver, limits: Verdict.Limits(frameRate: expectFps, freeze: maxFreeze?.duration), png: png, y4m: y4m,
        acceleration: software ? .software : renderNode.map { .renderNode($0) } ?? .automatic, player)
      let outcome = await viewing.outcome(for: duration?.duration)
      await player?.end()
      // What was seen is told however it ended.
      let verdict = viewing.verdict
      StandardError.write(verdict.summary)
      for line in viewing.summaries { StandardError.write(line) }
      for complaint in verdict.complaints { StandardError.write("failed     \(complaint)") }
      try outcome.get()
      if !verdict.complaints.isEmpty { throw ExitCode(1) }
    } catch let failure as any Failure {
      StandardError.write("nightjar-watch: \(failure)")
      throw ExitCode(failure.kind.exitCode)
    }
  }

  /// The window's title: no password is in it.
  private var title: String { (try? StreamURL(stream)).map { "\($0)" } ?? stream }

  private func source() throws -> StreamReceiver.Source {
    guard stream.hasSuffix(".sdp"), !stream.contains("://") else { return .rtsp(try StreamURL(stream)) }
    do throws(SystemFailure) {
      return .sessionDescription(
        String(decoding: try FileDescriptor(stream, O_RDONLY).read(upTo: 65_537), as: UTF8.self))
    } catch {
      throw WatchError.reading(stream, error)
    }
  }

  private static func password(in path: String) throws -> String {
    do throws(SystemFailure) {
      let bytes = try FileDescriptor(path, O_RDONLY).read(upTo: 4096)
      return String(decoding: bytes.prefix { $0 != 0x0a && $0 != 0x0d }, as: UTF8.self)
    } catch {
      throw WatchError.reading(path, error)
    }
  }
}

extension StreamReceiver.Transport: ExpressibleByArgument {}

/// An error of the program's own files and devices.
enum WatchError: Failure {
  case reading(String, SystemFailure)
  case writing(String, SystemFailure)
  case display(String)
  case soundDevice(String)

  var description: String {
    switch self {
    case .reading(let path, let failure): "cannot read \(path): \(SystemFailure.text(failure.errorNumber))"
    case .writing(let path, let failure): "cannot write \(path): \(SystemFailure.text(failure.errorNumber))"
    case .display(let reason): "no window opens (\(reason)); leave --play out where there is no display"
    case .soundDevice(let reason): "no sound device opens: \(reason)"
    }
  }

  var kind: FailureKind {
    switch self {
    case .reading: .noInput
    case .writing: .inputOutput
    case .display, .soundDevice: .unavailable
    }
  }
}
