import Media

extension StreamStatistics {
  /// Adds what a former pipeline of the same camera counted, so that no figure falls where another one goes on in its place.
  /// What is so at a time, such as the destinations, stays that of this one.
  public mutating func add(former: StreamStatistics) {
    captured += former.captured
    encoded += former.encoded
    keyFrames += former.keyFrames
    unwatched += former.unwatched
    thinned += former.thinned
    sent += former.sent
    encoderBusy = encoderBusy + former.encoderBusy
    encodedBytes += former.encodedBytes
    encoder = encoder + former.encoder
    drops.merge(former.drops, uniquingKeysWith: +)
    distributions.merge(former.distributions, uniquingKeysWith: +)
    departed = departed + former.delivered
    keyFrameRequests.asked += former.keyFrameRequests.asked
    keyFrameRequests.granted += former.keyFrameRequests.granted
    strangers += former.strangers
    guard let formerCamera = former.camera else { return }
    camera?.losses += formerCamera.losses
    camera?.reopenings += formerCamera.reopenings
    camera?.placeholderFrames += formerCamera.placeholderFrames
    // One that never was looked at is no camera any more, and has still lost what it had lost.
    if camera == nil { camera = formerCamera }
  }
}
