import Delivery
import Encoding
import Host
import Media
import Platform
import RTP
import Serving
import Streaming
import Synchronization

/// The appliance's counters since its start, for `/metrics`, and its health, for `/healthz`.
///
/// The main thread publishes the cameras and looks once a second. A client's request reads the stages' counters, each
/// under its lock for a few copies, and formats the text afterwards. No frame passes through this type.
final class ApplianceFigures: Sendable {
  private struct State {
    var cameras: [CameraFigures] = []
    var reloads = 0
    var rtsp = Summed<RTSPServer, RTSPCounts>()
    var https = Summed<HTTPServer, ControlEvents.Totals>()
    var http = Summed<HTTPServer, ControlEvents.Totals>()
    var peers = Summed<PeerServer, PeerCounts>()
    var rtspNow: RTSPServerStatistics?
    /// The time at which the main thread last looked.
    var looked: Instant
  }

  private let state: Mutex<State>
  /// The counters of the ways out of an event.
  let deliveries = DeliveryCounts()

  /// The maximum number of a camera's viewers that have lines of their own.
  static let viewerLimit = 64

  init(at now: Instant) { state = Mutex(State(looked: now)) }

  // MARK: The main thread's side

  /// Sets the configured cameras, and those of them that stream.
  func follow(
    _ names: [String], _ cameras: [StreamCamera], absent: [ApplianceStatus.Absent], at now: Instant = .now()
  ) {
    state.withLock { state in
      state.looked = now
      let former = state.cameras
      state.cameras = names.map { name in
        var figures = former.first { $0.name == name } ?? CameraFigures(name: name)
        figures.follow(
          cameras.first { $0.name == name }, absence: absent.first { $0.name == name }?.reason, at: now)
        return figures
      }
    }
  }

  /// Looks at all stages and servers; called once a second.
  func look(
    rtsp: RTSPServer?, https: HTTPServer?, http: HTTPServer?, peers: PeerServer? = nil, at now: Instant = .now()
  ) {
    // Requested before the lock is taken, because the server's own thread answers. A server that is just ending does
    // not answer; its former counts stay.
    let served = rtsp.flatMap { try? $0.statistics() }
    let (events, readingEvents) = (https?.events.totals, http?.events.totals)
    state.withLock { state in
      state.looked = now
      for index in state.cameras.indices { state.cameras[index].check(at: now) }
      state.rtspNow = served
      if let rtsp, let served { state.rtsp.note(RTSPCounts(served), of: rtsp) }
      if let https, let events { state.https.note(events, of: https) }
      if let http, let readingEvents { state.http.note(readingEvents, of: http) }
      if let peers { state.peers.note(peers.counts, of: peers) }
    }
  }

  /// Notes that a reload has succeeded.
  func noteReload() { state.withLock { $0.reloads += 1 } }

  // MARK: What others ask

  /// Returns the health of the appliance and its cameras.
  func health(at now: Instant = .now()) -> HealthStatus {
    state.withLock { state in
      let pause = now - state.looked
      let reason =
        pause > CameraFigures.patience
        ? "the program's main thread has stood still for \(Int(pause.seconds)) s" : nil
      return HealthStatus(cameras: state.cameras.map { $0.health() }, reason: reason)
    }
  }

  /// Returns the health of one camera; `nil` if no camera of that name is configured.
  func health(of name: String) -> HealthStatus.Camera? {
    state.withLock { state in state.cameras.first { $0.name == name }?.health() }
  }

  /// Returns the cameras as the alerts see them.
  func readings() -> [CameraReading] { state.withLock { state in state.cameras.map { CameraReading($0) } } }

  /// Returns the pipelines in which somebody looks for noise, crying or movement, by the names of their cameras.
  func illustratedPipelines() -> [String: Pipeline] {
    state.withLock { state in
      let cameras = state.cameras.compactMap(\.camera).filter(\.isIllustrated)
      return Dictionary(cameras.map { ($0.name, $0.pipeline) }) { $1 }
    }
  }

  /// Writes all present figures.
  func write(to text: inout MetricsText) {
    text.add(.buildInfo, [Program.version], 1)
    text.add(deliveries)
    state.withLock { state in
      text.add(.reloads, [], state.reloads)
      text.add(.rtspConnections, [], state.rtspNow?.connections ?? 0)
      text.add(.rtspSessions, [], state.rtspNow?.sessions ?? 0)
      let (rtsp, https, http) = (state.rtsp.total, state.https.total, state.http.total)
      text.add(.rtspRequests, [], rtsp.requests)
      text.add(.rtspRequestsRefused, [], rtsp.refused)
      text.add(.failedLogins, ["rtsp"], rtsp.failedLogins)
      text.add(.failedLogins, ["https"], https.failedLogins)
      text.add(.failedLogins, ["http"], http.failedLogins)
      text.add(.connectionsRefused, ["rtsp"], rtsp.turnedAway)
      text.add(.connectionsRefused, ["https"], https.turnedAway)
      text.add(.connectionsRefused, ["http"], http.turnedAway)
      let refused = state.peers.total
      for cause in PeerCounts.Cause.allCases { text.add(.browserPortRefused, [cause.rawValue], refused[cause]) }
      for index in state.cameras.indices { text.add(&state.cameras[index]) }
      let readings = state.cameras.lazy.compactMap { $0.camera?.adaptation?.status }
      if let reading = readings.first(where: { $0.temperature != nil }) { text.add(reading) }
    }
    ProcessFigures.now().write(to: &text)
  }
}

