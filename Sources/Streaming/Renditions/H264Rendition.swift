import Encoding
package import Media
package import Platform
import Synchronization

/// The pictures in H.264 of a stream of another codec, for viewers that cannot decode that codec.
///
/// They have an encoder and a thread (`nj-h264`), which exist while the track has a viewer and for ``RenditionThread/restTime`` after,
/// and a ``Track`` of their own. The encode stage offers each frame before it encodes the frame, or before it leaves out an unwatched
/// one. While the rendition rests, that costs two loads. Otherwise the stage copies or scales the frame, and the newest copy waits for
/// the encoder.
package final class H264Rendition: ThreadedRendition, @unchecked Sendable {
  // Sendable: the encoder's thread alone uses what is named so, and the lock of `thread` guards what is named so. All else is constant,
  // atomic or under a mutex.

  /// The track of the pictures. It is none of ``Pipeline/tracks``.
  let track: Track
  package let thread: RenditionThread
  private let plan: H264Plan
  private let requests: EncoderRequests
  private let sourceSize: PictureSize
  private let keyFrameInterval: Duration
  /// The stream's bits a second, and `true` if the pictures are half as wide and high.
  private let bitrate: Atomic<Int>
  private let isHalf = Atomic(false)
  /// The processors that the program may use; nil for any number.
  private let processors = Mutex<Processors?>(nil)

  private struct Processors: Sendable {
    let room: any ProcessorRoom
    /// Returns the processors that the stream's own encoder would give up.
    let reserve: @Sendable () -> Double
  }

  // Under the lock of `thread`.
  private var color: ColorDescription
  /// The size to which the stream's pictures are restricted, of those that are not rotated.
  private var limit: PictureSize
  /// The size of the pictures, of those that are not rotated.
  private var target: PictureSize

  // The encoder's thread's own.
  private var clock: KeyFrameClock
  /// The processors of the present encoder; nil before the first one.
  private var grant: ProcessorGrant?
  private var review: SizeReview

  /// Creates a rendition that rests.
  ///
  /// - Parameters:
  ///   - requests: the requests of the track's viewers.
  ///   - sourceSize: the size of the source's frames.
  init(
    _ plan: H264Plan, track: Track, requests: EncoderRequests, sourceSize: PictureSize, keyFrameInterval: Duration
  ) {
    (self.plan, self.track, self.requests) = (plan, track, requests)
    (self.sourceSize, self.keyFrameInterval) = (sourceSize, keyFrameInterval)
    bitrate = Atomic(plan.configuration.bitrate)
    (color, limit, target) = (plan.configuration.color, sourceSize, sourceSize)
    clock = KeyFrameClock(interval: keyFrameInterval)
    review = SizeReview(patience: plan.sizePatience)
    // The processors of the camera's threads: the thread that admits the first viewer may be a server's.
    thread = RenditionThread(
      .h264, requests, frameRate: plan.configuration.frameRate,
      reducer: FrameReducer(capacity: 3, copiesUnchanged: true), on: ProcessorSet.ofThread(), pauses: plan.pauses,
      startThread: plan.startThread)
    requests.noteBitrate(plan.configuration.bitrate)
  }

  // MARK: Any thread

  /// The figures so far; nil if there was no encoder yet, and none has failed.
  var statistics: RenditionStatistics? { thread.statistics(size: thread.monitor.locked { target }) }

  /// The parameter sets of the next pictures, as far as they are known; nil where there is no encoder.
  var parameterSets: ParameterSets? { track.sendStage.parameterSets?.sets }

  /// Sets the processors that the program may use.
  ///
  /// - Parameters:
  ///   - room: the processors that are left.
  ///   - reserve: returns the processors that the stream's own encoder would give up.
  func setRoom(_ room: any ProcessorRoom, reserve: @escaping @Sendable () -> Double) {
    processors.withLock { $0 = Processors(room: room, reserve: reserve) }
  }

  /// The reason why a viewer that came now would get nothing; nil where it would get pictures. Nothing is granted yet.
  var refusal: H264Refusal? {
    if let obstacle = plan.obstacle { return .noEncoder(obstacle) }
    let present = thread.present
    guard present != .opening, present != .ready else { return nil }
    let now = Instant.now()
    if !thread.isPossible(at: now), let failure = thread.figures.withLock({ $0.failure }) {
      return .failed(failure, retry: thread.pause(at: now))
    }
    let limit = thread.monitor.locked { self.limit }
    let (left, rate) = (presentRoom, plan.configuration.frameRate)
    guard H264Plan.size(of: limit, at: rate, room: left) == nil else { return nil }
    let size = H264Plan.leastSize(of: limit)
    return .processors(size: size, needed: H264Plan.processors(for: size, at: rate), room: left)
  }

  /// The processors that are left for the encoder, without its own.
  private var presentRoom: Double {
    // Outside the lock: both take others.
    guard let processors = self.processors.withLock({ $0 }) else { return .infinity }
    return processors.room.room + processors.reserve()
  }

  /// Notes that the track has viewers or none. The first one has the encoder made.
  func setWatched(_ isWatched: Bool) {
    guard isWatched else { return thread.letRest(at: .now()) }
    thread.keep(until: nil)
    thread.start(self)
  }

  /// Makes the next picture a key frame.
  func requestKeyFrame() { requests.setKeyFrame() }

  /// Follows the bitrate of the stream.
  func follow(bitrate: Int) {
    self.bitrate.store(bitrate, ordering: .relaxed)
    applyBitrate()
  }

  private func applyBitrate() {
    let full = bitrate.load(ordering: .relaxed)
    let own = isHalf.load(ordering: .relaxed) ? SmallRendition.bitrate(of: full) : full
    track.sendStage.bitrate.store(own, ordering: .relaxed)
    requests.setBitrate(own)
  }

  /// Follows the color description of the stream.
  func follow(color: ColorDescription) {
    thread.renew {
      defer { self.color = color }
      return self.color != color
    }
  }

  /// Follows the size to which the stream's pictures are restricted.
  func follow(size: PictureSize) {
    thread.renew {
      defer { limit = size }
      return limit != size
    }
  }

  /// Ends the encoder and the track for good.
  func close() {
    thread.close()
    track.close()
  }

  /// Waits until the encoder has ended after ``close()``, but no longer than ``RenditionThread/endPatience``.
  func waitUntilEnd() {
    track.waitUntilEnd()
    thread.waitUntilEnd()
  }

  // MARK: The encode stage

  /// Copies or scales a frame for the encoder, where there is one. The frame replaces one that still waits. Where viewers wait because
  /// the encoder's thread could not be started, the thread is started again.
  func offer(_ frame: borrowing Frame) {
    guard thread.isReady else { return thread.startAgain(self) }
    guard frame.coded == nil else { return }
    let target = thread.monitor.locked { self.target }
    let isUpright = frame.rotatedSize == sourceSize
    thread.offer(frame, size: isUpright ? target : PictureSize(width: target.height, height: target.width))
  }

  // MARK: The encoder's thread

  package var makeEncoder: Pipeline.MakeRenditionEncoder { plan.makeEncoder }

  package func prepare(isAnew: Bool) throws -> (EncoderConfiguration, CodedPictureQueue) {
    let (color, limit) = thread.latest { (self.color, self.limit) }
    let size = takeProcessors(for: limit, isAnew: isAnew)
    try thread.reducer.prepare(from: sourceSize, to: size)
    thread.monitor.locked { target = size }
    var configuration = plan.configuration
    let turns = configuration.size != sourceSize
    (configuration.size, configuration.color) = (
      turns ? PictureSize(width: size.height, height: size.width) : size, color
    )
    configuration.bitrate = size == limit ? configuration.bitrate : SmallRendition.bitrate(of: configuration.bitrate)
    isHalf.store(size != limit, ordering: .relaxed)
    applyBitrate()
    clock = KeyFrameClock(interval: keyFrameInterval)
    if !isAnew { review = SizeReview(patience: plan.sizePatience) }
    review.begin(isHalf: size != limit, at: .now())
    return (configuration, track.pictures)
  }

  /// Takes the processors for the full size where as many are left, else for half of it. Returns the size.
  private func takeProcessors(for limit: PictureSize, isAnew: Bool) -> PictureSize {
    guard let processors = self.processors.withLock({ $0 }) else { return limit }
    let (reserve, rate) = (processors.reserve(), plan.configuration.frameRate)
    // Where the room has shrunk since the viewer came, the smaller pictures are the best that there is.
    var size = H264Plan.leastSize(of: limit)
    // An encoder that has failed, or rested, has no processors any more.
    grant = processors.room.take(inPlaceOf: isAnew ? grant : nil) { left in
      size = H264Plan.size(of: limit, at: rate, room: left + reserve) ?? size
      return H264Plan.processors(for: size, at: rate)
    }
    return size
  }

  package func isKeyFrame(_ waiting: borrowing RenditionFrame, frameInterval: Duration) -> Bool {
    if requests.takeKeyFrame() { clock.request() }
    let timestamp = waiting.frame.timestamp
    let isDue = clock.isDue(at: timestamp, frameInterval: frameInterval)
    if isDue { clock.keyFrameDelivered(at: timestamp) }
    return isDue
  }

  /// Returns `true` if the pictures have half the size, and the processors have sufficed for the full size long enough.
  package func isOutdated(at now: Instant) -> Bool {
    guard review.isDue(at: now) else { return false }
    let limit = thread.monitor.locked { self.limit }
    let needed = H264Plan.processors(for: limit, at: plan.configuration.frameRate)
    return review.note(suffices: needed <= presentRoom + (grant?.processors ?? 0), at: now)
  }
}
