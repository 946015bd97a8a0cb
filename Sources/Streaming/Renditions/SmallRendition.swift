import Encoding
package import Media
package import Platform
import Synchronization

/// The small rendition of a stream's pictures: half the width, half the height and a third of the bitrate, by an encoder of its
/// own on a thread of its own (`nj-small`). Both exist only while some viewer's network needs them.
///
/// The encode stage offers each frame after it has encoded the frame. While the rendition rests, that costs two loads. Otherwise
/// the stage scales the frame, and the newest scaled frame waits for the encoder. A key frame is announced before the stage
/// encodes the frame, so the send stage can pass a viewer from one rendition to the other between two pictures.
package final class SmallRendition: ThreadedRendition, @unchecked Sendable {
  // Sendable: what the encode stage alone uses is named so, and so is what the lock of `thread` guards. All else is constant, atomic or
  // under a mutex.

  package let thread: RenditionThread
  /// The requests to the encoder.
  let requests = EncoderRequests()
  /// The configuration of the encoder, whose bitrate, color, effort and quality level follow those of the stream.
  package let configuration: EncoderConfiguration
  package let makeEncoder: Pipeline.MakeRenditionEncoder
  /// The most pictures that viewers may keep.
  private let heldLimit: Int
  private let unitBytes: Int
  private let sourceSize: PictureSize
  private let fullPictures: CodedPictureQueue
  /// `true` while the camera codes the pictures, and there are no samples to scale.
  private let isBlind = Atomic(false)
  /// `true` while the full pictures are restricted to a size that is no larger.
  private let isNoSmaller = Atomic(false)
  /// The timestamp in nanoseconds of the newest key frame that was announced; -1 for none.
  private let announced = Atomic<Int64>(-1)
  /// The pictures on their way to the send stage. Written once, before `hasQueue`.
  private var queue: CodedPictureQueue?
  private let hasQueue = Atomic(false)
  /// The color description of the stream, under the lock of `thread`.
  private var color: ColorDescription

  // The encode stage's own.
  private var clock: KeyFrameClock
  /// `true` if a key frame was announced and has not gone to the encoder.
  private var isKeyFrameOwed = false

  /// The part of the stream's bitrate.
  static let bitrateShare = 1.0 / 3
  /// The least width and height: two macroblocks.
  static let leastLength = 32

  /// Creates a rendition that rests; nil where the stream cannot have one: its pictures are too small, or its encoder holds
  /// pictures back, or has no bitrate to divide.
  ///
  /// - Parameters:
  ///   - full: the configuration of the stream's encoder.
  ///   - sourceSize: the size of the source's frames.
  ///   - heldLimit: the most pictures that viewers may keep.
  ///   - fullPictures: the queue of the full pictures, whose reader takes the small ones too.
  ///   - makeEncoder: makes the encoder, on the thread `nj-small`.
  package init?(
    of full: EncoderConfiguration, sourceSize: PictureSize, keyFrameInterval: Duration, heldLimit: Int,
    beside fullPictures: CodedPictureQueue, makeEncoder: @escaping Pipeline.MakeRenditionEncoder
  ) {
    let size = Self.size(of: full.size)
    guard min(size.width, size.height) >= Self.leastLength, full.lookahead == 0 else { return nil }
    if case .constantQuantizer = full.rateControl { return nil }
    var configuration = full
    configuration.size = size
    configuration.bitrate = Self.bitrate(of: full.bitrate)
    (configuration.slices, configuration.threads, configuration.streamsSlices) = (1, 1, false)
    (configuration.refreshFrames, configuration.effort) = (nil, nil)
    configuration.isSmallRendition = true
    self.configuration = configuration
    (self.sourceSize, self.heldLimit, self.fullPictures) = (sourceSize, heldLimit, fullPictures)
    self.makeEncoder = makeEncoder
    color = full.color
    unitBytes = size.pixels * 3 + 65_536
    clock = KeyFrameClock(interval: keyFrameInterval)
    thread = RenditionThread(.small, requests, frameRate: full.frameRate, reducer: FrameReducer(capacity: 3))
    requests.noteBitrate(configuration.bitrate)
    follow(EncoderRestrictions(effort: full.effort))
  }

  // MARK: Any thread

  /// The figures so far; nil if there was no encoder yet, and none has failed.
  var statistics: RenditionStatistics? { thread.statistics(size: configuration.size) }

  /// The time for which an encoder in software was at work so far.
  var processing: Duration { thread.figures.withLock { $0.processing } }

  /// Follows the bitrate of the stream.
  func follow(bitrate: Int) { requests.setBitrate(Self.bitrate(of: bitrate)) }

  /// Follows the effort and the quality level of the stream's encoder; without them, they are those of its configuration.
  func follow(_ full: EncoderRestrictions) {
    // Always an effort: nil would leave an encoder as it was made.
    let effort = full.effort ?? EncoderSelector.effort(ofPreset: configuration.x264Preset)
    let level = full.vaapiQuality ?? configuration.vaapiQuality
    requests.updateRestrictions(EncoderRestrictions(effort: effort, vaapiQuality: level))
  }

  /// Follows the color description of the stream.
  func follow(color: ColorDescription) {
    thread.renew {
      defer { self.color = color }
      return self.color != color
    }
  }

  /// Follows the size to which the full pictures are restricted.
  package func follow(size: PictureSize) {
    isNoSmaller.store(size.pixels <= Self.size(of: sourceSize).pixels, ordering: .relaxed)
  }

  /// Ends the encoder for good.
  func close() {
    thread.close()
    // From here on, no queue is made.
    pictures?.close()
  }

  // MARK: The send stage

  /// Returns `true` if the stream can have the rendition. It cannot while the camera codes the pictures, or while the full pictures
  /// are as small, as on a host that is too hot; nor for a while after an encoder has failed.
  package func isPossible(at now: Instant) -> Bool {
    guard !isBlind.load(ordering: .relaxed), !isNoSmaller.load(ordering: .relaxed) else { return false }
    return thread.isPossible(at: now)
  }

  /// `true` if the encoder works, so that a requested key frame will come.
  var isReady: Bool { thread.isReady }

  /// The timestamp of the newest key frame that was announced; nil before the first one.
  var keyFrameTime: Instant? {
    let time = announced.load(ordering: .acquiring)
    return time < 0 ? nil : Instant(nanoseconds: time)
  }

  /// Notes that some viewer needs the rendition at `now`, and has the encoder made if there is none.
  func need(at now: Instant) {
    thread.keep(until: now + RenditionThread.restTime)
    // The lock only where there is no thread: this is called for each picture.
    if thread.present == .resting { thread.start(self) }
  }

  /// Counts a viewer that has waited for an announced key frame in vain.
  func noteMissed() { thread.figures.withLock { $0.missed += 1 } }

  /// The queue of coded pictures; nil before the first encoder.
  var pictures: CodedPictureQueue? { hasQueue.load(ordering: .acquiring) ? queue : nil }

  // MARK: The encode stage

  /// Notes a frame before it is encoded, and announces a key frame where one is due.
  func begin(at timestamp: Instant, isCoded: Bool) {
    if isBlind.load(ordering: .relaxed) != isCoded { isBlind.store(isCoded, ordering: .relaxed) }
    guard thread.isReady, !isCoded else { return }
    guard
      isKeyFrameOwed || requests.takeKeyFrame()
        || clock.isDue(at: timestamp, frameInterval: configuration.frameRate.interval)
    else { return }
    isKeyFrameOwed = true
    announced.store(timestamp.nanoseconds, ordering: .releasing)
  }

  /// Scales a frame for the encoder, where there is one. The frame replaces one that still waits; but a key frame waits until the
  /// encoder takes it.
  func offer(_ frame: borrowing Frame) {
    guard thread.isReady, frame.coded == nil else { return }
    let isKeyFrame = isKeyFrameOwed && announced.load(ordering: .relaxed) == frame.timestamp.nanoseconds
    let isTaken = thread.offer(frame, size: Self.size(of: frame.rotatedSize), isKeyFrame: isKeyFrame)
    guard isTaken, isKeyFrame else { return }
    isKeyFrameOwed = false
    clock.keyFrameDelivered(at: frame.timestamp)
  }

  // MARK: The encoder's thread

  package func prepare(isAnew: Bool) throws -> (EncoderConfiguration, CodedPictureQueue) {
    try thread.reducer.prepare(from: sourceSize, to: Self.size(of: sourceSize))
    let queue = try pictures ?? CodedPictureQueue(capacity: unitBytes, held: heldLimit, readWith: fullPictures)
    var configuration = configuration
    let restrictions = requests.takeLatestRestrictions()
    (configuration.effort, configuration.vaapiQuality) = (restrictions.effort, restrictions.vaapiQuality)
    configuration.color = thread.latest {
      // After the end, nobody would close it.
      if self.queue == nil, thread.present != .closed {
        self.queue = queue
        hasQueue.store(true, ordering: .releasing)
      }
      return color
    }
    return (configuration, queue)
  }

  package func isKeyFrame(_ waiting: borrowing RenditionFrame, frameInterval: Duration) -> Bool { waiting.isKeyFrame }

  package func isOutdated(at now: Instant) -> Bool { false }
}
