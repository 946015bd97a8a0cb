public import Media
public import RTP
public import SRTP
import Synchronization

/// A stretch of a frame's way, for latency figures.
public enum LatencyStage: String, CaseIterable, Sendable {
  /// From the camera's timestamp until its picture is here: exposure, transfer, and the wake-up for it.
  case capture
  /// From then until the NV12 frame is ready for the encoder. Placeholders have no such stretch.
  case convert
  /// From then until the encoder takes it.
  case wait
  /// The encoder's call.
  case encode
  /// From then until packetizing begins.
  case queue
  /// Packetizing, and protecting the packets, for all streams of the pipeline.
  case packetize
  /// The rest of the send stage's work, until the last packet was handed to the kernel: with spreading.
  case send
  /// From the camera's timestamp to the last packet: the sum of all.
  case total
  /// From the camera's timestamp until the first packet was handed to the kernel: where slices leave one by one, it does
  /// while the encoder is at work on the rest. Pictures of which no packet left at once are not counted.
  case firstPacket = "first_packet"
}

/// A latency distribution in four numbers.
public struct LatencySummary: Sendable {
  /// How many frames.
  public let count: Int
  /// Half of the frames were faster.
  public let median: MediaTime
  /// All but one in a hundred were faster.
  public let percentile99: MediaTime
  /// The slowest.
  public let maximum: MediaTime

  init(_ histogram: LatencyHistogram) {
    count = histogram.count
    median = histogram.percentile(0.5)
    percentile99 = histogram.percentile(0.99)
    maximum = histogram.maximum
  }
}

/// What happened at one destination.
public struct DestinationStatistics: Sendable {
  /// What tells it from the others.
  public let id: ViewerID
  /// Who it is, for a person: a destination's URL, or how and where an RTSP viewer is reached.
  public let name: String
  /// How it is reached; nil where nobody has said.
  public let peer: ViewerPeer?
  /// Frames of which all packets went out, or were lost one by one.
  public var frames = 0
  /// Frames that it lost, whole or in part: because it was too slow for them, because they followed one that it had
  /// lost, or because there was no way to it.
  public var framesDropped = 0
  /// Whether it is losing frames because it takes them too slowly.
  public var isSlow = false
  /// Packets that the kernel took.
  public var packets = 0
  /// Their bytes, RTP headers included, without UDP and IP.
  public var bytes = 0
  /// Packets that it did not take.
  public var lost = 0
  /// The `errno` with which the last access unit met a refusal; 0 where it met none.
  public var errorNumber: CInt = 0
  /// What it last reported by RTCP.
  public var reception = ReportedReception()
  /// When it last said anything by RTCP; nil before that.
  public var lastHeard: MediaTime?
  /// What it asked for by RTCP.
  public var feedback = ViewerFeedback.Counts()
  /// Whether its packets are protected.
  public var isProtected: Bool { progress != nil }
  /// How often the sequence number of a protected stream has begun anew: what a receiver must know that joins late. Nil
  /// for one in the clear.
  public var rolloverCounter: UInt32? { progress?.rolloverCounter.load(ordering: .relaxed) }
  /// How far the protected stream is.
  var progress: StreamProgress?
  /// SRTCP that was not taken; nothing where the stream is not protected.
  public var refused = ControlUnprotector.Counts()

  init(id: ViewerID, name: String, peer: ViewerPeer? = nil) {
    self.id = id
    self.name = name
    self.peer = peer
  }
}

/// What a pipeline has done so far.
public struct StreamStatistics: Sendable {
  /// Frames that the source delivered.
  public var captured = 0
  /// Frames that were encoded, key frames included.
  public var encoded = 0
  /// Key frames among them.
  public var keyFrames = 0
  /// Frames that were not encoded because nobody watched.
  public var unwatched = 0
  /// Frames that were left out on purpose, to encode fewer a second.
  public var thinned = 0
  /// Frames of which the network took packets, for one destination at least.
  public var sent = 0
  /// How long the encoder was at work, in all; with scaling where frames are scaled for it.
  public var encoderBusy = MediaTime.zero
  /// Bytes of H.264, without start codes.
  public var encodedBytes = 0
  /// The encoder that is at work, for a person.
  public var encoderName = ""
  /// What happened within the encoder.
  public var encoder = EncoderCounters()
  /// Frames that were lost, by cause; every cause has an entry.
  public var drops: [DropCause: Int] = [:]
  /// Latencies by stage.
  public var latencies: [LatencyStage: LatencySummary] = [:]
  /// The same in full, of every stage.
  public var distributions: [LatencyStage: LatencyDistribution] = [:]
  /// The destinations, in the order given.
  public var destinations: [DestinationStatistics] = []
  /// What destinations have got that are gone.
  public var departed = DeliveryTotals()
  /// Key frames that destinations asked for by RTCP, and those that were made for it.
  public var keyFrameRequests: (asked: UInt64, granted: UInt64) = (0, 0)
  /// Datagrams from addresses that are no destination's, which nobody read.
  public var strangers = 0
  /// How the camera is, where it may come and go.
  public var camera: CameraCondition?
  /// RTP streams of now: one for all viewers that share payload, packet size and key.
  public var streams = 0
  /// From the pipeline's start to its first packet; nil before that.
  public var firstPacket: MediaTime?
  /// How long the pipeline has been running, or ran.
  public var duration = MediaTime.zero

  /// Nothing yet.
  public init() {}

  /// What all destinations have got, those that are gone too.
  public var delivered: DeliveryTotals {
    var totals = departed
    for destination in destinations { totals.add(destination) }
    return totals
  }