/// The counters of an RTSP server.
private struct RTSPCounts: Summable {
  var requests = 0
  var refused = 0
  var failedLogins = 0
  var turnedAway = 0

  init() {}

  init(_ statistics: RTSPServerStatistics) {
    (requests, refused) = (statistics.requests, statistics.refused)
    (failedLogins, turnedAway) = (statistics.failedLogins, statistics.turnedAway)
  }

  static func + (left: RTSPCounts, right: RTSPCounts) -> RTSPCounts {
    var sum = left
    sum.requests += right.requests
    sum.refused += right.refused
    sum.failedLogins += right.failedLogins
    sum.turnedAway += right.turnedAway
    return sum
  }
}

extension ControlEvents.Totals: Summable {
  fileprivate static func + (left: Self, right: Self) -> Self {
    var sum = left
    sum.failedLogins += right.failedLogins
    sum.turnedAway += right.turnedAway
    return sum
  }
}

extension PeerCounts: Summable {}

private protocol Summable {
  init()
  static func + (left: Self, right: Self) -> Self
}

/// The summed counters of servers that replaced each other.
private struct Summed<Server: AnyObject & Sendable, Counts: Summable & Sendable>: Sendable {
  private var former = Counts()
  private var last = Counts()
  // Kept until the next server takes its place, so that no other object has this one's address.
  private var server: Server?

  var total: Counts { former + last }

  mutating func note(_ counts: Counts, of server: Server) {
    if let known = self.server, known !== server { former = former + last }
    self.server = server
    last = counts
  }
}

extension MetricsText {
  fileprivate mutating func add(_ deliveries: DeliveryCounts) {
    for outlet in DeliveryCounts.Outlet.allCases {
      let totals = deliveries[outlet]
      add(.eventsSent, [outlet.rawValue], totals.sent)
      add(.eventFailures, [outlet.rawValue], totals.failed)
      add(.eventsDropped, [outlet.rawValue], totals.dropped)
      for loss in DeliveryCounts.Loss.allCases {
        add(.eventsLost, [outlet.rawValue, loss.rawValue], totals.lost[loss] ?? 0)
      }
    }
    add(.mqttConnected, [], deliveries.isConnected ? 1 : 0)
  }

  fileprivate mutating func add(_ reading: StreamStatus.Adaptation) {
    if let temperature = reading.temperature { add(.temperature, [reading.zone ?? ""], temperature) }
    for state in ThermalState.allCases { add(.thermalState, [state.name], state.name == reading.thermalState ? 1 : 0) }
  }

  fileprivate mutating func add(_ camera: inout CameraFigures) {
    let name = [camera.name]
    let health = camera.health()
    add(.healthy, name, health.healthy ? 1 : 0)
    for state in HealthStatus.State.allCases { add(.state, name + [state.rawValue], state == health.state ? 1 : 0) }
    add(.restarts, name, camera.restarts)
    let statistics = camera.statistics()
    // A source that cannot be lost has lost nothing.
    let condition = statistics.camera
    add(.losses, name, condition?.losses ?? 0)
    add(.reopenings, name, condition?.reopenings ?? 0)
    add(.placeholders, name, condition?.placeholderFrames ?? 0)
    addFrames(statistics, name)
    addEncoder(statistics, of: camera, name)
    addViewers(statistics, of: &camera, name)
    let pictures = camera.pictures()
    add(.viewers, name + ["mjpeg"], pictures.watching)
    add(.viewers, name + ["snapshot"], camera.snapshotViewers)
    add(.pictures, name + ["coded"], pictures.coded)
    add(.pictures, name + ["passed"], pictures.passed)
    add(.picturesSkipped, name, pictures.skipped)
    add(sound: camera)
  }

