import Capture
import Control
import Encoding
import Glibc
import Media
import RTP
import SRTP
import Streaming
import Threading

/// One camera's pipeline, as the control API sees it.
final class StreamCamera: CameraTarget {
  /// The camera's name: in the API, and in the RTSP URL.
  let name: String
  let pipeline: Pipeline
  private let sourceName: String
  /// Whether the quantizer is fixed, so that there is no bitrate to speak of.
  let fixesQuality: Bool
  /// What keeps the stream within what the machine can do.
  let adaptation: StreamAdaptation?
  let controlled: ControlledOptions
  /// Where the stream is to go and does not go yet.
  private let missing: MissingDestinations
  let cameraControls: CameraControls?
  /// Whether a camera was wanted and none found, so that the synthetic one stands in for it.
  let isSubstitute: Bool
  /// Who knows how the stream is; nil where nobody looks after that.
  private let figures: BoxFigures?
  let sessionID = UInt64(time(nil)) &+ 2_208_988_800  // NTP seconds, as RFC 8866 section 5.2 suggests

  /// - Parameters:
  ///   - fixesQuality: whether the quantizer is fixed, so that there is no bitrate to speak of.
  ///   - adaptation: what keeps the stream within what the machine can do.
  ///   - controls: the camera's own; nil where it is none.
  ///   - controlled: where what is changed here is noted.
  ///   - missing: where the stream is to go and does not go yet.
  init(
    name: String, _ pipeline: Pipeline, sourceName: String, fixesQuality: Bool, adaptation: StreamAdaptation?,
    isSubstitute: Bool = false, controls: CameraControls? = nil, controlled: ControlledOptions,
    missing: MissingDestinations, figures: BoxFigures? = nil
  ) {
    self.missing = missing
    self.figures = figures
    cameraControls = controls
    self.isSubstitute = isSubstitute
    self.name = name
    self.controlled = controlled
    self.adaptation = adaptation
    self.pipeline = pipeline
    self.sourceName = sourceName
    self.fixesQuality = fixesQuality
  }

  func status() -> StreamStatus {
    let statistics = pipeline.statistics
    let format = pipeline.sourceFormat
    let orientation = pipeline.orientation
    // As it is sent: less where the machine cannot do with all.
    let size = pipeline.restrictions.encoder.size(of: orientation.size(of: format.size))
    return StreamStatus(
      name: name, health: figures?.health(of: name),
      source: StreamStatus.Source(
        name: sourceName, width: format.size.width, height: format.size.height, fps: format.frameRate.framesPerSecond),
      camera: statistics.camera.map(StreamStatus.Camera.init),
      orientation: StreamStatus.Laid(
        degrees: orientation.rotation.degrees, mirrored: orientation.isMirrored, width: size.width, height: size.height,
        switches: statistics.encoder.switches),
      encoder: StreamStatus.Encoder(
        name: statistics.encoderName, bitrate: fixesQuality ? nil : pipeline.bitrate,
        failovers: statistics.encoder.failovers, busySeconds: statistics.encoderBusy.seconds),
      frames: StreamStatus.Frames(
        captured: statistics.captured, encoded: statistics.encoded, keyFrames: statistics.keyFrames,
        thinned: statistics.thinned, unwatched: statistics.unwatched, sent: statistics.sent,
        droppedByCause: Dictionary(uniqueKeysWithValues: statistics.drops.map { ($0.key.name, $0.value) })),
      adaptation: adaptation?.status, controls: cameraControls.map { StreamStatus.Controls($0.status) },
      threads: pipeline.threadScheduling.map { StreamStatus.Thread(name: $0.name, $0.scheduling) },
      without: pipeline.without.map(\.rawValue).sorted(),
      destinations: statistics.destinations.map(StreamStatus.Destination.init),
      pictures: StreamStatus.Pictures(pipeline.pictureStatistics), uptimeSeconds: statistics.duration.seconds)
  }

  /// Whether the camera delivers the same picture again and again.
  var isFrozen: Bool { pipeline.counters.camera?.state == .frozen }

  func viewers() -> [StreamViewer] {
    let given = Set(pipeline.destinations.map(\.id))
    return pipeline.statistics.destinations.map {
      StreamViewer(
        camera: name, isGuest: !given.contains($0.id), peer: $0.peer, delivery: StreamStatus.Destination($0))
    } + pictureViewers(pipeline.pictureStatistics)
  }

