package import Media
package import Platform
import RTP
import Synchronization

/// The format of a track: what its access units are, and how RTP carries them.
package struct TrackFormat: Sendable {
  /// The payload that viewers by RTSP get.
  package var payload: StreamPayload
  /// Bits a second, on average.
  package var bitrate: Int
  /// The time from one access unit to the next.
  package var interval: Duration
  /// The time between two key frames; nil where each access unit is one.
  package var groupInterval: Duration?
  /// The most bytes of an access unit.
  package var unitBytes: Int
  /// The first parameter sets of the pictures; nil for sound.
  package var parameterSets: ParameterSets?
  /// The H.264 profile that a decoder of the pictures must support; nil for another codec.
  package var profile: H264Profile?

  /// Creates a format; see the properties.
  package init(
    payload: StreamPayload, bitrate: Int, interval: Duration, groupInterval: Duration? = nil, unitBytes: Int,
    parameterSets: ParameterSets? = nil, profile: H264Profile? = nil
  ) {
    self.payload = payload
    self.bitrate = bitrate
    self.interval = interval
    self.groupInterval = groupInterval
    self.unitBytes = unitBytes
    self.parameterSets = parameterSets
    self.profile = profile
  }
}

/// One track of a stream: the access units of one encoder, on their way to the viewers.
///
/// A track has a send stage and a thread of its own, so that sound never waits for the packets of a large picture, nor
/// pictures for sound. What the tracks of a pipeline share is the viewers' list, this side's ports and the CNAME, by
/// which receivers know that the tracks belong together (RFC 3550 section 6.5.1).
package final class Track: @unchecked Sendable {
  // Sendable: `thread` is touched by the pipeline's one owner alone.
  /// The track's number in its pipeline; that of pictures is 0.
  package let number: Int
  /// The track's access units, between its encoder and its send stage.
  let pictures: CodedPictureQueue
  /// The consumers of the access units; the send stage is the first.
  let consumers: CodedPictureConsumers
  let sendStage: SendStage
  /// The figures of the send stage.
  let statistics: StatisticsRecorder
  private var thread: NamedThread?
  private let watched = Atomic(false)
  private let closed = Atomic(false)

  /// `true` if any client takes the track. Any thread may read it.
  package var isWatched: Bool { watched.load(ordering: .relaxed) }
  /// `true` until the track takes no more. Any thread may read it.
  package var isOpen: Bool { !closed.load(ordering: .relaxed) }

  /// The media that viewers by RTSP get.
  package var media: StreamMedia { sendStage.guestPayload.media }

  /// Sets whether any client takes the track. Any thread may call it.
  func setWatched(_ isWatched: Bool) { watched.store(isWatched, ordering: .relaxed) }

  /// Creates a track whose thread does not run yet.
  ///
  /// - Parameters:
  ///   - requests: takes the viewers' requests for key frames.
  ///   - sound: the access units of the sound that some streams of the track carry as well.
  ///   - statistics: takes the figures of the send stage.
  package init(
    _ number: Int, _ format: TrackFormat, sound: CodedPictureQueue? = nil, pacing: Double, canonicalName: String,
    requests: EncoderRequests,
    statistics: StatisticsRecorder, sending: PacketSending
  ) throws {
    self.number = number
    self.statistics = statistics
    // As many as come within a viewer's patience.
    let held = min(max(Int(Viewer.patience.seconds / format.interval.seconds), 8), 32)
    pictures = try CodedPictureQueue(capacity: format.unitBytes, held: held)
    consumers = CodedPictureConsumers(pictures)
    sendStage = try SendStage(
      pictures: pictures, sound: sound, heldLimit: held, track: format, pacing: pacing, canonicalName: canonicalName,
      requests: requests, statistics: statistics, sending: sending)
  }

  /// Starts the send stage by `makeThread`.
  ///
  /// - Throws: ``SystemFailure`` where the system has no thread left.
  func start(
    _ makeThread: (_ body: @escaping @Sendable () -> Void) throws(SystemFailure) -> NamedThread
  ) throws(SystemFailure) {
    thread = try makeThread { [sendStage] in sendStage.run() }
  }

  /// Waits for room for the next access unit. Returns `false` once the track takes no more. For the one thread that
  /// calls ``take(_:)`` too.
  package func reserve() -> Bool { consumers.reserve() }

  /// Copies an access unit, after ``reserve()``. Returns `false` if the track takes no more, or the access unit is
  /// larger than ``TrackFormat/unitBytes``.
  @discardableResult
  package func take(_ unit: borrowing AccessUnit) -> Bool {
    consumers.take(unit, encoded: unit.isLastPart ? .now() : .zero) == .taken
  }

  /// Takes no more access units. Those on the way are sent.
  package func close() {
    closed.store(true, ordering: .relaxed)
    pictures.close()
    // The encode stage ends the consumers of pictures, after the last one.
    if number > 0 { consumers.closeOthers() }
  }

  /// Waits until the send stage has ended; the queue must be closed.
  func waitUntilEnd() { thread = nil }

  /// The figures of the track so far.
  package var figures: TrackStatistics {
    statistics.send.withLock {
      TrackStatistics(
        accessUnits: $0.pictures, sent: $0.frames, unsent: $0.unsent, streams: $0.streams,
        latency: LatencySummary($0.total))
    }
  }
}

/// The statistics of one track of a pipeline.
package struct TrackStatistics: Sendable {
  /// Access units that the send stage is done with.
  package let accessUnits: Int
  /// Access units with packets that the network took, for at least one viewer.
  package let sent: Int
  /// Access units without such packets, although there was a viewer.
  package let unsent: Int
  /// The present RTP streams of the track.
  package let streams: Int
  /// From the source's timestamp to the last packet.
  package let latency: LatencySummary
}

extension Track {
  /// Creates the tracks beside that of the pictures, from number 1 on. Nobody makes key frames for them: each of their
  /// access units is one.
  ///
  /// - Throws: ``SystemFailure``.
  static func further(
    _ formats: [TrackFormat], canonicalName: String, started: Instant, _ sending: PacketSending
  ) throws -> [Track] {
    try formats.enumerated().map { index, format in
      try Track(
        index + 1, format, pacing: 0, canonicalName: canonicalName, requests: EncoderRequests(),
        statistics: StatisticsRecorder(encoderName: "", started: started), sending: sending)
    }
  }
}
