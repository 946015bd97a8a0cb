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
    smallRendition = Self.sum(smallRendition, former: former.smallRendition)
    h264Rendition = Self.sum(h264Rendition, former: former.h264Rendition)
    guard let formerCamera = former.camera else { return }
    camera?.losses += formerCamera.losses
    camera?.reopenings += formerCamera.reopenings
    camera?.placeholderFrames += formerCamera.placeholderFrames
    // A camera that was never checked is no longer present, but its former losses count.
    if camera == nil { camera = formerCamera }
  }

  /// Returns the figures of a rendition with the counts of a former one.
  private static func sum(_ present: RenditionStatistics?, former: RenditionStatistics?) -> RenditionStatistics? {
    guard let former else { return present }
    var sum = present ?? former
    guard present != nil else {
      sum.isRunning = false
      return sum
    }
    sum.openings += former.openings
    sum.frames += former.frames
    sum.bytes += former.bytes
    sum.sent += former.sent
    sum.dropped += former.dropped
    sum.missed += former.missed
    sum.failures += former.failures
    sum.processing = sum.processing + former.processing
    sum.encoder = former.encoder + sum.encoder
    return sum
  }
}
