package import Platform
package import Serving
package import Streaming
import Synchronization

/// The clients that take single pictures of a camera. Each picture is a request on a connection of its own. So an address
/// and a login make one viewer, not a connection.
package final class SnapshotViewers: Sendable {
  private struct Person: Hashable {
    let transport: ViewerPeer.Transport
    let address: String?
    let user: String?

    init(_ peer: ViewerPeer) { (transport, address, user) = (peer.transport, peer.address, peer.user) }
  }

  private struct Entry {
    /// The first request of those that followed each other.
    let first: ViewerPeer
    let begun: Instant
    var last: Instant
    var pictures = 0
    var bytes = 0
  }

  private struct State {
    var present: [Person: Entry] = [:]
    /// The viewers that have gone since they were last taken.
    var gone: [Entry] = []

    mutating func end(_ person: Person) {
      guard let entry = present.removeValue(forKey: person), gone.count < SnapshotViewers.limit else { return }
      gone.append(entry)
    }

    mutating func endThoseAway(at now: Instant) {
      for (person, entry) in present where now - entry.last >= SnapshotViewers.memory { end(person) }
    }
  }

  /// The time after the last picture for which somebody counts as a viewer.
  package static let memory = Duration(seconds: 60)
  /// The most viewers; the one who has been away for the longest is forgotten first.
  package static let limit = 64

  private let state = Mutex(State())

  /// Creates a list without viewers.
  package init() {}

  /// Notes a picture for `peer`. Returns `true` if the viewer is new.
  package func note(_ peer: ViewerPeer, bytes: Int, at now: Instant = .now()) -> Bool {
    state.withLock { state in
      state.endThoseAway(at: now)
      let person = Person(peer)
      let isNew = state.present[person] == nil
      if isNew, state.present.count >= Self.limit,
        let oldest = state.present.min(by: { $0.value.last < $1.value.last })
      {
        state.end(oldest.key)
      }
      var entry = state.present[person] ?? Entry(first: peer, begun: now, last: now)
      (entry.last, entry.pictures, entry.bytes) = (now, entry.pictures + 1, entry.bytes + bytes)
      state.present[person] = entry
      return isNew
    }
  }

  /// Returns the number of viewers.
  package func count(at now: Instant = .now()) -> Int {
    state.withLock { state in state.present.values.count { now - $0.last < Self.memory } }
  }

  /// Returns the viewers of the camera `name`, in the order in which they came.
  package func list(_ name: String, at now: Instant = .now()) -> [StreamViewer] {
    state.withLock { Array($0.present.values) }.filter { now - $0.last < Self.memory }.sorted {
      $0.first.since < $1.first.since
    }
    .map {
      StreamViewer(
        camera: name, isGuest: true, peer: $0.first,
        delivery: StreamStatus.Destination(
          url: "snapshot \($0.first.person)", kind: "snapshot", tracks: StreamMedia.picture.names,
          packets: $0.pictures, bytes: $0.bytes, packetsLost: 0))
    }
  }

  /// Takes the viewers that have gone since the last call, as events.
  ///
  /// - Parameter camera: the camera's name if there are several.
  package func takeGone(of camera: String?, at now: Instant = .now()) -> [ControlEvent] {
    let gone = state.withLock { state in
      state.endThoseAway(at: now)
      defer { state.gone = [] }
      return state.gone
    }
    return gone.sorted { $0.begun < $1.begun }.map {
      .tookLast(viewer: $0.first, camera: camera, after: $0.last - $0.begun, pictures: $0.pictures)
    }
  }
}
