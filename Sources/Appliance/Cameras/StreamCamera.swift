import Capture
import Encoding
import Glibc
import Media
import Platform
import RTP
import SRTP
import Serving
import Sound
import Streaming

/// One camera's pipeline, as the control API sees it.
final class StreamCamera: CameraTarget {
  /// The camera's name: in the API, and in the RTSP URL.
  let name: String
  let pipeline: Pipeline
  private let sourceName: String
  /// `true` if the quantizer is fixed, so that there is no bitrate to report.
  let fixesQuality: Bool
  /// The adaptation that keeps the stream within the capacity of the host.
  let adaptation: StreamAdaptation?
  let controlled: ControlledSettings
  /// The configured destinations that the stream does not reach yet.
  private let missing: MissingDestinations
  let cameraControls: CameraControls?
  let snapshots: SnapshotViewers
  /// `true` if a camera was requested and none found, so that the synthetic camera takes its place.
  let isSubstitute: Bool
  /// The figures with the stream's health.
  private let figures: ApplianceFigures
  /// The server of browsers; nil if there is none.
  let peers: PeerServer?
  /// Tells viewers that wait for a place that one is free.
  let changes: ChangeSignal
  let sessionID = SessionDescription.presentSessionID()

  /// `true` if noise is an alert.
  let alertsToNoise: Bool
  /// `true` if events of the camera get pictures: somebody looks for noise, crying or movement.
  let isIllustrated: Bool

  /// The optimizations that are switched off, by name.
  private let without: [String]

  /// - Parameters:
  ///   - figures: the figures with the stream's health.
  ///   - peers: the server of browsers; nil if there is none.
  ///   - changes: tells viewers that wait for a place that one is free.
  init(
    _ stream: CameraStream, of slot: CameraSlot, figures: ApplianceFigures, peers: PeerServer?, changes: ChangeSignal
  ) {
    (self.peers, self.changes) = (peers, changes)
    name = slot.name
    pipeline = stream.pipeline
    sourceName = stream.opened.sourceName
    fixesQuality = stream.command.encoding.rateControl == .cqp
    adaptation = stream.adaptation
    isSubstitute = stream.isSubstitute
    cameraControls = stream.opened.controls
    controlled = slot.controlled
    missing = slot.missing
    snapshots = slot.snapshots
    alertsToNoise = stream.command.detection.noise != nil
    isIllustrated = stream.command.detection.isOn
    without = stream.command.scheduling.without.map(\.rawValue).sorted()
    self.figures = figures
  }

  func status() -> StreamStatus {
    let statistics = pipeline.statistics
    let format = pipeline.sourceFormat
    let orientation = pipeline.orientation
    // The size as sent: smaller if the stream is restricted.
    let size = pipeline.restrictions.encoder.size(of: orientation.size(of: format.size))
    let absent = missing.complaints.map {
      StreamStatus.MissingDestination(url: $0.destination.description, reason: $0.text)
    }
    return StreamStatus(
      name: name, health: figures.health(of: name),
      source: StreamStatus.Source(
        name: sourceName, width: format.size.width, height: format.size.height, fps: format.frameRate.framesPerSecond),
      camera: statistics.camera.map(StreamStatus.Camera.init),
      sound: pipeline.sound.map { StreamStatus.Sound($0.figures) },
      orientation: StreamStatus.PictureOrientation(
        degrees: orientation.rotation.degrees, mirrored: orientation.isMirrored, width: size.width, height: size.height,
        switches: statistics.encoder.switches),
      encoder: StreamStatus.Encoder(
        name: statistics.encoderName, codec: pipeline.codec.rawValue, bitrate: fixesQuality ? nil : pipeline.bitrate,
        failovers: statistics.encoder.failovers, busySeconds: statistics.encoderBusy.seconds),
      smallRendition: statistics.smallRendition.map(StreamStatus.SmallRendition.init),
      h264Rendition: statistics.h264Rendition.map(StreamStatus.H264Rendition.init),
      frames: StreamStatus.Frames(
        captured: statistics.captured, encoded: statistics.encoded, keyFrames: statistics.keyFrames,
        thinned: statistics.thinned, unwatched: statistics.unwatched, sent: statistics.sent,
        droppedByCause: Dictionary(uniqueKeysWithValues: statistics.drops.map { ($0.key.name, $0.value) })),
      adaptation: adaptation?.status, quality: adaptation?.quality,
      controls: cameraControls.map { StreamStatus.Controls($0.status) },
      threads: pipeline.threadScheduling.map { StreamStatus.Thread(name: $0.name, $0.scheduling) },
      without: without,
      destinations: statistics.viewers.map(StreamStatus.Destination.init),
      missingDestinations: absent.isEmpty ? nil : absent,
      pictures: StreamStatus.Pictures(pipeline.pictureStatistics, snapshots),
      uptimeSeconds: statistics.duration.seconds)
  }

