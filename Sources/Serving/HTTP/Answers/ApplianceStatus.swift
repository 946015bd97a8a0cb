/// The state of the program and of each of its cameras: the answer to `GET /v1/status`, its keys in `snake_case`.
package struct ApplianceStatus: Codable, Hashable, Sendable {
  /// A listener for viewers or for control.
  package struct Listener: Codable, Hashable, Sendable {
    /// `rtsp`, `rtsps`, `https` or `http`.
    package var scheme: String
    /// The numeric address; `0.0.0.0` and `::` are all addresses of this machine.
    package var address: String
    /// The TCP port.
    package var port: Int

    /// Creates a listener.
    package init(scheme: String, address: String, port: Int) {
      (self.scheme, self.address, self.port) = (scheme, address, port)
    }
  }

  /// A stream that is announced in the network (DNS-SD), or is to be.
  package struct Announcement: Codable, Hashable, Sendable {
    /// The state of an announcement.
    package enum State: String, Codable, Hashable, Sendable {
      /// The network knows of the stream.
      case announced
      /// The stream is announced once something has changed, which the reason says.
      case waiting
      /// Avahi refuses it, for the reason; the announcement is tried again.
      case refused
    }

    /// The camera's name.
    package var camera: String
    /// The name that users read.
    package var name: String
    /// `_rtsp._tcp` or `_rtsps._tcp`.
    package var type: String
    /// The TCP port.
    package var port: Int
    /// The path of its URL.
    package var path: String
    /// The announcement's state.
    package var state: State
    /// The reason why the stream is not announced; nil if it is.
    package var reason: String?

    /// Creates an announcement.
    package init(
      camera: String, name: String, type: String, port: Int, path: String, state: State, reason: String? = nil
    ) {
      (self.camera, self.name, self.type, self.port) = (camera, name, type, port)
      (self.path, self.state, self.reason) = (path, state, reason)
    }
  }

  /// A camera of the configuration whose pictures are not streamed: `absent` in `/healthz`. If the synthetic camera
  /// replaces it, the camera is also one of ``ApplianceStatus/cameras``.
  package struct Absent: Codable, Hashable, Sendable {
    /// The camera's name.
    package var name: String
    /// The reason, one line for the user.
    package var reason: String

    /// Creates an absent camera.
    package init(name: String, reason: String) {
      (self.name, self.reason) = (name, reason)
    }
  }

  /// Seconds since the start.
  package var uptimeSeconds: Double
  /// The number of times that the configuration was read again and applied.
  package var reloads: Int
  /// `true` if all memory is locked against swapping.
  package var memoryLocked: Bool
  /// The listeners of all servers.
  package var listeners: [Listener]
  /// The announcements in the network; empty if there are none.
  package var announcements: [Announcement]
  /// The cameras that stream, in the order of their configuration.
  package var cameras: [StreamStatus]
  /// The cameras whose own pictures are not streamed.
  package var absent: [Absent]

  /// Creates a status.
  package init(
    uptimeSeconds: Double, reloads: Int = 0, memoryLocked: Bool = false, listeners: [Listener] = [],
    announcements: [Announcement] = [], cameras: [StreamStatus], absent: [Absent] = []
  ) {
    (self.uptimeSeconds, self.reloads, self.memoryLocked) = (uptimeSeconds, reloads, memoryLocked)
    (self.listeners, self.announcements) = (listeners, announcements)
    (self.cameras, self.absent) = (cameras, absent)
  }
}

/// The result of reading the configuration again: the answer to `POST /v1/reload`.
package struct ReloadAnswer: Codable, Hashable, Sendable {
  /// The outcome for a camera.
  package enum Outcome: String, Codable, Hashable, Sendable {
    /// The camera continues unchanged.
    case unchanged
    /// The camera continues with ``Camera/changes``, without a gap in its picture.
    case changed
    /// The changes needed another pipeline: the picture was interrupted for a moment.
    case restarted
    /// The camera is new.
    case added
    /// The camera has been removed.
    case removed
  }

  /// The outcome for one camera.
  package struct Camera: Codable, Hashable, Sendable {
    /// The camera's name.
    package var name: String
    /// The camera's outcome.
    package var outcome: Outcome
    /// The changes to the camera, a line each.
    package var changes: [String]

    /// Creates a camera's outcome.
    package init(name: String, outcome: Outcome, changes: [String] = []) {
      (self.name, self.outcome, self.changes) = (name, outcome, changes)
    }
  }

  /// All former and current cameras.
  package var cameras: [Camera]
  /// The other changes, a line each.
  package var server: [String]
  /// Settings that differ from the request, or that may be unintended.
  package var warnings: [String]

  /// Creates an answer.
  package init(cameras: [Camera], server: [String] = [], warnings: [String] = []) {
    (self.cameras, self.server, self.warnings) = (cameras, server, warnings)
  }
}
