import Platform
import Serving
import Streaming
import Synchronization

/// The clients that take single pictures of a camera. Each picture is a request on a connection of its own. So an address
/// and a login make one viewer, not a connection.
final class SnapshotViewers: Sendable {
  private struct Person: Hashable {
    let transport: ViewerPeer.Transport
    let address: String?
    let user: String?

    init(_ peer: ViewerPeer) { (transport, address, user) = (peer.transport, peer.address, peer.user) }
  }

  private struct Entry {
    /// The first request of those that followed each other.
    let first: ViewerPeer
    var last: Instant
    var pictures = 0
    var bytes = 0
  }

  /// The time after the last picture for which somebody counts as a viewer.
  static let memory = Duration(seconds: 60)
  /// The most viewers; the one who has been away for the longest is forgotten first.
  static let limit = 64

  private let entries = Mutex<[Person: Entry]>([:])

  /// Notes a picture for `peer`. Returns `true` if the viewer is new.
  func note(_ peer: ViewerPeer, bytes: Int, at now: Instant = .now()) -> Bool {
    entries.withLock { entries in
      entries = entries.filter { now - $0.value.last < Self.memory }
      let person = Person(peer)
      let isNew = entries[person] == nil
      if isNew, entries.count >= Self.limit, let oldest = entries.min(by: { $0.value.last < $1.value.last }) {
        entries[oldest.key] = nil
      }
      var entry = entries[person] ?? Entry(first: peer, last: now)
      (entry.last, entry.pictures, entry.bytes) = (now, entry.pictures + 1, entry.bytes + bytes)
      entries[person] = entry
      return isNew
    }
  }

  /// The viewers of the camera `name`, in the order in which they came.
  func list(_ name: String, at now: Instant = .now()) -> [StreamViewer] {
    entries.withLock { Array($0.values) }.filter { now - $0.last < Self.memory }.sorted {
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
}
