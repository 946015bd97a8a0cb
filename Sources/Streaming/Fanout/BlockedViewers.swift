import Glibc
import Platform

/// The viewers whose transport has no room at the moment. Used by the send thread alone.
final class BlockedViewers {
  /// Readable while a viewer that waits for an event may go on.
  let room: DescriptorSet
  private var viewers: [Viewer] = []
  /// The descriptor that is watched for each viewer. A viewer's transport may use another one meanwhile.
  private var watched: [ViewerID: CInt] = [:]

  /// The interval of attempts for a viewer whose transport gives no event.
  static let retryInterval = Duration.milliseconds(1)
  /// The interval of checks for viewers that have waited too long.
  static let expiryInterval = Duration.milliseconds(50)

  init() throws(SystemFailure) {
    room = try DescriptorSet(.output)
  }

  /// Adds `viewer` if it is blocked, and removes it if it is not.
  func note(_ viewer: Viewer) {
    if viewer.step == .idle {
      guard !viewers.isEmpty else { return }
      return forget(viewer)
    }
    if !viewers.contains(where: { $0 === viewer }) { viewers.append(viewer) }
    let output = viewer.transport.descriptors.output
    if watched[viewer.id] != output || viewer.step != .full { leave(viewer) }
    guard viewer.step == .full, let output, watched[viewer.id] == nil else { return }
    // Where the kernel watches no more descriptors, the viewer is tried again by the clock.
    if (try? room.insert(output, token: viewer.id.number)) != nil { watched[viewer.id] = output }
  }

  /// Removes a viewer that leaves.
  func forget(_ viewer: Viewer) {
    viewers.removeAll { $0 === viewer }
    leave(viewer)
  }

  private func leave(_ viewer: Viewer) {
    if let output = watched.removeValue(forKey: viewer.id) { room.remove(output) }
  }

  /// Returns the time of the next check without an event; nil where no viewer is blocked.
  func deadline(at now: Instant) -> Instant? {
    guard !viewers.isEmpty else { return nil }
    return now + (watched.count < viewers.count ? Self.retryInterval : Self.expiryInterval)
  }

  /// Lends the viewers to be tried again: all that have room by now, and all for which there is no event. `body` may
  /// call ``note(_:)`` for the viewer that it was lent.
  func withReady(_ body: (Viewer) -> Void) {
    guard !viewers.isEmpty else { return }
    _ = room.takeReady { number in
      if let viewer = viewers.first(where: { $0.id.number == number }) { body(viewer) }
    }
    withEach { if watched[$0.id] == nil { body($0) } }
  }

  /// Lends all viewers, the last one first, so that `body` may remove the viewer that it was lent.
  func withEach(_ body: (Viewer) -> Void) {
    for index in viewers.indices.reversed() where index < viewers.count { body(viewers[index]) }
  }
}
