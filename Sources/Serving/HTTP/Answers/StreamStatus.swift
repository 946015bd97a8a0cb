/// The state of a camera's stream: the answer to `GET /v1/cameras/{camera}/status`, its keys in `snake_case`.
package struct StreamStatus: Codable, Hashable, Sendable {
  /// The source of the pictures.
  package struct Source: Codable, Hashable, Sendable {
    /// The name, such as `/dev/video0` or `test`.
    package var name: String
    /// Pixels in a row, as the source delivers them.
    package var width: Int
    /// Rows, as the source delivers them.
    package var height: Int
    /// Frames a second.
    package var fps: Double

    /// Creates a source.
    package init(name: String, width: Int, height: Int, fps: Double) {
      (self.name, self.width, self.height, self.fps) = (name, width, height, fps)
    }
  }

  /// The state of a camera that can be plugged in and unplugged.
  package struct Camera: Codable, Hashable, Sendable {
    /// `live`, `waiting`, `disconnected`, `stalled`, `failed` or `frozen`.
    package var state: String
    /// The path that the device was opened by; nil while no camera is connected.
    package var device: String?
    /// The start of the state by the wall clock: RFC 3339 in UTC.
    package var since: String
    /// The duration of the state in seconds, independent of the wall clock.
    package var seconds: Double
    /// The number of times that the camera was lost.
    package var losses: Int
    /// The number of times that the camera was opened again.
    package var reopenings: Int
    /// Pictures that were streamed in place of the camera's own.
    package var placeholderFrames: Int
    /// The reason why the camera cannot be opened although it is there.
    package var obstacle: String?

    /// Creates a camera's state.
    package init(
      state: String, device: String?, since: String, seconds: Double, losses: Int, reopenings: Int,
      placeholderFrames: Int, obstacle: String?
    ) {
      self.device = device
      (self.state, self.since, self.seconds, self.losses) = (state, since, seconds, losses)
      (self.reopenings, self.placeholderFrames, self.obstacle) = (reopenings, placeholderFrames, obstacle)
    }
  }

  /// The rotation of the pictures for the viewer, and the resulting size.
  package struct PictureOrientation: Codable, Hashable, Sendable {
    /// Clockwise: 0, 90, 180 or 270.
    package var degrees: Int
    /// `true` if pictures are mirrored left to right after the rotation.
    package var mirrored: Bool
    /// Pixels in a row, as they are sent.
    package var width: Int
    /// Rows, as they are sent.
    package var height: Int
    /// The number of switches between the encoder of upright pictures and the one of pictures on their side.
    package var switches: Int

    /// Creates an orientation.
    package init(degrees: Int, mirrored: Bool, width: Int, height: Int, switches: Int) {
      (self.degrees, self.mirrored, self.width, self.height) = (degrees, mirrored, width, height)
      self.switches = switches
    }
  }

  /// The active encoder.
  package struct Encoder: Codable, Hashable, Sendable {
    /// The encoder's name, for the user.
    package var name: String
    /// The codec of the camera's pictures: `h264` or `hevc`; nil from an older program, which does not tell.
    package var codec: String?
    /// The target bitrate in bits a second; nil if quality is fixed instead.
    package var bitrate: Int?
    /// Switches to the fall-back encoder.
    package var failovers: Int
    /// Seconds of encoding since the start, including scaling for it.
    package var busySeconds: Double

    /// Creates an encoder's state.
    package init(name: String, codec: String? = nil, bitrate: Int?, failovers: Int, busySeconds: Double) {
      (self.name, self.codec, self.bitrate) = (name, codec, bitrate)
      (self.failovers, self.busySeconds) = (failovers, busySeconds)
    }
  }

  /// The kernel's scheduling of a thread that frames pass through, at the thread's start.
  package struct Thread: Codable, Hashable, Sendable {
    /// `nj-capture`, `nj-encode` or `nj-send`.
    package var name: String
    /// `other`, `batch`, `idle`, or for real time `rr`, `fifo` or `deadline` (sched(7)).
    package var policy: String
    /// The priority: 1 to 99 for real time, else 0.
    package var priority: Int
    /// The most nanoseconds by which the thread's timers may be late.
    package var timerSlackNs: Int
    /// The processors that it may run on, as in `0-3,6`.
    package var cpus: String

    /// Creates a thread's state.
    package init(name: String, policy: String, priority: Int, timerSlackNs: Int, cpus: String) {
      (self.name, self.policy, self.priority) = (name, policy, priority)
      (self.timerSlackNs, self.cpus) = (timerSlackNs, cpus)
    }

    /// `true` if ordinary threads wait for it.
    package var isRealTime: Bool { ["rr", "fifo", "deadline"].contains(policy) }
  }

  /// Frames since the start.
  package struct Frames: Codable, Hashable, Sendable {
    /// Delivered by the source.
    package var captured: Int
    /// Encoded, key frames included.
    package var encoded: Int
    /// Key frames among them.
    package var keyFrames: Int
    /// Left out on purpose, for a lower frame rate.
    package var thinned: Int
    /// Not encoded because there was no viewer.
    package var unwatched: Int
    /// Accepted by the network, for one destination at least; without the pictures of ``H264Rendition``.
    package var sent: Int
    /// Dropped, for any cause.
    package var dropped: Int
    /// Dropped, by `DropCause.name`.
    package var droppedByCause: [String: Int]

    /// Creates frame counts; ``dropped`` is the sum of the causes.
    package init(
      captured: Int, encoded: Int, keyFrames: Int, thinned: Int = 0, unwatched: Int = 0, sent: Int,
      droppedByCause: [String: Int]
    ) {
      (self.thinned, self.unwatched) = (thinned, unwatched)
      (self.captured, self.encoded, self.keyFrames, self.sent) = (captured, encoded, keyFrames, sent)
      self.droppedByCause = droppedByCause
      dropped = droppedByCause.values.reduce(0, +)
    }
  }

  /// The statistics of one destination.
  package struct Destination: Codable, Hashable, Sendable {
    /// The destination's URL, or the transport and address of an RTSP viewer.
    package var url: String
    /// The viewer's kind. In a status: `destination` or `rtsp`. In a list of viewers also `mjpeg` or `mp3`. Nil from an
    /// older server.
    package var kind: String?
    /// The tracks that it gets: `picture`, `sound`; nil from an older server.
    package var tracks: [String]?
    /// Packets that the network accepted.
    package var packets: Int
    /// Their bytes, RTP headers included, without UDP and IP.
    package var bytes: Int
    /// Packets that the network did not accept.
    package var packetsLost: Int
    /// Frames dropped at this destination, whole or in part.
    package var framesDropped: Int
    /// `true` if it loses frames because it accepts them too slowly.
    package var slow: Bool
    /// The bits a second that the viewer's network takes; nil if it has shown no limit.
    package var bandwidth: Int?
    /// The time in milliseconds that packets last waited on the viewer's network; nil if it is not known.
    package var queueMs: Double?
    /// The small pictures that the viewer gets because its network is weak, as in `360p`; nil if it gets the full ones.
    package var rendition: String?
    /// `h264` if the viewer gets that because it cannot decode the camera's own codec; nil if it gets the camera's own.
    package var codec: String?
    /// The number of times that the viewer waited in vain for small pictures, and went on with full ones; nil if there was none.
    package var smallPicturesMissed: Int?
    /// The cause for which nothing is sent to the viewer for a while: `silence`, `media_timeout` or `congestion`
    /// (RFC 8083); nil if something is.
    package var stopped: String?
    /// The number of such stops by cause; nil if there was none.
    package var stops: [String: Int]?
    /// Key frames that the destination requested, by PLI or FIR.
    package var keyFrameRequests: UInt64
    /// Packets retransmitted at the destination's request.
    package var packetsRetransmitted: UInt64
    /// The destination's last report by RTCP; nil if it never sent one.
    package var reception: Reception?
    /// SRTCP packets from it that were refused, by cause: `forged`, `replayed`, `reflected`, `excess`; nil if it gets
    /// plain RTP.
    package var controlRefused: [String: UInt64]?
    /// The number of wraps of the sequence number, if it gets SRTP: a receiver that joins must know it.
    package var rolloverCounter: UInt32?

    /// Creates a destination's statistics.
    package init(
      url: String, kind: String? = nil, tracks: [String]? = nil, packets: Int, bytes: Int, packetsLost: Int,
      framesDropped: Int = 0, slow: Bool = false, bandwidth: Int? = nil, queueMs: Double? = nil,
      rendition: String? = nil, codec: String? = nil, smallPicturesMissed: Int? = nil, stopped: String? = nil,
      stops: [String: Int]? = nil,
      keyFrameRequests: UInt64 = 0, packetsRetransmitted: UInt64 = 0, reception: Reception? = nil,
      controlRefused: [String: UInt64]? = nil, rolloverCounter: UInt32? = nil
    ) {
      self.controlRefused = controlRefused
      self.rolloverCounter = rolloverCounter
      (self.bandwidth, self.queueMs, self.stopped, self.stops) = (bandwidth, queueMs, stopped, stops)
      (self.rendition, self.codec, self.smallPicturesMissed) = (rendition, codec, smallPicturesMissed)
      (self.url, self.kind, self.tracks) = (url, kind, tracks)
      (self.packets, self.bytes, self.packetsLost) = (packets, bytes, packetsLost)
      (self.framesDropped, self.slow, self.reception) = (framesDropped, slow, reception)
      (self.keyFrameRequests, self.packetsRetransmitted) = (keyFrameRequests, packetsRetransmitted)
    }

    /// `true` for an address that the stream is sent to, whether or not anybody receives there; `false` for a viewer.
    package var isDestination: Bool { kind == "destination" }
  }

  /// JPEG pictures since the start, and their current viewers.
  package struct Pictures: Codable, Hashable, Sendable {
    /// Current viewers of `/stream.mjpg`, and the clients that have taken single pictures within the last minute.
    package var viewers: Int
    /// The clients among ``viewers`` that take single pictures; nil from an older program, which does not count them.
    package var snapshotViewers: Int?
    /// Pictures that were encoded.
    package var coded: Int
    /// Pictures that the camera itself encoded, passed on unchanged.
    package var passed: Int
    /// Frames that a viewer waited for but that were skipped, because the previous picture was not ready.
    package var skipped: Int

    /// Creates picture counts.
    package init(viewers: Int = 0, snapshotViewers: Int = 0, coded: Int = 0, passed: Int = 0, skipped: Int = 0) {
      self.snapshotViewers = snapshotViewers
      (self.viewers, self.coded, self.passed, self.skipped) = (viewers, coded, passed, skipped)
    }
  }

  /// A viewer's report of the stream (RFC 3550 section 6.4).
  package struct Reception: Codable, Hashable, Sendable {
    /// The share of packets lost between the viewer's last two reports, 0…1.
    package var fractionLost: Double
    /// Packets lost since the start; negative if there are more duplicates.
    package var packetsLost: Int
    /// The jitter of the packets' arrival.
    package var jitterMs: Double
    /// The round-trip time to the viewer; nil before it was measured.
    package var roundTripMs: Double?

    /// Creates a report.
    package init(fractionLost: Double, packetsLost: Int, jitterMs: Double, roundTripMs: Double?) {
      (self.fractionLost, self.packetsLost) = (fractionLost, packetsLost)
      (self.jitterMs, self.roundTripMs) = (jitterMs, roundTripMs)
    }
  }

  /// The adaptation of the stream to the limits of the machine.
  package struct Adaptation: Codable, Hashable, Sendable {
    /// `nominal`, `fair`, `serious` or `critical`; nil if no thermal zone reports anything.
    package var thermalState: String?
    /// The hottest zone's temperature in °C.
    package var temperature: Double?
    /// The hottest zone, in its driver's words.
    package var zone: String?
    /// The share of the last second in which the encoder was busy; nil if it rests.
    package var load: Double?
    /// The largest picture, as in `1280x720`, in either orientation; nil for any.
    package var maximumSize: String?
    /// The highest frame rate, in frames a second; nil for no limit.
    package var maximumFps: Double?
    /// x264's preset in place of the requested one; nil for the requested one.
    package var x264Preset: String?
    /// The remaining share of the bitrate, up to 1.
    package var bitrateShare: Double
    /// The number of changes so far.
    package var changes: Int

    /// Creates an adaptation's state.
    package init(
      thermalState: String?, temperature: Double?, zone: String?, load: Double?, maximumSize: String?,
      maximumFps: Double?, x264Preset: String?, bitrateShare: Double, changes: Int
    ) {
      (self.thermalState, self.temperature, self.zone, self.load) = (thermalState, temperature, zone, load)
      (self.maximumSize, self.maximumFps, self.x264Preset) = (maximumSize, maximumFps, x264Preset)
      (self.bitrateShare, self.changes) = (bitrateShare, changes)
    }
  }

  /// The choice of x264's preset, or of VA-API's quality level, by measurement.
  package struct Quality: Codable, Hashable, Sendable {
    /// The preset of x264 or x265; nil while hardware encodes.
    package var x264Preset: String?
    /// VA-API's quality level, 1 for the best; nil while software encodes.
    package var vaapiQuality: Int?
    /// The number of the driver's levels, the last of which is the fastest; nil while software encodes.
    package var vaapiQualityLevels: Int?
    /// The reason for the last change: `room`, `late`, `slow`, `budget` or `heat`; nil before any.
    package var reason: String?
    /// The encode time of 99 in 100 frames in the last seconds, in milliseconds; nil before it is known.
    package var encodeP99Ms: Double?
    /// The limit for that time, in milliseconds: half a frame interval.
    package var encodeLimitMs: Double
    /// The processors that the program used in the last seconds; nil before it is known, and while hardware encodes.
    package var processors: Double?
    /// The processors that the program may use, for all cameras and viewers together; nil while hardware encodes.
    package var processorBudget: Double?
    /// The number of x264's sliced threads, while a trial has shown that they bring the last packet forward; nil otherwise.
    package var threads: Int?
    /// The number of changes so far.
    package var changes: Int

    /// Creates a choice.
    package init(
      x264Preset: String? = nil, vaapiQuality: Int? = nil, vaapiQualityLevels: Int? = nil, reason: String?,
      encodeP99Ms: Double?, encodeLimitMs: Double, processors: Double? = nil, processorBudget: Double? = nil,
      threads: Int? = nil, changes: Int
    ) {
      (self.x264Preset, self.reason) = (x264Preset, reason)
      (self.vaapiQuality, self.vaapiQualityLevels) = (vaapiQuality, vaapiQualityLevels)
      (self.encodeP99Ms, self.encodeLimitMs) = (encodeP99Ms, encodeLimitMs)
      (self.processors, self.processorBudget) = (processors, processorBudget)
      (self.threads, self.changes) = (threads, changes)
    }
  }

  /// The requested state of the camera's own settings.
  package struct Controls: Codable, Hashable, Sendable {
    /// `off`, `settling` or `locked`.
    package var sensorLock: String
    /// `true` at night; nil if night and day are not distinguished.
    package var night: Bool?
    /// The mean luma of the picture, 0…255, if night and day are distinguished by it.
    package var brightness: Int?
    /// Requests that cannot be met, a line each.
    package var complaints: [String]

    /// Creates the settings' state.
    package init(sensorLock: String, night: Bool?, brightness: Int?, complaints: [String]) {
      (self.sensorLock, self.night, self.brightness) = (sensorLock, night, brightness)
      self.complaints = complaints
    }
  }

  /// The camera's name in the program.
  package var name: String
  /// The stream's health, as in `/healthz`; nil if it is not monitored.
  package var health: HealthStatus.Camera?
  /// The source of the pictures.
  package var source: Source
  /// The camera's state; nil if the source is no camera.
  package var camera: Camera?
  /// The sound; nil for a stream without sound.
  package var sound: Sound?
  /// The rotation of the pictures for the viewer.
  package var orientation: PictureOrientation
  /// The active encoder.
  package var encoder: Encoder
  /// The small rendition; nil until a viewer has needed it.
  package var smallRendition: SmallRendition?
  /// The H.264 rendition of a camera whose codec is HEVC; nil until a viewer has needed it.
  package var h264Rendition: H264Rendition?
  /// Frames since the start.
  package var frames: Frames
  /// The adaptation to the limits of the machine; nil if it is off.
  package var adaptation: Adaptation?
  /// The choice of the preset or the quality level; nil if the encoder at work keeps the configured one.
  package var quality: Quality?
  /// The camera's own settings; nil if the source is no camera.
  package var controls: Controls?
  /// The threads that frames pass through, in that order; empty before they have started.
  package var threads: [Thread]
  /// The optimizations that are left out for comparison (`--without`), by name; usually none.
  package var without: [String]
  /// The destinations, in the order given.
  package var destinations: [Destination]
  /// The destinations that the stream does not reach yet; nil if there are none.
  package var missingDestinations: [MissingDestination]?
  /// JPEG pictures.
  package var pictures: Pictures
  /// Seconds since the start.
  package var uptimeSeconds: Double

  /// Creates a status.
  package init(
    name: String, health: HealthStatus.Camera? = nil, source: Source, camera: Camera? = nil,
    sound: Sound? = nil, orientation: PictureOrientation, encoder: Encoder, smallRendition: SmallRendition? = nil,
    h264Rendition: H264Rendition? = nil, frames: Frames,
    adaptation: Adaptation? = nil, quality: Quality? = nil, controls: Controls? = nil, threads: [Thread] = [],
    without: [String] = [], destinations: [Destination], missingDestinations: [MissingDestination]? = nil,
    pictures: Pictures = Pictures(), uptimeSeconds: Double
  ) {
    (self.quality, self.smallRendition, self.h264Rendition) = (quality, smallRendition, h264Rendition)
    (self.controls, self.pictures, self.threads, self.without) = (controls, pictures, threads, without)
    (self.name, self.health) = (name, health)
    (self.camera, self.sound, self.adaptation) = (camera, sound, adaptation)
    (self.source, self.orientation, self.encoder, self.frames) = (source, orientation, encoder, frames)
    (self.destinations, self.missingDestinations) = (destinations, missingDestinations)
    self.uptimeSeconds = uptimeSeconds
  }
}
