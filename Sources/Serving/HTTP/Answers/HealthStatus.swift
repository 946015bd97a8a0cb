/// The health of all cameras: the answer to `GET /healthz`, its keys in `snake_case`. The HTTP status is 200 if
/// ``healthy`` is true, else 503.
package struct HealthStatus: Codable, Hashable, Sendable {
  /// The state of a camera's stream.
  package enum State: String, CaseIterable, Codable, Hashable, Sendable {
    /// The camera's own pictures go to at least one viewer, or a client has taken a single one within the last minute.
    case streaming
    /// All is well, and there is no viewer.
    case idle
    /// The stream has begun, and no picture has come yet.
    case starting
    /// The camera has not been there yet; a placeholder is streamed in its place.
    case waiting
    /// The camera was unplugged; a placeholder is streamed in its place.
    case disconnected
    /// The camera is there and delivers nothing; a placeholder is streamed in its place.
    case stalled
    /// The camera's driver fails, or its signal has changed; a placeholder is streamed in its place.
    case failed
    /// The camera delivers the same picture again and again.
    case frozen
    /// A stage of the program stands still though it has work.
    case stuck
    /// No pictures of the camera are streamed: the camera cannot be opened, its pipeline has failed, its source has
    /// ended, or no camera was found and the synthetic one replaces it.
    case absent

    /// `true` if the state is normal.
    package var isHealthy: Bool { self == .streaming || self == .idle }
  }

  /// The state of a camera's sound.
  package enum Sound: String, CaseIterable, Codable, Hashable, Sendable {
    /// The microphone delivers, and viewers hear it.
    case present
    /// Viewers hear silence, as was requested.
    case muted
    /// The microphone has recorded nothing but digital silence for a minute: it is switched off, or broken.
    case silent
    /// The microphone is away; viewers hear silence.
    case absent
    /// The microphone is there, but neither delivers nor fails, and viewers hear silence; or the program's thread of
    /// sound stands still, and viewers get no sound.
    case stuck
  }

  /// The health of one camera.
  package struct Camera: Codable, Hashable, Sendable {
    /// The camera's name.
    package var name: String
    /// The state of its stream.
    package var state: State
    /// `true` if the state is normal.
    package var healthy: Bool
    /// The fault, for the user; nil if there is none.
    package var reason: String?
    /// The sound that viewers hear; nil for a stream without sound. Silence alone does not make a camera unhealthy.
    package var sound: Sound?

    /// Creates a camera's health.
    package init(name: String, state: State, reason: String? = nil, sound: Sound? = nil) {
      (self.name, self.state, self.reason, self.sound) = (name, state, reason, sound)
      healthy = state.isHealthy
    }
  }

  /// `true` if all cameras and the program are well.
  package var healthy: Bool
  /// The program's own fault, for the user; nil if there is none.
  package var reason: String?
  /// Every camera of the configuration, in its order.
  package var cameras: [Camera]

  /// Creates a status. Without a camera it is not healthy.
  package init(cameras: [Camera], reason: String? = nil) {
    (self.cameras, self.reason) = (cameras, reason)
    healthy = reason == nil && !cameras.isEmpty && cameras.allSatisfy(\.healthy)
  }
}
