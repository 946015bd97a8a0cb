package import Media
package import Platform
import Synchronization

/// A section of a frame's way, for latency figures.
package enum LatencyStage: String, CaseIterable, Sendable {
  /// From the camera's timestamp to the arrival of its picture: exposure, transfer, and the wake-up for it.
  case capture
  /// From the picture's arrival until the NV12 frame is ready for the encoder. Placeholders have no such section.
  case convert
  /// From the ready frame until the encoder takes it.
  case wait
  /// The encoder's call.
  case encode
  /// From the end of the encoder's call until packetizing begins.
  case queue
  /// Packetizing, and protecting the packets, for all streams of the pipeline.
  case packetize
  /// The rest of the send stage's work, until the last packet was handed to the kernel, spreading included.
  case send
  /// From the camera's timestamp to the last packet: the sum of all.
  case total
  /// From the camera's timestamp until the first packet was handed to the kernel. Where slices leave one by one, the
  /// encoder is still at work on the rest at that time. Pictures of which no packet left at once are not counted.
  case firstPacket = "first_packet"
}

/// A latency distribution in four numbers.
package struct LatencySummary: Sendable {
  /// The number of frames.
  package let count: Int
  /// The latency that half of the frames stay below.
  package let median: Duration
  /// The latency that all but one in a hundred frames stay below.
  package let percentile99: Duration
  /// The highest latency.
  package let maximum: Duration

  /// Creates the summary of a histogram.
  package init(_ histogram: LatencyHistogram) {
    count = histogram.count
    median = histogram.percentile(0.5)
    percentile99 = histogram.percentile(0.99)
    maximum = histogram.maximum
  }
}

/// The statistics of a pipeline.
package struct StreamStatistics: Sendable {
  /// Frames that the source delivered.
  package var captured = 0
  /// Frames that were encoded, key frames included.
  package var encoded = 0
  /// Key frames among them.
  package var keyFrames = 0
  /// Frames that were not encoded because the stream had no viewer.
  package var unwatched = 0
  /// Frames that were left out on purpose, to encode fewer a second.
  package var thinned = 0
  /// Frames of which the network took packets, for one destination at least. ``h264Rendition`` counts its own.
  package var sent = 0
  /// The total time for which the encoder was at work, scaling included where frames are scaled for it.
  package var encoderBusy = Duration.zero
  /// Bytes of H.264, without start codes.
  package var encodedBytes = 0
  /// The name of the encoder that is at work, for a person.
  package var encoderName = ""
  /// The events within the encoder.
  package var encoder = EncoderCounters()
  /// Frames that were lost, by cause; every cause has an entry.
  package var drops: [DropCause: Int] = [:]
  /// Latencies by stage.
  package var latencies: [LatencyStage: LatencySummary] = [:]
  /// The full latency distributions of every stage.
  package var distributions: [LatencyStage: LatencyDistribution] = [:]
  /// The destinations, in the order given: one for each track of a viewer.
  package var destinations: [DestinationStatistics] = []
  /// The totals of destinations that have left.
  package var departed = DeliveryTotals()
  /// Key frames that destinations requested by RTCP, and those that were made for it.
  package var keyFrameRequests: (asked: UInt64, granted: UInt64) = (0, 0)
  /// Datagrams from addresses that are no destination's, which were not read.
  package var unknownSenders = 0
  /// The condition of the camera, where it may come and go.
  package var camera: CameraCondition?
  /// The small rendition of the pictures; nil where no viewer has needed one yet.
  package var smallRendition: RenditionStatistics?
  /// The pictures in H.264 for viewers that cannot decode the stream's own codec; nil where no such viewer has come yet.
  package var h264Rendition: RenditionStatistics?
  /// The present RTP streams: one for all viewers that share payload, packet size and key, and one for each viewer
  /// whose network was weak.
  package var streams = 0
  /// The time from the pipeline's start to its first packet; nil before that.
  package var firstPacket: Duration?
  /// The time for which the pipeline has been running, or ran.
  package var duration = Duration.zero

  /// Creates statistics of zero.
  package init() {}

  /// The totals of all destinations, including those that have left.
  package var delivered: DeliveryTotals {
    var totals = departed
    for destination in destinations { totals.add(destination) }
    return totals
  }

  /// The viewers: the destinations, with all tracks of a viewer as one.
  package var viewers: [DestinationStatistics] { DestinationStatistics.viewers(of: destinations) }

  /// Frames that were lost, whatever the cause.
  package var dropped: Int { drops.values.reduce(0, +) }
  /// Packets that the kernel took, over all destinations.
  package var packets: Int { destinations.reduce(0) { $0 + $1.packets } }
  /// Their bytes.
  package var bytes: Int { destinations.reduce(0) { $0 + $1.bytes } }
}

