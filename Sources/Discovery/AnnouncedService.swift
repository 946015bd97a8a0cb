/// What has become of an announcement.
public struct AnnouncedService: Hashable, Sendable {
  /// How it stands.
  public enum State: Hashable, Sendable {
    /// The network knows of it.
    case announced
    /// It will, once this has changed; in a few words.
    case waiting(String)
    /// Avahi refuses it, for this reason. It is tried again.
    case refused(String)
  }

  /// What was asked for.
  public var announcement: ServiceAnnouncement
  /// The name that it has, or is to have; another one than asked for where that is taken.
  public var name: String
  /// How it stands.
  public var state: State

  /// See the properties.
  public init(announcement: ServiceAnnouncement, name: String, state: State) {
    (self.announcement, self.name, self.state) = (announcement, name, state)
  }
}
