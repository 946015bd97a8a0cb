package import Platform

/// A rendition of a stream's pictures.
package enum Rendition: Sendable {
  /// The pictures in the stream's own size.
  case full
  /// The same pictures at half the width and half the height, for networks that take less than the least bitrate of the full
  /// ones.
  case small
}

/// The choice of the rendition for one viewer, by the bandwidth of its network.
///
/// A viewer gets the small rendition where its network takes less than the full one has at least. It gets the full one
/// again once the network has taken clearly more for a while. A still picture needs little, so the small rendition shows no
/// more of the network than that; then the full one is tried. A try that fails doubles the time to the next. The value has no
/// clock.
package struct RenditionChoice: Sendable {
  /// The rendition that the viewer is to get.
  package private(set) var rendition = Rendition.full
  /// `true` if the last change was a try: the network has shown no room for the full rendition, and no limit either.
  package private(set) var isTry = false
  /// The number of times in a row that the full rendition was too much.
  package private(set) var failures = 0

  /// The number of times in a row that the small rendition was chosen and did not come.
  private var refusals = 0
  /// The time until which it is not chosen again; nil where it may be.
  private var refusedUntil: Instant?

  /// The time since which the network has taken too little for the full rendition; nil where it takes enough.
  private var weakSince: Instant?
  /// The time since which it has taken clearly more; nil where it does not.
  private var strongSince: Instant?
  /// The time since which it has shown no limit.
  private var calmSince = Instant.zero
  /// The number of times that it had shown one by then.
  private var decreases = 0
  /// The time at which the full rendition was chosen again; nil before that.
  private var returned: Instant?

  /// Creates a choice that begins with the full picture.
  package init() {}

  /// The time for which a network must take a little less than the full rendition needs, and clearly less.
  static let weakTime = (little: Duration.seconds(1), clear: Duration.milliseconds(200))
  /// The share of what the full rendition needs below which a network takes clearly less.
  static let clearShare = 0.75
  /// The share of the same from which on a network takes clearly more.
  static let strongShare = 1.2
  /// The time for which it must take clearly more, after a full rendition that was not too much. A key frame leaves meanwhile.
  static let strongTime = Duration.seconds(3)
  /// The time without a limit after which the full rendition is tried, as a multiple of the same.
  static let calmTimes = 10
  /// The time for which a small rendition that did not come is not chosen again, after the first time. It doubles.
  static let refusedTime = Duration.seconds(5)
  /// The longest of these times, by doublings.
  static let failuresLimit = 5
  /// The time after which the full rendition is known not to be too much.
  static let provedTime = Duration.seconds(60)

  /// `true` if the choice may change though the network shows no limit any more.
  package var isUndecided: Bool { rendition == .small || weakSince != nil }

  /// Chooses the rendition at `now`, and returns it.
  ///
  /// - Parameters:
  ///   - limit: the bits a second that the viewer's network takes; nil where it has shown no limit.
  ///   - decreases: the number of times that the network has shown one.
  ///   - needed: the bits a second that the full rendition has at least.
  package mutating func choose(limit: Double?, decreases: Int, needed: Double, at now: Instant) -> Rendition {
    defer { self.decreases = decreases }
    switch rendition {
    case .full:
      if let returned, now - returned > Self.provedTime { (failures, self.returned) = (0, nil) }
      guard let limit, limit < needed, refusedUntil.map({ now >= $0 }) ?? true else {
        weakSince = nil
        break
      }
      let since = weakSince ?? now
      weakSince = since
      let patience = limit < needed * Self.clearShare ? Self.weakTime.clear : Self.weakTime.little
      guard now - since >= patience else { break }
      if returned != nil { failures = min(failures + 1, Self.failuresLimit) }
      (rendition, strongSince, calmSince) = (.small, nil, now)
    case .small:
      if decreases != self.decreases { calmSince = now }
      let isStrong = limit.map { $0 >= needed * Self.strongShare } ?? true
      strongSince = isStrong ? strongSince ?? now : nil
      let patience = Self.strongTime * Int64(1 << failures)
      if let strongSince, now - strongSince >= patience {
        comeBack(isTry: false, at: now)
      } else if now - calmSince >= patience * Int64(Self.calmTimes) {
        comeBack(isTry: true, at: now)
      }
    }
    return rendition
  }

  private mutating func comeBack(isTry: Bool, at now: Instant) {
    (rendition, self.isTry, returned, weakSince) = (.full, isTry, now, nil)
    (refusals, refusedUntil) = (0, nil)
  }

  /// Takes the full rendition, because the small one has not come, and does not choose the small one for a while.
  package mutating func refuse(at now: Instant) {
    (rendition, isTry, weakSince, returned) = (.full, false, nil, nil)
    refusedUntil = now + Self.refusedTime * Int64(1 << refusals)
    refusals = min(refusals + 1, Self.failuresLimit)
  }

  /// Takes the full rendition, because there is no other.
  package mutating func reset() { self = RenditionChoice() }
}