  /// `true` if the camera delivers the same picture repeatedly.
  var isFrozen: Bool { pipeline.counters.camera?.state == .frozen }

  func viewers() -> [StreamViewer] {
    pipeline.statistics.viewers.map {
      StreamViewer(camera: name, isGuest: $0.isGuest, peer: $0.peer, delivery: StreamStatus.Destination($0))
    } + pictureViewers(pipeline.pictureStatistics) + snapshots.list(name) + listeners()
  }

  func rotate(to orientation: Orientation) async throws {
    controlled.add(.orientation)
    try await pipeline.rotate(to: orientation)
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
      answer.give(
        .failure(ApplianceFailure(kind: .unavailable, description: "the server is ending; try again in a moment")))
    }
    return pipeline.sessionDescription(for: id, sessionID: sessionID)?.text ?? ""
  }

  func removeDestination(_ url: String) throws {
    let destination = try StreamDestination(url: url)
    let wanted = destination.resolved(for: pipeline.codec)
    let absent = missing.destinations.first { $0.resolved(for: pipeline.codec) == wanted }
    if let absent, missing.remove(absent).wasMissing { return }
    guard let entry = pipeline.destination(matching: destination), pipeline.remove(entry.id) else {
      let known = pipeline.destinations.map(\.destination.description).joined(separator: " or ")
      throw ApplianceFailure(
        kind: .noInput,
        description: known.isEmpty
          ? "\(destination) is not a destination of camera \(name), which has none: nightjar ctl viewers lists who watches"
          : "\(destination) is not a destination of camera \(name): choose \(known)")
    }
  }

  func changeBitrate(_ bitsPerSecond: Int) throws {
    guard !fixesQuality else {
      throw ApplianceFailure(
        kind: .usage, description: "this stream has a fixed quality (cqp) and no bitrate to change")
    }
    try pipeline.changeBitrate(bitsPerSecond)
    controlled.add(.bitrate)
  }
}

extension StreamStatus.Thread {
  /// Creates the status of a pipeline's thread.
  fileprivate init(name: String, _ scheduling: ThreadScheduling) {
    self.init(
      name: name, policy: scheduling.policy.rawValue, priority: scheduling.priority,
      timerSlackNs: scheduling.timerSlack, cpus: scheduling.processors.description)
  }
}

extension StreamStatus.Sound {
  /// Creates the form of the figures of sound for status and report.
  init(_ figures: SoundFigures) {
    let condition = figures.condition
    self.init(
      present: condition.isPresent, name: condition.name, rmsDbfs: figures.level.rms, peakDbfs: figures.level.peak,
      loudestRmsDbfs: figures.loudest.rms, loudestPeakDbfs: figures.loudest.peak,
      digitalSilenceSeconds: figures.digitalSilence, muted: figures.isMuted, gainDb: figures.gain,
      clipped: figures.clipped,
      silenceSeconds: Double(condition.silentSamples) / 48_000, driftPpm: condition.drift,
      periodMs: condition.times.map { _ in condition.period.milliseconds }, timestamps: condition.times?.rawValue,
      unstamped: condition.unstampedBlocks, overruns: condition.overruns, losses: condition.losses,
      encoded: figures.encoded,
      failed: figures.failed, dropped: figures.dropped, mp3Listeners: figures.mp3.listeners.count,
      mp3Frames: figures.mp3.encoded,
      mp3Skipped: figures.mp3.skipped)
  }
}

