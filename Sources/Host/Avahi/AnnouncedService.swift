/// An announcement and its current state.
package struct AnnouncedService: Hashable, Sendable {
  /// The state of an announcement.
  package enum State: Hashable, Sendable {
    /// The service is announced on the network.
    case announced
    /// The announcement waits for this condition, in a few words.
    case waiting(String)
    /// Avahi refuses the announcement, for this reason. It is tried again.
    case refused(String)
  }

  /// The requested announcement.
  package var announcement: ServiceAnnouncement
  /// The service's name. It differs from the requested name where that is taken.
  package var name: String
  /// The state of the announcement.
  package var state: State

  /// Creates a service; see the properties.
  package init(announcement: ServiceAnnouncement, name: String, state: State) {
    (self.announcement, self.name, self.state) = (announcement, name, state)
  }
}