  func rotate(to orientation: Orientation) async throws {
    controlled.add("orientation")
    try await pipeline.turn(to: orientation)
  }

  func requestKeyFrame() { pipeline.requestKeyFrame() }

  func addDestination(_ url: String) async throws -> String {
    let destination = try StreamDestination(url: url)
    let answer = OneAnswer<ViewerID>()
    // A server that ends does not wait for a name server.
    let id = try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        answer.wait(continuation)
        do {
          // A name server may take its time, and Swift's threads are few.
          try NamedThread("nj-resolve") { [pipeline] in
            let result = Result { try pipeline.add(destination) }
            if !answer.give(result), case .success(let id) = result { pipeline.remove(id) }
          }.detach()
        } catch {
          answer.give(.failure(error))
        }
      }
    } onCancel: {
      answer.give(.failure(CommandFailure(kind: .unavailable, description: "the server ends; ask again in a moment")))
    }
    return pipeline.sessionDescription(for: id, sessionID: sessionID)?.text ?? ""
  }

  func removeDestination(_ url: String) throws {
    let destination = try StreamDestination(url: url)
    if missing.remove(destination).wasMissing { return }
    guard let entry = pipeline.destinations.first(where: { $0.destination == destination }), pipeline.remove(entry.id)
    else {
      let known = pipeline.destinations.map(\.destination.description).joined(separator: " or ")
      throw CommandFailure(
        kind: .noInput,
        description: known.isEmpty
          ? "\(destination) is no destination of camera \(name), which has none: nightjar ctl viewers lists who watches"
          : "\(destination) is no destination of camera \(name): choose \(known)")
    }
  }

  func changeBitrate(_ bitsPerSecond: Int) throws {
    guard !fixesQuality else {
      throw CommandFailure(kind: .usage, description: "this stream has a fixed quality (cqp) and no bitrate to change")
    }
    try pipeline.changeBitrate(bitsPerSecond)
    controlled.add("bitrate")
  }
}

extension StreamStatus.Thread {
  /// A thread of a pipeline.
  fileprivate init(name: String, _ scheduling: ThreadScheduling) {
    self.init(
      name: name, policy: scheduling.policy.rawValue, priority: scheduling.priority,
      timerSlackNs: scheduling.timerSlack, cpus: scheduling.processors.description)
  }
}

extension StreamStatus.Camera {
  /// A camera's figures, as status and report show them.
  init(_ condition: CameraCondition) {
    let elapsed = max(.zero, MediaTime.now() - condition.since)
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    self.init(
      state: condition.state.rawValue, since: Self.time(Int64(now.tv_sec) - elapsed.nanoseconds / 1_000_000_000),
      seconds: elapsed.seconds, losses: condition.losses, reopenings: condition.reopenings,
      placeholderFrames: condition.placeholderFrames, obstacle: condition.obstacle)
  }

  /// `2026-11-21T12:03:04Z`.
  private static func time(_ seconds: Int64) -> String {
    var time = time_t(seconds)
    var parts = tm()
    gmtime_r(&time, &parts)
    func two(_ value: CInt) -> String { value < 10 ? "0\(value)" : "\(value)" }
    return "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
      + "T\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))Z"
  }
}

extension StreamStatus.Destination {
  /// One destination's figures, as status and report show them.
  init(_ statistics: DestinationStatistics) {
    let reception = statistics.reception
    let refused = [
      "forged": statistics.refused.forged, "replayed": statistics.refused.replayed,
      "reflected": statistics.refused.reflected, "excess": statistics.refused.excess,
    ]
    self.init(
      url: statistics.name, packets: statistics.packets, bytes: statistics.bytes, packetsLost: statistics.lost,
      framesDropped: statistics.framesDropped, slow: statistics.isSlow,
      keyFrameRequests: statistics.feedback.pictureLosses + statistics.feedback.fullIntraRequests,
      packetsRetransmitted: statistics.feedback.packetsRetransmitted,
      reception: reception.reports == 0
        ? nil
        : StreamStatus.Reception(
          fractionLost: reception.fractionLost, packetsLost: Int(reception.cumulativeLost),
          jitterMs: reception.jitter.milliseconds, roundTripMs: reception.roundTrip?.milliseconds),
      controlRefused: statistics.isProtected ? refused : nil, rolloverCounter: statistics.rolloverCounter)
  }
}
