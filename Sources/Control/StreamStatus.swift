/// How a camera's stream is: the answer to `GET /v1/cameras/{camera}/status`, its keys in `snake_case`.
public struct StreamStatus: Codable, Hashable, Sendable {
  /// Where pictures come from.
  public struct Source: Codable, Hashable, Sendable {
    /// Its name, such as `/dev/video0` or `test`.
    public var name: String
    /// Pixels in a row, as the source gives them.
    public var width: Int
    /// Rows, as the source gives them.
    public var height: Int
    /// Frames a second.
    public var fps: Double

    /// All of it.
    public init(name: String, width: Int, height: Int, fps: Double) {
      (self.name, self.width, self.height, self.fps) = (name, width, height, fps)
    }
  }

  /// How the camera is, where it may come and go.
  public struct Camera: Codable, Hashable, Sendable {
    /// `live`, `waiting`, `disconnected`, `stalled`, `failed` or `frozen`.
    public var state: String
    /// Since when, by the wall clock: RFC 3339 in UTC.
    public var since: String
    /// For how long, whatever the wall clock says.
    public var seconds: Double
    /// How often it was lost.
    public var losses: Int
    /// How often it was opened again.
    public var reopenings: Int
    /// Pictures that were streamed in place of its own.
    public var placeholderFrames: Int
    /// Why it cannot be opened although it is there.
    public var obstacle: String?

    /// All of it.
    public init(
      state: String, since: String, seconds: Double, losses: Int, reopenings: Int, placeholderFrames: Int,
      obstacle: String?
    ) {
      (self.state, self.since, self.seconds, self.losses) = (state, since, seconds, losses)
      (self.reopenings, self.placeholderFrames, self.obstacle) = (reopenings, placeholderFrames, obstacle)
    }
  }

  /// How pictures are laid before the viewer, and the size that this gives.
  public struct Laid: Codable, Hashable, Sendable {
    /// Clockwise: 0, 90, 180 or 270.
    public var degrees: Int
    /// Mirrored left to right after the turn.
    public var mirrored: Bool
    /// Pixels in a row, as they are sent.
    public var width: Int
    /// Rows, as they are sent.
    public var height: Int
    /// How often the encoder of upright pictures and that of pictures on their side took each other's place.
    public var switches: Int

    /// All of it.
    public init(degrees: Int, mirrored: Bool, width: Int, height: Int, switches: Int) {
      (self.degrees, self.mirrored, self.width, self.height) = (degrees, mirrored, width, height)
      self.switches = switches
    }
  }

  /// The encoder at work.
  public struct Encoder: Codable, Hashable, Sendable {
    /// Its name, for a person.
    public var name: String
    /// Bits a second that it aims at; nil where quality is fixed instead.
    public var bitrate: Int?
    /// Switches to the fall-back encoder.
    public var failovers: Int
    /// Seconds that it was at work since the start, with scaling for it.
    public var busySeconds: Double

    /// All of it.
    public init(name: String, bitrate: Int?, failovers: Int, busySeconds: Double) {
      (self.name, self.bitrate, self.failovers, self.busySeconds) = (name, bitrate, failovers, busySeconds)
    }
  }

  /// How the kernel schedules a thread that frames pass through, as it was when that began.
  public struct Thread: Codable, Hashable, Sendable {
    /// `nj-capture`, `nj-encode` or `nj-send`.
    public var name: String
    /// `other`, `batch`, `idle`, or of real time `rr`, `fifo` or `deadline` (sched(7)).
    public var policy: String
    /// 1 to 99 of real time, else 0.
    public var priority: Int
    /// By how many nanoseconds its timers may be late.
    public var timerSlackNs: Int
    /// The processors that it may run on, as in `0-3,6`.
    public var cpus: String

    /// All of it.
    public init(name: String, policy: String, priority: Int, timerSlackNs: Int, cpus: String) {
      (self.name, self.policy, self.priority) = (name, policy, priority)
      (self.timerSlackNs, self.cpus) = (timerSlackNs, cpus)
    }

    /// Whether ordinary threads wait for it.
    public var isRealTime: Bool { ["rr", "fifo", "deadline"].contains(policy) }
  }

