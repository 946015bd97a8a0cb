import Glibc
import Media
import Threading

/// The viewers whose way out has no room at the moment. Used by the send thread alone.
final class BlockedViewers {
  /// Readable while one of those that wait for an event may go on.
  let room: DescriptorSet
  private var viewers: [Viewer] = []
  private var watched: Set<ViewerID> = []

  /// How soon a viewer is tried again whose way out tells nothing.
  static let retryInterval = MediaTime(nanoseconds: 1_000_000)
  /// How often it is looked whether one has waited for too long.
  static let expiryInterval = MediaTime(nanoseconds: 50_000_000)

  init() throws(SystemFailure) {
    room = try DescriptorSet(.output)
  }

  /// Takes up `viewer` where it is blocked, and lets it go where it is not.
  func note(_ viewer: Viewer) {
    if viewer.step == .idle {
      guard !viewers.isEmpty else { return }
      return forget(viewer)
    }
    if !viewers.contains(where: { $0 === viewer }) { viewers.append(viewer) }
    guard let output = viewer.transport.descriptors.output else { return }
    if viewer.step == .full, !watched.contains(viewer.id) {
      // Where the kernel watches no more, it is tried again by the clock.
      if (try? room.insert(output, token: viewer.id.number)) != nil { watched.insert(viewer.id) }
    } else if viewer.step == .busy, watched.remove(viewer.id) != nil {
      room.remove(output)
    }
  }

  /// Lets go of a viewer that leaves.
  func forget(_ viewer: Viewer) {
    viewers.removeAll { $0 === viewer }
    guard watched.remove(viewer.id) != nil, let output = viewer.transport.descriptors.output else { return }
    room.remove(output)
  }

  /// When to look again without an event; nil where nobody is blocked.
  func deadline(at now: MediaTime) -> MediaTime? {
    guard !viewers.isEmpty else { return nil }
    return now + (watched.count < viewers.count ? Self.retryInterval : Self.expiryInterval)
  }

  /// Lends those to be tried again: all that have room by now, and all for which there is no event. `body` may take
  /// care of ``note(_:)`` for the one that it was lent.
  func withReady(_ body: (Viewer) -> Void) {
    guard !viewers.isEmpty else { return }
    _ = room.takeReady { number in
      if let viewer = viewers.first(where: { $0.id.number == number }) { body(viewer) }
    }
    withEach { if !watched.contains($0.id) { body($0) } }
  }

  /// Lends all, the last one first, so that `body` may let go of the one that it was lent.
  func withEach(_ body: (Viewer) -> Void) {
    for index in viewers.indices.reversed() where index < viewers.count { body(viewers[index]) }
  }
}