extension StreamStatus.Camera {
  /// Creates the form of a camera's figures for status and report.
  init(_ condition: CameraCondition) {
    let elapsed = max(.zero, Instant.now() - condition.since)
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    self.init(
      state: condition.state.rawValue, device: condition.devicePath,
      since: Self.time(Int64(now.tv_sec) - elapsed.nanoseconds / 1_000_000_000),
      seconds: elapsed.seconds, losses: condition.losses, reopenings: condition.reopenings,
      placeholderFrames: condition.placeholderFrames, obstacle: condition.obstacle)
  }

  /// Returns `2026-11-21T12:03:04Z`.
  private static func time(_ seconds: Int64) -> String {
    var time = time_t(seconds)
    var parts = tm()
    gmtime_r(&time, &parts)
    func two(_ value: CInt) -> String { value < 10 ? "0\(value)" : "\(value)" }
    return "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
      + "T\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))Z"
  }
}

extension StreamStatus.SmallRendition {
  /// Creates the form of a small rendition's figures.
  fileprivate init(_ statistics: RenditionStatistics) {
    self.init(
      width: statistics.size.width, height: statistics.size.height, running: statistics.isRunning,
      encoder: statistics.encoderName, failovers: statistics.encoder.failovers, encoded: statistics.frames,
      dropped: statistics.dropped, missed: statistics.missed, failures: statistics.failures,
      failure: statistics.failure)
  }
}

extension StreamStatus.H264Rendition {
  /// Creates the form of the figures of H.264 beside another codec.
  fileprivate init(_ statistics: RenditionStatistics) {
    self.init(
      width: statistics.size.width, height: statistics.size.height, running: statistics.isRunning,
      encoder: statistics.encoderName, encoded: statistics.frames, sent: statistics.sent, dropped: statistics.dropped,
      failure: statistics.failure)
  }
}

extension StreamStatus.Destination {
  /// Creates the form of a destination's figures for status and report.
  init(_ statistics: DestinationStatistics) {
    let reception = statistics.reception
    let refused = [
      "forged": statistics.refused.forged, "replayed": statistics.refused.replayed,
      "reflected": statistics.refused.reflected, "excess": statistics.refused.excess,
    ]
    self.init(
      url: statistics.name, kind: StreamViewer.kind(isGuest: statistics.isGuest, statistics.peer?.transport),
      tracks: statistics.media.names, packets: statistics.packets, bytes: statistics.bytes,
      packetsLost: statistics.lost,
      framesDropped: statistics.framesDropped, slow: statistics.isSlow,
      bandwidth: statistics.bandwidth, queueMs: statistics.queueing?.milliseconds,
      rendition: statistics.smallHeight.map { "\($0)p" }, codec: statistics.getsH264 ? "h264" : nil,
      smallPicturesMissed: statistics.smallMissed == 0 ? nil : statistics.smallMissed,
      stopped: statistics.stopped?.rawValue, stops: Self.byCause(statistics.stops),
      keyFrameRequests: statistics.feedback.pictureLosses + statistics.feedback.fullIntraRequests,
      packetsRetransmitted: statistics.feedback.packetsRetransmitted,
      reception: reception.reports == 0
        ? nil
        : StreamStatus.Reception(
          fractionLost: reception.fractionLost, packetsLost: Int(reception.cumulativeLost),
          jitterMs: reception.jitter.milliseconds, roundTripMs: reception.roundTrip?.milliseconds),
      controlRefused: statistics.isProtected ? refused : nil, rolloverCounter: statistics.rolloverCounter)
  }

  /// Returns the counts of a circuit breaker by the causes' names; nil where there are none.
  private static func byCause(_ stops: CircuitBreaker.Counts) -> [String: Int]? {
    let counts = CircuitBreaker.Cause.allCases.filter { stops[$0] > 0 }.map { ($0.rawValue, stops[$0]) }
    return counts.isEmpty ? nil : Dictionary(uniqueKeysWithValues: counts)
  }
}