  /// Frames since the start.
  public struct Frames: Codable, Hashable, Sendable {
    /// Delivered by the source.
    public var captured: Int
    /// Encoded, key frames included.
    public var encoded: Int
    /// Key frames among them.
    public var keyFrames: Int
    /// Left out on purpose, to encode fewer a second.
    public var thinned: Int
    /// Not encoded because nobody watched.
    public var unwatched: Int
    /// Taken by the network, for one destination at least.
    public var sent: Int
    /// Lost, whatever the cause.
    public var dropped: Int
    /// Lost, by `DropCause.name`.
    public var droppedByCause: [String: Int]

    /// All of it; ``dropped`` is the sum of the causes.
    public init(
      captured: Int, encoded: Int, keyFrames: Int, thinned: Int = 0, unwatched: Int = 0, sent: Int,
      droppedByCause: [String: Int]
    ) {
      (self.thinned, self.unwatched) = (thinned, unwatched)
      (self.captured, self.encoded, self.keyFrames, self.sent) = (captured, encoded, keyFrames, sent)
      self.droppedByCause = droppedByCause
      dropped = droppedByCause.values.reduce(0, +)
    }
  }

  /// What happened at one destination.
  public struct Destination: Codable, Hashable, Sendable {
    /// Its URL, or how and where an RTSP viewer is reached.
    public var url: String
    /// Packets that the network took.
    public var packets: Int
    /// Their bytes, RTP headers included, without UDP and IP.
    public var bytes: Int
    /// Packets that it did not take.
    public var packetsLost: Int
    /// Frames that it lost, whole or in part.
    public var framesDropped: Int
    /// Whether it is losing frames because it takes them too slowly.
    public var slow: Bool
    /// Key frames that it asked for, by PLI or FIR.
    public var keyFrameRequests: UInt64
    /// Packets that it asked for once more, and got.
    public var packetsRetransmitted: UInt64
    /// What it last reported by RTCP; nil where it never did.
    public var reception: Reception?
    /// SRTCP from it that was not taken, by cause: `forged`, `replayed`, `reflected`, `excess`; nil where it gets plain RTP.
    public var controlRefused: [String: UInt64]?
    /// How often the sequence number has begun anew, where it gets SRTP: a receiver that joins must know it.
    public var rolloverCounter: UInt32?

    /// All of it.
    public init(
      url: String, packets: Int, bytes: Int, packetsLost: Int, framesDropped: Int = 0, slow: Bool = false,
      keyFrameRequests: UInt64 = 0, packetsRetransmitted: UInt64 = 0, reception: Reception? = nil,
      controlRefused: [String: UInt64]? = nil, rolloverCounter: UInt32? = nil
    ) {
      self.controlRefused = controlRefused
      self.rolloverCounter = rolloverCounter
      (self.url, self.packets, self.bytes, self.packetsLost) = (url, packets, bytes, packetsLost)
      (self.framesDropped, self.slow, self.reception) = (framesDropped, slow, reception)
      (self.keyFrameRequests, self.packetsRetransmitted) = (keyFrameRequests, packetsRetransmitted)
    }
  }

  /// JPEG pictures since the start, and those who look at them now.
  public struct Pictures: Codable, Hashable, Sendable {
    /// Those who look at `/stream.mjpg` now.
    public var viewers: Int
    /// Pictures that were made.
    public var coded: Int
    /// Pictures that the camera itself has made, handed on as they are.
    public var passed: Int
    /// Frames that somebody waited for and that were let go by, because the picture before was not ready.
    public var skipped: Int

    /// All of it.
    public init(viewers: Int = 0, coded: Int = 0, passed: Int = 0, skipped: Int = 0) {
      (self.viewers, self.coded, self.passed, self.skipped) = (viewers, coded, passed, skipped)
    }
  }

  /// What a viewer reports of the stream (RFC 3550 section 6.4).
  public struct Reception: Codable, Hashable, Sendable {
    /// The share of packets lost between its last two reports, 0…1.
    public var fractionLost: Double
    /// Packets lost since the beginning; negative where duplicates outnumber them.
    public var packetsLost: Int
    /// How unevenly packets arrive.
    public var jitterMs: Double
    /// From here to the viewer and back; nil before it could be measured.
    public var roundTripMs: Double?

