/// How the program is, and each of its cameras: the answer to `GET /v1/status`, its keys in `snake_case`.
public struct BoxStatus: Codable, Hashable, Sendable {
  /// Where it listens for viewers or for control.
  public struct Listener: Codable, Hashable, Sendable {
    /// `rtsp`, `rtsps`, `https` or `http`.
    public var scheme: String
    /// A numeric address; `0.0.0.0` and `::` are all of this machine's.
    public var address: String
    /// The TCP port.
    public var port: Int

    /// All of it.
    public init(scheme: String, address: String, port: Int) {
      (self.scheme, self.address, self.port) = (scheme, address, port)
    }
  }

  /// A stream that the network is told of (DNS-SD), or is to be.
  public struct Announcement: Codable, Hashable, Sendable {
    /// How it stands.
    public enum State: String, Codable, Hashable, Sendable {
      /// The network knows of it.
      case announced
      /// It will once something has changed, which the reason says.
      case waiting
      /// Avahi refuses it, for the reason; it is tried again.
      case refused
    }

    /// The camera.
    public var camera: String
    /// What people read.
    public var name: String
    /// `_rtsp._tcp` or `_rtsps._tcp`.
    public var type: String
    /// The TCP port.
    public var port: Int
    /// The path of its URL.
    public var path: String
    /// How it stands.
    public var state: State
    /// Why it is not announced; nil where it is.
    public var reason: String?

    /// All of it.
    public init(
      camera: String, name: String, type: String, port: Int, path: String, state: State, reason: String? = nil
    ) {
      (self.camera, self.name, self.type, self.port) = (camera, name, type, port)
      (self.path, self.state, self.reason) = (path, state, reason)
    }
  }

  /// A camera of the configuration whose pictures are not streamed: `absent` in `/healthz`. Where the synthetic camera
  /// stands in for it, it is one of ``BoxStatus/cameras`` too.
  public struct Absent: Codable, Hashable, Sendable {
    /// Its name.
    public var name: String
    /// Why, in a line for a person.
    public var reason: String

    /// All of it.
    public init(name: String, reason: String) {
      (self.name, self.reason) = (name, reason)
    }
  }

  /// Seconds since the start.
  public var uptimeSeconds: Double
  /// How often the configuration was read again and taken.
  public var reloads: Int
  /// Whether all memory is kept from being swapped out.
  public var memoryLocked: Bool
  /// Where it listens.
  public var listeners: [Listener]
  /// What the network is told of; empty where nothing is to be announced.
  public var announcements: [Announcement]
  /// The cameras that stream, in the order of their configuration.
  public var cameras: [StreamStatus]
  /// Those whose own pictures are not streamed.
  public var absent: [Absent]

  /// All of it.
  public init(
    uptimeSeconds: Double, reloads: Int = 0, memoryLocked: Bool = false, listeners: [Listener] = [],
    announcements: [Announcement] = [], cameras: [StreamStatus], absent: [Absent] = []
  ) {
    (self.uptimeSeconds, self.reloads, self.memoryLocked) = (uptimeSeconds, reloads, memoryLocked)
    (self.listeners, self.announcements) = (listeners, announcements)
    (self.cameras, self.absent) = (cameras, absent)
  }
}

/// What came of reading the configuration again: the answer to `POST /v1/reload`.
public struct ReloadAnswer: Codable, Hashable, Sendable {
  /// What became of a camera.
  public enum Outcome: String, Codable, Hashable, Sendable {
    /// It goes on as it was.
    case unchanged
    /// It goes on and is another in ``Camera/changes``, without a gap in its picture.
    case changed
    /// What has changed needed another pipeline: its picture was away for a moment.
    case restarted
    /// It is new.
    case added
    /// It is gone.
    case removed
  }

  /// What became of one camera.
  public struct Camera: Codable, Hashable, Sendable {
    /// Its name.
    public var name: String
    /// What became of it.
    public var outcome: Outcome
    /// What has changed of it, a line each.
    public var changes: [String]

    /// All of it.
    public init(name: String, outcome: Outcome, changes: [String] = []) {
      (self.name, self.outcome, self.changes) = (name, outcome, changes)
    }
  }

  /// Every camera of before and of now.
  public var cameras: [Camera]
  /// What else has changed, a line each.
  public var server: [String]
  /// What is not as it was asked for, or may not be meant so.
  public var warnings: [String]

  /// All of it.
  public init(cameras: [Camera], server: [String] = [], warnings: [String] = []) {
    (self.cameras, self.server, self.warnings) = (cameras, server, warnings)
  }
}
