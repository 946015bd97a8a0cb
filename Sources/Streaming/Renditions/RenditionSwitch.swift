package import Media
package import Platform

/// The rendition that the RTP stream of one viewer carries, and the change from one to the other.
///
/// The stream changes at a key frame of the other rendition. The key frame must be later than the last picture. Directly behind
/// another key frame, it must have another `idr_pic_id` (ITU-T H.264 clause 7.4.3).
///
/// - To small pictures: a small key frame is announced. The stream leaves out the full pictures from the time of that key frame on,
///   so no picture comes twice.
/// - To full pictures: the key frame must be captured after the request, because an older one may have a bitrate that is too high
///   for the viewer's network. The small picture of the frame before must have come, so no picture is missing.
package struct RenditionSwitch {
  /// The rendition that the stream carries.
  package private(set) var present = Rendition.full
  /// The rendition that it is to carry.
  package private(set) var wanted = Rendition.full
  /// The time since which the stream waits for the key frame of ``wanted``; nil where it waits for none.
  package private(set) var waitsSince: Instant?
  /// The time since which full pictures are left out before a small key frame; nil where they are not.
  package private(set) var leavesOutSince: Instant?
  /// `true` if they are left out for a key frame that has come and could not be taken, or that a later picture shows to be lost.
  package private(set) var lacksKeyFrame = false
  /// The `idr_pic_id` of the last key frame; nil where it is unknown.
  private var lastPictureID: Int?
  /// `true` if that key frame was the last picture.
  private var isKeyFrameLast: Bool

  /// The time from the first full picture that was left out last to the next one that was taken; `end` is nil before that.
  private var leftOut: (begin: Instant, end: Instant?)?
  /// The number of pictures that the stream has had in neither rendition, and that are not counted yet.
  private var lost = 0

  private let frameInterval: Duration
  /// The times between the last three pictures; nil where there were fewer.
  private var intervals: (Duration?, Duration?)

  /// The time for which an announced key frame may be late.
  static let patience = Duration.seconds(1)
  /// The time for which a change to full pictures waits for one that costs nobody anything.
  static let returnPatience = Duration.seconds(3)

  /// Creates a stream that carries full pictures.
  ///
  /// - Parameters:
  ///   - frameInterval: the time between two pictures at the nominal frame rate.
  ///   - lastKeyFrame: the last key frame of the stream: its `idr_pic_id`, nil where it is unknown, and whether no picture has come
  ///     since.
  package init(frameInterval: Duration, after lastKeyFrame: (id: Int?, isLast: Bool) = (nil, false)) {
    self.frameInterval = frameInterval
    (lastPictureID, isKeyFrameLast) = lastKeyFrame
  }

  /// `true` if pictures of the small rendition are what comes next.
  package var isSmall: Bool { present == .small || leavesOutSince != nil }

  /// Requests a rendition, from its next key frame on.
  package mutating func want(_ rendition: Rendition, at now: Instant) {
    guard rendition != wanted else { return }
    wanted = rendition
    waitsSince = rendition == present ? nil : now
  }

  /// Goes on with full pictures at once: the small rendition does not come, or comes no more.
  package mutating func giveUp() {
    (present, wanted, waitsSince, leavesOutSince, lacksKeyFrame) = (.full, .full, nil, nil, false)
  }

  /// Returns the number of pictures since the last call that the stream has had in neither rendition: the full one was left out, and the
  /// small one could not be taken, or came after the return to full pictures.
  package mutating func takeLost() -> Int {
    defer { lost = 0 }
    return lost
  }

  /// Returns `true` if the stream takes the picture that begins with `unit`, and counts for ``takeLost()``.
  ///
  /// - Parameters:
  ///   - source: the rendition of the picture.
  ///   - keyFrameTime: the time of the small key frame that was announced last.
  ///   - last: the time of the stream's last picture.
  ///   - isLosing: `true` if the viewer has not got the last picture.
  package mutating func takes(
    _ unit: borrowing AccessUnit, of source: Rendition, keyFrameTime: Instant?, after last: Instant?, isLosing: Bool,
    at now: Instant
  ) -> Bool {
    let isTaken = accepts(unit, of: source, keyFrameTime: keyFrameTime, after: last, isLosing: isLosing, at: now)
    switch (source, isTaken) {
    case (.full, true): if leftOut?.end == nil { leftOut?.end = unit.timestamp }
    case (.full, false): if leftOut == nil || leftOut?.end != nil { leftOut = (unit.timestamp, nil) }
    case (.small, false):
      if let leftOut, unit.timestamp >= leftOut.begin, leftOut.end.map({ unit.timestamp < $0 }) ?? true { lost += 1 }
    case (.small, true): break
    }
    return isTaken
  }

  /// Returns `true` if the stream takes the picture, and changes the rendition where it does.
  private mutating func accepts(
    _ unit: borrowing AccessUnit, of source: Rendition, keyFrameTime: Instant?, after last: Instant?, isLosing: Bool,
    at now: Instant
  ) -> Bool {
    if source == present {
      if source == .full, wanted == .small || leavesOutSince != nil, unit.timestamp == keyFrameTime {
        (leavesOutSince, lacksKeyFrame) = (leavesOutSince ?? now, false)
      }
      guard source == .small || leavesOutSince == nil else { return false }
    } else {
      // A stream that lacks full pictures already goes by the small ones, even where it is to return at once.
      guard source == wanted || leavesOutSince != nil, unit.isKeyFrame, last.map({ unit.timestamp > $0 }) ?? true,
        !(isKeyFrameLast || isLosing) || isOther(unit)
      else {
        if source == .small, leavesOutSince != nil, let keyFrameTime, unit.timestamp >= keyFrameTime {
          lacksKeyFrame = true
        }
        return false
      }
      // A key frame from before the request may be too large for the viewer's network: the encoder had another bitrate.
      if source == .full, let waitsSince, now - waitsSince < Self.returnPatience,
        unit.captured < waitsSince || isGap(before: unit, after: last)
      {
        return false
      }
      (present, waitsSince, leavesOutSince, lacksKeyFrame) = (source, source == wanted ? nil : now, nil, false)
    }
    intervals = (intervals.1, last.map { unit.timestamp - $0 })
    isKeyFrameLast = unit.isKeyFrame
    if unit.isKeyFrame { lastPictureID = unit.idrPictureID }
    return true
  }

  /// The time between two pictures of the stream: that of the nominal frame rate, or a longer one, as of a camera in the dark.
  private var usualInterval: Duration {
    guard let before = intervals.0, let last = intervals.1 else { return frameInterval }
    return max(frameInterval, min(before, last))
  }

  /// Returns `true` if the small picture of the frame before `unit` has not come.
  private func isGap(before unit: borrowing AccessUnit, after last: Instant?) -> Bool {
    guard let last else { return false }
    return unit.timestamp - last > Duration(nanoseconds: usualInterval.nanoseconds * 3 / 2)
  }

  private func isOther(_ unit: borrowing AccessUnit) -> Bool {
    guard let lastPictureID, let new = unit.idrPictureID else { return true }
    return new != lastPictureID
  }
}
