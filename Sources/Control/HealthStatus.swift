/// Whether all is well: the answer to `GET /healthz`, its keys in `snake_case`. By HTTP it is 200 where ``healthy`` is
/// true, else 503.
public struct HealthStatus: Codable, Hashable, Sendable {
  /// How a camera's stream is.
  public enum State: String, CaseIterable, Codable, Hashable, Sendable {
    /// The camera's own pictures go to somebody.
    case streaming
    /// All is well, and nobody watches.
    case idle
    /// It has begun, and no picture has come yet.
    case starting
    /// The camera has not been there yet; a placeholder is streamed in its place.
    case waiting
    /// The camera was unplugged; a placeholder is streamed in its place.
    case disconnected
    /// The camera is there and delivers nothing; a placeholder is streamed in its place.
    case stalled
    /// The camera's driver fails, or its signal is another; a placeholder is streamed in its place.
    case failed
    /// The camera delivers the same picture again and again.
    case frozen
    /// A stage of the program stands still though it has work.
    case stuck
    /// Nothing of it is streamed: the camera cannot be opened, its pipeline has failed, its source has ended, or none was
    /// found and the synthetic one stands in for it.
    case absent

    /// Whether that is as it ought to be.
    public var isHealthy: Bool { self == .streaming || self == .idle }
  }

  /// How one camera is.
  public struct Camera: Codable, Hashable, Sendable {
    /// Its name.
    public var name: String
    /// How it is.
    public var state: State
    /// Whether that is as it ought to be.
    public var healthy: Bool
    /// What is amiss, for a person; nil where nothing is.
    public var reason: String?

    /// All of it.
    public init(name: String, state: State, reason: String? = nil) {
      (self.name, self.state, self.reason) = (name, state, reason)
      healthy = state.isHealthy
    }
  }

  /// Whether all is well: with each camera, and with the program.
  public var healthy: Bool
  /// What is amiss with the program itself, for a person; nil where nothing is.
  public var reason: String?
  /// Every camera of the configuration, in its order.
  public var cameras: [Camera]

  /// All of it. Without a camera all is not well.
  public init(cameras: [Camera], reason: String? = nil) {
    (self.cameras, self.reason) = (cameras, reason)
    healthy = reason == nil && !cameras.isEmpty && cameras.allSatisfy(\.healthy)
  }
}
