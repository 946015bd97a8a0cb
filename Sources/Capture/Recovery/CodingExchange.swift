package import Media
package import Platform

/// The changes of a camera between its own H.264, which is passed on, and samples, which are encoded here.
///
/// Samples are needed as long as the picture is rotated by an orientation that the camera does not have, a viewer gets
/// JPEG pictures, or the camera's H.264 was refused. Only the source's thread uses it.
package struct CodingExchange {
  /// The time that a change may take before placeholders are shown.
  static let patience = Duration(seconds: 1)

  private let link: PassThrough
  /// The time within which another viewer of JPEG pictures makes the next return wait twice as long.
  private static let settling = Duration(seconds: 60)
  /// The longest time for which nothing needs samples before the camera returns.
  private static let longestDelay = Duration(seconds: 60)

  /// The time for which nothing needs samples before the camera returns. It doubles while viewers of JPEG pictures come
  /// again and again, so that they make the camera start a few times, not each time.
  private var returnDelay: Duration
  /// The time of the last return.
  private var returned: Instant?
  /// The time since when nothing needs samples, while the camera delivers them.
  private var unneededSince: Instant?
  /// The time at which the change under way began, and its reason.
  private var underWay: (since: Instant, reason: String)?

  package init(_ link: PassThrough) {
    self.link = link
    returnDelay = link.returnDelay
  }

  /// `true` while the camera is opened again for another coding.
  package var isUnderWay: Bool { underWay != nil }

  /// Returns `true` if the camera must be opened again, and notes the beginning of that.
  ///
  /// - Parameters:
  ///   - isCoded: `true` if the camera delivers H.264.
  ///   - orientation: the requested orientation.
  ///   - isWatched: `true` if a viewer gets JPEG pictures.
  package mutating func isDue(isCoded: Bool, orientation: Orientation, isWatched: Bool, now: Instant = .now()) -> Bool {
    let reason = reason(orientation, isWatched)
    if isCoded {
      guard let reason, link.camera.offersSamples else { return false }
      let isSoon = isWatched && (returned.map { now - $0 < Self.settling } ?? false)
      returnDelay = isSoon ? min(returnDelay + returnDelay, Self.longestDelay) : link.returnDelay
      begin(reason, forSamples: true, at: now)
      return true
    }
    guard reason == nil else {
      unneededSince = nil
      return false
    }
    guard let since = unneededSince else {
      unneededSince = now
      return false
    }
    guard now - since >= returnDelay else { return false }
    returned = now
    begin("", forSamples: false, at: now)
    return true
  }

  /// Notes that the camera was lost: another one may come, whose H.264 passes.
  ///
  /// A refusal stays if the camera does: the link forgets it once another camera is opened (`PassThrough.camera`). Of a camera that is lost during a change, it stays too: the search is under way,
  /// so the refusal may be of the camera that the search has just opened. If it is the reason for the change, a camera
  /// that leaves the bus at each opening would be opened for its H.264 again and again.
  ///
  /// - Parameters:
  ///   - orientation: the requested orientation.
  ///   - isWatched: `true` if a viewer gets JPEG pictures.
  ///   - keeps: `true` if the camera is only slow to start and continues.
  package mutating func noteLoss(orientation: Orientation, isWatched: Bool, keeps: Bool = false) {
    if underWay == nil, !keeps { link.forgive() }
    underWay = nil
    unneededSince = nil
    link.opensForSamples = reason(orientation, isWatched) != nil
  }

  /// Ends a change, and returns the event for it; nil if none was under way.
  package mutating func end(isCoded: Bool, now: Instant = .now()) -> CameraEvent? {
    guard let (since, reason) = underWay else { return nil }
    underWay = nil
    return .coded(isPassedOn: isCoded, reason: reason.isEmpty ? link.refusal ?? "" : reason, after: now - since)
  }

  /// Returns `true` if a change takes so long that the camera counts as waiting.
  package func isOverdue(now: Instant = .now()) -> Bool { underWay.map { now - $0.since > Self.patience } ?? false }

  private mutating func begin(_ reason: String, forSamples: Bool, at now: Instant) {
    link.opensForSamples = forSamples
    unneededSince = nil
    underWay = (now, reason)
  }

  /// Returns the reason why samples are needed; nil if there is none. Allocates only if there is one.
  private func reason(_ orientation: Orientation, _ isWatched: Bool) -> String? {
    if let refusal = link.refusal { return refusal }
    if link.camera.base.then(orientation) != .upright { return "the picture is rotated" }
    return isWatched ? "a viewer gets JPEG pictures" : nil
  }
}

extension PassThrough {
  /// Returns the reason why the camera's pictures do not get `orientation`; nil if they get it.
  package func obstacle(to orientation: Orientation, of path: String?) -> CaptureError? {
    let camera = camera
    guard !camera.offersSamples, camera.base.then(orientation) != .upright else { return nil }
    return .onlyCoded(path: path ?? "the camera")
  }
}
