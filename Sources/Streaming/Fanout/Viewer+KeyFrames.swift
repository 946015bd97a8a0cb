package import Platform

/// The key frames that a viewer needs.
extension Viewer {
  /// Notes that a key frame was requested on the viewer's behalf.
  func keyFrameRequested(at now: Instant) {
    nextKeyFrameRequest = now + requestInterval
  }

  /// Returns `true` if the viewer needs a key frame and can take it now. Called after each frame.
  package func wantsKeyFrame(at now: Instant) -> Bool {
    guard awaitsKeyFrame || lacksKeyFrame, !isUnreachable, !isBlocked, now >= nextKeyFrameRequest,
      transport.framesInFlight == 0, bandwidth?.isPaused != true
    else { return false }
    lacksKeyFrame = false
    // A need that comes soon after a request shows that the request has not helped.
    let isAgain = now - nextKeyFrameRequest < Self.lastRequestInterval
    requestInterval =
      isAgain ? min(requestInterval + requestInterval, Self.lastRequestInterval) : Self.firstRequestInterval
    nextKeyFrameRequest = now + requestInterval
    return true
  }

  /// The longest interval at which key frames are requested for receivers that come one after another.
  private static let arrivalInterval = Duration.seconds(2)

  /// Shortens the interval between requests, because the former ones have helped. A limit remains, for a program that
  /// comes and goes all the time.
  func forgetRequests() {
    guard requestInterval > Self.arrivalInterval else { return }
    nextKeyFrameRequest = nextKeyFrameRequest - (requestInterval - Self.arrivalInterval)
    requestInterval = Self.arrivalInterval
  }

  /// Returns `true`, once, if a receiver has joined at the viewer's port in the middle of the stream.
  func takeArrival() -> Bool {
    defer { lacksClock = false }
    return lacksClock
  }
}