  /// Frames that were lost, whatever the cause.
  public var dropped: Int { drops.values.reduce(0, +) }
  /// Packets that the kernel took, over all destinations.
  public var packets: Int { destinations.reduce(0) { $0 + $1.packets } }
  /// Their bytes.
  public var bytes: Int { destinations.reduce(0) { $0 + $1.bytes } }
}

/// Where the stages write their figures: each stage has a lock of its own, which nobody holds for long.
final class StatisticsRecorder: Sendable {
  /// Written by the capture thread.
  struct Capture {
    var frames = 0
    var thinned = 0
    var drops = Array(repeating: 0, count: DropCause.allCases.count)
    var latency = LatencyHistogram()
    var conversion = LatencyHistogram()
  }

  /// Written by the encode thread.
  struct Encode {
    var frames = 0
    var keyFrames = 0
    var bytes = 0
    var errors = 0
    var busy = MediaTime.zero
    var unwatched = 0
    /// Frames that the stage is done with, whatever became of them.
    var handled = 0
    var encoder = EncoderCounters()
    var encoderName: String
    /// What the encoder takes for it; nil before it has changed.
    var frameRate: FrameRate?
    var wait = LatencyHistogram()
    var latency = LatencyHistogram()
  }

  /// Written by the send thread.
  struct Send {
    var frames = 0
    /// Frames of which the network took no packet.
    var unsent = 0
    /// Pictures that the stage is done with, whatever became of them.
    var pictures = 0
    var firstPacket: MediaTime?
    var queue = LatencyHistogram()
    var packetizing = LatencyHistogram()
    var latency = LatencyHistogram()
    var total = LatencyHistogram()
    var toFirstPacket = LatencyHistogram()
    /// As `total`, since somebody last looked.
    var recent = LatencyHistogram()
    var keyFrameRequests: (asked: UInt64, granted: UInt64) = (0, 0)
    var strangers = 0
    var streams = 0
  }

  let capture = Mutex(Capture())
  let encode: Mutex<Encode>
  let send = Mutex(Send())
  /// Written by whoever adds and removes destinations.
  struct Viewers {
    /// The destinations there are, in the order in which they came.
    var present: [ViewerFigures] = []
    /// What those have got that are gone.
    var departed = DeliveryTotals()

    /// Lets one go, whose figures count from now on among those of the departed. What it still gets is not counted, so
    /// that no sum of both ever falls.
    mutating func remove(_ id: ViewerID) {
      guard let index = present.firstIndex(where: { $0.id == id }) else { return }
      departed.add(present.remove(at: index).current)
    }
  }

  let viewers = Mutex(Viewers())
  let started: MediaTime

  init(encoderName: String, started: MediaTime) {
    encode = Mutex(Encode(encoderName: encoderName))
    self.started = started
  }

  /// Counts lost frames.
  func drop(_ cause: DropCause, count: Int = 1) {
    capture.withLock { $0.drops[cause.rawValue] &+= count }
  }

  /// What is told of latencies.
  enum LatencyFigures {
    case none
    /// ``StreamStatistics/distributions``.
    case distributions
    /// ``StreamStatistics/latencies`` too, for which each stage's lock is held some microseconds longer.
    case summaries
  }

  /// Everything so far.
  func statistics(until now: MediaTime, latencies: LatencyFigures = .summaries) -> StreamStatistics {
    var result = StreamStatistics()
    result.duration = now - started
    // All room is made before any lock is taken, and at once.
    result.drops.reserveCapacity(DropCause.allCases.count)
    for cause in DropCause.allCases { result.drops[cause] = 0 }
    if latencies != .none {
      result.distributions.reserveCapacity(LatencyStage.allCases.count)
      for stage in LatencyStage.allCases { result.distributions[stage] = LatencyDistribution() }
    }
    if latencies == .summaries { result.latencies.reserveCapacity(LatencyStage.allCases.count) }
    func take(_ histogram: LatencyHistogram, _ stage: LatencyStage) {
      if latencies != .none { result.distributions[stage] = histogram.distribution }
      if latencies == .summaries { result.latencies[stage] = LatencySummary(histogram) }
    }
    // Summed up under the locks: an array that is still shared would make the stage copy it at its next frame.
    capture.withLock {
      result.captured = $0.frames
      result.thinned = $0.thinned
      for cause in DropCause.allCases { result.drops[cause] = $0.drops[cause.rawValue] }
      take($0.latency, .capture)
      take($0.conversion, .convert)
    }
    encode.withLock {
      result.encoded = $0.frames
      result.keyFrames = $0.keyFrames
      result.encodedBytes = $0.bytes
      result.unwatched = $0.unwatched
      result.encoderBusy = $0.busy
      result.encoder = $0.encoder
      result.encoderName = $0.encoderName
      result.drops[.encoderError, default: 0] += $0.errors
      take($0.wait, .wait)
      take($0.latency, .encode)
    }
    send.withLock {
      result.sent = $0.frames
      result.drops[.network, default: 0] += $0.unsent
      result.keyFrameRequests = $0.keyFrameRequests
      result.strangers = $0.strangers
      result.streams = $0.streams
      result.firstPacket = $0.firstPacket.map { $0 - started }
      take($0.queue, .queue)
      take($0.packetizing, .packetize)
      take($0.latency, .send)
      take($0.total, .total)
      take($0.toFirstPacket, .firstPacket)
    }
    viewers.withLock {
      result.departed = $0.departed
      result.destinations = $0.present.map(\.current)
    }
    return result
  }

  /// The latency from capture to wire since the last call, for a live display.
  func recentLatency() -> LatencySummary {
    send.withLock {
      let summary = LatencySummary($0.recent)
      $0.recent.removeAll()
      return summary
    }
  }
}