/// The figures that the stages write. Each stage has a lock of its own, which is never held for long.
package final class StatisticsRecorder: Sendable {
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
    var busy = Duration.zero
    var unwatched = 0
    /// Frames that the stage is done with, with whatever outcome.
    var handled = 0
    var encoder = EncoderCounters()
    var encoderName: String
    /// The frame rate that the encoder assumes; nil before it has changed.
    var frameRate: FrameRate?
    var wait = LatencyHistogram()
    var latency = LatencyHistogram()
    /// The encode times since the last call of ``StatisticsRecorder/takeEncodeTimes(_:)``, for a governor of the effort.
    var recent = LatencyHistogram()
  }

  /// Written by the send thread.
  struct Send {
    var frames = 0
    /// Frames of which the network took no packet.
    var unsent = 0
    /// Pictures that the stage is done with, with whatever outcome.
    var pictures = 0
    var firstPacket: Instant?
    var queue = LatencyHistogram()
    var packetizing = LatencyHistogram()
    var latency = LatencyHistogram()
    var total = LatencyHistogram()
    var toFirstPacket = LatencyHistogram()
    /// The values of `total` since the last call of ``recentLatency()``.
    var recent = LatencyHistogram()
    var keyFrameRequests: (asked: UInt64, granted: UInt64) = (0, 0)
    var unknownSenders = 0
    var streams = 0
  }

  let capture = Mutex(Capture())
  let encode: Mutex<Encode>
  let send = Mutex(Send())
  /// Written by the threads that add and remove destinations.
  struct Viewers {
    /// The present destinations, in the order in which they came, which is that of their identities.
    var present: [ViewerFigures] = []
    /// The totals of destinations that have left.
    var departed = DeliveryTotals()

    /// Returns the place of a destination in ``present``; nil where it is not present. The RTSP server looks up each of its
    /// viewers once a second, and may have thousands.
    func index(of id: ViewerID) -> Int? {
      var (low, high) = (0, present.count)
      while low < high {
        let middle = (low + high) / 2
        if present[middle].id.number < id.number { low = middle + 1 } else { high = middle }
      }
      return low < present.count && present[low].id == id ? low : nil
    }

    /// Removes a destination, and adds its figures to those of the departed. Packets that it still gets are not
    /// counted, so that no sum of both ever falls.
    mutating func remove(_ id: ViewerID) {
      guard let place = index(of: id) else { return }
      departed.add(present.remove(at: place).current)
    }
  }

  let viewers = Mutex(Viewers())
  let started: Instant

  package init(encoderName: String, started: Instant) {
    encode = Mutex(Encode(encoderName: encoderName))
    self.started = started
  }

  /// Records the encode time of a frame for a governor of the effort.
  func recordEncodeTime(_ duration: Duration) {
    encode.withLock { $0.recent.record(duration) }
  }

  /// Exchanges `times`, which is empty, for the encode times since the last call. Allocates nothing.
  func takeEncodeTimes(_ times: inout LatencyHistogram) {
    encode.withLock { swap(&$0.recent, &times) }
  }

  /// Counts lost frames.
  func drop(_ cause: DropCause, count: Int = 1) {
    capture.withLock { $0.drops[cause.rawValue] &+= count }
  }

  /// The detail of latency figures.
  package enum LatencyFigures {
    case none
    /// ``StreamStatistics/distributions``.
    case distributions
    /// ``StreamStatistics/latencies`` too, for which each stage's lock is held some microseconds longer.
    case summaries
  }

  /// Returns all figures so far.
  package func statistics(until now: Instant, latencies: LatencyFigures = .summaries) -> StreamStatistics {
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
      result.unknownSenders = $0.unknownSenders
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

  /// Returns the latency from capture to wire since the last call, for a live display.
  func recentLatency() -> LatencySummary {
    send.withLock {
      let summary = LatencySummary($0.recent)
      $0.recent.removeAll()
      return summary
    }
  }
}