    /// All of it.
    public init(fractionLost: Double, packetsLost: Int, jitterMs: Double, roundTripMs: Double?) {
      (self.fractionLost, self.packetsLost) = (fractionLost, packetsLost)
      (self.jitterMs, self.roundTripMs) = (jitterMs, roundTripMs)
    }
  }

  /// How the stream keeps within what the machine can do.
  public struct Adaptation: Codable, Hashable, Sendable {
    /// `nominal`, `fair`, `serious` or `critical`; nil where no thermal zone tells anything.
    public var thermalState: String?
    /// The hottest zone's temperature in °C.
    public var temperature: Double?
    /// That zone, in its driver's words.
    public var zone: String?
    /// The part of the last second in which the encoder was at work; nil where it rests.
    public var load: Double?
    /// The largest picture, as in `1280x720`, laid either way; nil for any.
    public var maximumSize: String?
    /// Frames a second at most; nil for as many as come.
    public var maximumFps: Double?
    /// x264's preset instead of what was asked for; nil for that.
    public var x264Preset: String?
    /// The part of the bitrate that is left, up to 1.
    public var bitrateShare: Double
    /// Changes so far.
    public var changes: Int

    /// All of it.
    public init(
      thermalState: String?, temperature: Double?, zone: String?, load: Double?, maximumSize: String?,
      maximumFps: Double?, x264Preset: String?, bitrateShare: Double, changes: Int
    ) {
      (self.thermalState, self.temperature, self.zone, self.load) = (thermalState, temperature, zone, load)
      (self.maximumSize, self.maximumFps, self.x264Preset) = (maximumSize, maximumFps, x264Preset)
      (self.bitrateShare, self.changes) = (bitrateShare, changes)
    }
  }

  /// What is wanted of the camera's own settings.
  public struct Controls: Codable, Hashable, Sendable {
    /// `off`, `settling` or `locked`.
    public var sensorLock: String
    /// Whether it is night; nil where that is not told from day.
    public var night: Bool?
    /// The mean luma of the picture, 0…255, where that tells night from day.
    public var brightness: Int?
    /// What was wanted and cannot be had, a line each.
    public var complaints: [String]

    /// All of it.
    public init(sensorLock: String, night: Bool?, brightness: Int?, complaints: [String]) {
      (self.sensorLock, self.night, self.brightness) = (sensorLock, night, brightness)
      self.complaints = complaints
    }
  }

  /// The camera's name in the program.
  public var name: String
  /// How the stream is, as `/healthz` says it; nil where nobody looks after that.
  public var health: HealthStatus.Camera?
  /// Where pictures come from.
  public var source: Source
  /// How the camera is; nil where the source is none.
  public var camera: Camera?
  /// How they are laid before the viewer.
  public var orientation: Laid
  /// The encoder at work.
  public var encoder: Encoder
  /// Frames since the start.
  public var frames: Frames
  /// How it keeps within what the machine can do; nil where it does not try.
  public var adaptation: Adaptation?
  /// The camera's own settings; nil where the source is none.
  public var controls: Controls?
  /// The threads that frames pass through, in that order; empty before they have begun.
  public var threads: [Thread]
  /// The optimizations that are left out for comparison (`--without`), by their names; mostly none.
  public var without: [String]
  /// The destinations, in the order given.
  public var destinations: [Destination]
  /// JPEG pictures.
  public var pictures: Pictures
  /// Seconds since the start.
  public var uptimeSeconds: Double

  /// All of it.
  public init(
    name: String, health: HealthStatus.Camera? = nil, source: Source, camera: Camera? = nil, orientation: Laid,
    encoder: Encoder, frames: Frames,
    adaptation: Adaptation? = nil, controls: Controls? = nil, threads: [Thread] = [], without: [String] = [],
    destinations: [Destination], pictures: Pictures = Pictures(), uptimeSeconds: Double
  ) {
    (self.controls, self.pictures, self.threads, self.without) = (controls, pictures, threads, without)
    (self.name, self.health) = (name, health)
    (self.camera, self.adaptation) = (camera, adaptation)
    (self.source, self.orientation, self.encoder, self.frames) = (source, orientation, encoder, frames)
    self.destinations = destinations
    self.uptimeSeconds = uptimeSeconds
  }
}
