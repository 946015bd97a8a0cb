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

  /// Begins anew with the shortest interval between requests, because the former ones have helped.
  func forgetRequests() {
    nextKeyFrameRequest = nextKeyFrameRequest - (requestInterval - Self.firstRequestInterval)
    requestInterval = Self.firstRequestInterval
  }

  /// Returns `true`, once, if a receiver has joined at the viewer's port in the middle of the stream.
  func takeArrival() -> Bool {
    defer { lacksClock = false }
    return lacksClock
  }
}
