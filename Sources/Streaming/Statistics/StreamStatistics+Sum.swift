import Media
import Platform

extension StreamStatistics {
  /// Adds the counts of a former pipeline of the same camera, so that no figure falls where this one replaces it.
  /// Present facts, such as the destinations, stay those of this one.
  package mutating func add(former: StreamStatistics) {
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
    unknownSenders += former.unknownSenders
    if let former = former.smallRendition {
      if smallRendition == nil {
        smallRendition = former
        smallRendition?.isRunning = false
      } else {
        smallRendition?.openings += former.openings
        smallRendition?.frames += former.frames
        smallRendition?.bytes += former.bytes
        smallRendition?.dropped += former.dropped
        smallRendition?.missed += former.missed
        smallRendition?.failures += former.failures
        smallRendition?.processing = (smallRendition?.processing ?? .zero) + former.processing
        smallRendition?.encoder = former.encoder + (smallRendition?.encoder ?? EncoderCounters())
      }
    }
    guard let formerCamera = former.camera else { return }
    camera?.losses += formerCamera.losses
    camera?.reopenings += formerCamera.reopenings
    camera?.placeholderFrames += formerCamera.placeholderFrames
    // A camera that was never checked is no longer present, but its former losses count.
    if camera == nil { camera = formerCamera }
  }
}