  private mutating func addFrames(_ statistics: StreamStatistics, _ name: [String]) {
    add(.captured, name, statistics.captured)
    add(.encoded, name, statistics.encoded)
    add(.keyFrames, name, statistics.keyFrames)
    add(.sent, name, statistics.sent)
    add(.thinned, name, statistics.thinned)
    add(.unwatched, name, statistics.unwatched)
    for cause in DropCause.allCases { add(.dropped, name + [cause.name], statistics.drops[cause] ?? 0) }
    for stage in LatencyStage.allCases {
      let distribution = statistics.distributions[stage] ?? LatencyDistribution()
      switch stage {
      case .total: add(.latency, name, distribution)
      case .firstPacket: add(.firstPacketLatency, name, distribution)
      default: add(.stageLatency, name + [stage.rawValue], distribution)
      }
    }
  }

  private mutating func addEncoder(_ statistics: StreamStatistics, of camera: CameraFigures, _ name: [String]) {
    if let streaming = camera.camera {
      add(.encoderInfo, name + [statistics.encoderName], 1)
      if !streaming.fixesQuality { add(.bitrate, name, Double(streaming.pipeline.bitrate) / 8) }
    }
    add(.encoderBusy, name, statistics.encoderBusy.seconds)
    add(.encodedBytes, name, statistics.encodedBytes)
    let counters = statistics.encoder
    add(.failovers, name, counters.failovers)
    add(.hangs, name, counters.hangs)
    add(.recoveries, name, counters.recoveries)
    add(.switches, name, counters.switches)
    add(.adaptations, name, counters.adaptations)
    add(.passed, name, counters.passed)
    add(.handovers, name, counters.handovers)
    let quality = camera.camera?.adaptation?.quality
    if let preset = quality?.x264Preset, let effort = EncoderSelector.effort(ofPreset: preset) {
      add(.effort, name, effort.rawValue)
    }
    if let level = quality?.vaapiQuality { add(.qualityLevel, name, level) }
  }

  private mutating func addViewers(
    _ statistics: StreamStatistics, of camera: inout CameraFigures, _ name: [String]
  ) {
    let viewers = statistics.viewers
    add(.viewers, name + ["destination"], viewers.count { !$0.isGuest })
    let browsers = viewers.count { $0.peer?.transport == .webrtc }
    add(.viewers, name + ["rtsp"], viewers.count(where: \.isGuest) - browsers)
    add(.viewers, name + ["webrtc"], browsers)
    add(.slowViewers, name, viewers.count(where: \.isSlow))
    let delivered = statistics.delivered
    add(.packets, name, delivered.packets)
    add(.bytes, name, delivered.bytes)
    add(.packetsUnsent, name, delivered.lost)
    add(.retransmissions, name, delivered.retransmitted)
    add(.viewerFramesDropped, name, delivered.framesDropped)
    add(.keyFrameRequests, name, statistics.keyFrameRequests.asked)
    add(.keyFramesGranted, name, statistics.keyFrameRequests.granted)
    add(.controlRefused, name, delivered.controlRefused)
    for cause in CircuitBreaker.Cause.allCases { add(.viewerStops, name + [cause.rawValue], delivered.stops[cause]) }
    add(.smallViewers, name, viewers.count { $0.smallHeight != nil })
    add(.renditionChanges, name, delivered.renditionChanges)
    add(.smallEncoded, name, statistics.smallRendition?.frames ?? 0)
    add(.smallDropped, name, statistics.smallRendition?.dropped ?? 0)
    add(.smallMissed, name, statistics.smallRendition?.missed ?? 0)
    add(.smallFailures, name, statistics.smallRendition.map { $0.failures + $0.encoder.failovers } ?? 0)
    add(.h264Viewers, name, viewers.count(where: \.getsH264))
    add(.h264Encoded, name, statistics.h264Rendition?.frames ?? 0)
    add(.h264Sent, name, statistics.h264Rendition?.sent ?? 0)
    add(.h264Dropped, name, statistics.h264Rendition?.dropped ?? 0)
    add(.unknownSenders, name, statistics.unknownSenders)
    for (place, figures) in camera.placed(viewers) where place < ApplianceFigures.viewerLimit {
      let labels = name + ["\(place)"]
      if let bandwidth = figures.bandwidth { add(.viewerBandwidth, labels, Double(bandwidth) / 8) }
      if let queueing = figures.queueing { add(.viewerQueueing, labels, queueing.seconds) }
      if let height = figures.smallHeight { add(.viewerSmallHeight, labels, height) }
      let reception = figures.reception
      guard reception.reports > 0 else { continue }
      add(.viewerLoss, labels, reception.fractionLost)
      add(.viewerJitter, labels, reception.jitter.seconds)
      if let roundTrip = reception.roundTrip { add(.viewerRoundTrip, labels, roundTrip.seconds) }
    }
  }

  private mutating func add(_ metric: Metric, _ labels: [String], _ distribution: LatencyDistribution) {
    let limits = LatencyDistribution.limits
    add(
      metric, labels,
      buckets: limits.indices.map { (Double(limits[$0]) / 1e9, distribution.cumulative(upTo: $0)) },
      count: distribution.count, sum: distribution.sum.seconds)
  }
}
