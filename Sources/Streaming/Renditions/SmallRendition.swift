import Encoding
import Media
import Platform
import Synchronization

/// The small rendition of a stream's pictures: half the width, half the height and a third of the bitrate, by an encoder of its
/// own on a thread of its own (`nj-small`). Both exist only while some viewer's network needs them.
///
/// The encode stage offers each frame after it has encoded the frame. While the rendition rests, that costs two loads. Otherwise
/// the stage scales the frame, and the newest scaled frame waits for the encoder. A key frame is announced before the stage
/// encodes the frame, so the send stage can pass a viewer from one rendition to the other between two pictures.
final class SmallRendition: @unchecked Sendable {
  // Sendable: `monitor` guards the slot, the queue's creation and the color. What the encode stage alone uses is named so. All
  // else is constant, atomic or under a mutex. What is not private is for the thread's part, in the file beside this one.

  /// The state of the encoder.
  enum Phase: Int {
    case resting, opening, ready, failed, closed
  }

  /// A scaled frame on its way to the encoder.
  struct SmallFrame: ~Copyable {
    let frame: Frame
    let isKeyFrame: Bool
  }

  /// The requests to the encoder.
  let requests = EncoderRequests()
  /// The failures of the encoder, and their ends, for the terminal.
  let events = EventQueue<RenditionEvent>()
  /// The configuration of the encoder, whose bitrate, color, effort and quality level follow those of the stream.
  let configuration: EncoderConfiguration
  /// The most pictures that viewers may keep.
  let heldLimit: Int

  let makeEncoder: Pipeline.MakeSmallEncoder
  let unitBytes: Int
  let sourceSize: PictureSize
  let fullPictures: CodedPictureQueue
  let reducer = FrameReducer(capacity: 3)
  private let phase = Atomic(Phase.resting.rawValue)
  /// `true` while the camera codes the pictures, and there are no samples to scale.
  private let isBlind = Atomic(false)
  /// `true` while the full pictures are restricted to a size that is no larger.
  private let isNoSmaller = Atomic(false)
  /// The time in nanoseconds until which the encoder is needed, and that of the next attempt after a failure.
  let neededUntil = Atomic<Int64>(0)
  let retry = Atomic<Int64>(0)
  /// The timestamp in nanoseconds of the newest key frame that was announced; -1 for none.
  private let announced = Atomic<Int64>(-1)
  let figures = Mutex(RenditionStatistics())
  /// The failures of the encoder in a row.
  let failures = Mutex(EncoderFailures())
  /// The pictures on their way to the send stage. Written once, before `hasQueue`.
  var queue: CodedPictureQueue?
  let hasQueue = Atomic(false)

  let monitor = Monitor()
  var slot: SmallFrame?
  /// `true` if the frame in the slot is a key frame.
  private var holdsKeyFrame = false
  private(set) var color: ColorDescription
  /// The threads that have begun and not ended: mostly one.
  var threads = 0
  /// `true` if the encoder has another color than the stream, and is to be made anew.
  var isStale = false

  // The encode stage's own.
  private var clock: KeyFrameClock
  /// `true` if a key frame was announced and has not gone to the encoder.
  private var isKeyFrameOwed = false

  /// The part of the stream's bitrate.
  static let bitrateShare = 1.0 / 3
  /// The least width and height: two macroblocks.
  static let leastLength = 32
  /// The time for which the encoder is kept after it was last needed.
  static let restTime = Duration.seconds(10)
  /// The longest wait for the end of an encoder.
  static let endPatience = Duration.seconds(2)

  /// Creates a rendition that rests; nil where the stream cannot have one: its pictures are too small, or its encoder holds
  /// pictures back, or has no bitrate to divide.
  ///
  /// - Parameters:
  ///   - full: the configuration of the stream's encoder.
  ///   - sourceSize: the size of the source's frames.
  ///   - heldLimit: the most pictures that viewers may keep.
  ///   - fullPictures: the queue of the full pictures, whose reader takes the small ones too.
  ///   - makeEncoder: makes the encoder, on the thread `nj-small`.
  init?(
    of full: EncoderConfiguration, sourceSize: PictureSize, keyFrameInterval: Duration, heldLimit: Int,
    beside fullPictures: CodedPictureQueue, makeEncoder: @escaping Pipeline.MakeSmallEncoder
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
    requests.noteBitrate(configuration.bitrate)
    follow(EncoderRestrictions(effort: full.effort))
  }

  func move(to phase: Phase) { self.phase.store(phase.rawValue, ordering: .releasing) }

  var present: Phase { Phase(rawValue: phase.load(ordering: .acquiring)) ?? .closed }

  // MARK: Any thread

  /// The figures so far; nil if there was no encoder yet.
  var statistics: RenditionStatistics? {
    var statistics = figures.withLock { $0 }
    guard statistics.openings > 0 || statistics.failure != nil else { return nil }
    statistics.size = configuration.size
    statistics.isRunning = present == .ready
    return statistics
  }

  /// The time for which an encoder in software was at work so far.
  var processing: Duration { figures.withLock { $0.processing } }

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
    monitor.locked {
      guard self.color != color else { return }
      (self.color, isStale) = (color, true)
      monitor.signal()
    }
  }

  /// Follows the size to which the full pictures are restricted.
  func follow(size: PictureSize) {
    isNoSmaller.store(size.pixels <= Self.size(of: sourceSize).pixels, ordering: .relaxed)
  }

  /// Ends the encoder for good.
  func close() {
    let queue = monitor.locked {
      move(to: .closed)
      monitor.signal()
      return self.queue
    }
    queue?.close()
  }

  /// Waits until the encoder has ended after ``close()``, but no longer than ``endPatience``: its driver may hang.
  func waitUntilEnd() {
    let deadline = Instant.now() + Self.endPatience
    monitor.locked {
      while threads > 0, monitor.wait(until: deadline) {}
    }
  }

  // MARK: The send stage

  /// Returns `true` if the stream can have the rendition. It cannot while the camera codes the pictures, or while the full pictures
  /// are as small, as on a host that is too hot; nor for a while after an encoder has failed.
  func isPossible(at now: Instant) -> Bool {
    guard !isBlind.load(ordering: .relaxed), !isNoSmaller.load(ordering: .relaxed) else { return false }
    return switch present {
    case .resting, .opening, .ready: true
    case .failed: isDueAgain(at: now)
    case .closed: false
    }
  }

  private func isDueAgain(at now: Instant) -> Bool { now.nanoseconds >= retry.load(ordering: .relaxed) }

  /// `true` if the encoder works, so that a requested key frame will come.
  var isReady: Bool { present == .ready }

  /// The timestamp of the newest key frame that was announced; nil before the first one.
  var keyFrameTime: Instant? {
    let time = announced.load(ordering: .acquiring)
    return time < 0 ? nil : Instant(nanoseconds: time)
  }

  /// Notes that some viewer needs the rendition at `now`, and has the encoder made if there is none.
  func need(at now: Instant) {
    neededUntil.store((now + Self.restTime).nanoseconds, ordering: .relaxed)
    switch present {
    case .resting: break
    case .failed where isDueAgain(at: now): break
    default: return
    }
    let isStarting = monitor.locked { () -> Bool in
      guard present == .resting || present == .failed else { return false }
      move(to: .opening)
      threads += 1
      return true
    }
    guard isStarting else { return }
    do throws(SystemFailure) {
      // No marks: a frame's way in a trace is that of its full picture.
      try NamedThread("nj-small") { [self] in run() }.detach()
    } catch {
      fail("no thread: \(error)")
      noteThreadEnd()
    }
  }

  /// Counts a viewer that has waited for an announced key frame in vain.
  func noteMissed() { figures.withLock { $0.missed += 1 } }

  /// The queue of coded pictures; nil before the first encoder.
  var pictures: CodedPictureQueue? { hasQueue.load(ordering: .acquiring) ? queue : nil }

  // MARK: The encode stage

  /// Notes a frame before it is encoded, and announces a key frame where one is due.
  func begin(at timestamp: Instant, isCoded: Bool) {
    if isBlind.load(ordering: .relaxed) != isCoded { isBlind.store(isCoded, ordering: .relaxed) }
    guard phase.load(ordering: .acquiring) == Phase.ready.rawValue, !isCoded else { return }
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
    guard phase.load(ordering: .acquiring) == Phase.ready.rawValue, frame.coded == nil else { return }
    let isKeyFrame = isKeyFrameOwed && announced.load(ordering: .relaxed) == frame.timestamp.nanoseconds
    let reduced: Frame
    do throws(EncoderError) {
      reduced = try reducer.reduce(frame, to: Self.size(of: frame.rotatedSize))
    } catch {
      return figures.withLock { $0.dropped += 1 }
    }
    if isKeyFrame {
      isKeyFrameOwed = false
      clock.keyFrameDelivered(at: frame.timestamp)
    }
    guard put(SmallFrame(frame: reduced, isKeyFrame: isKeyFrame)) else { return }
    figures.withLock { $0.dropped += 1 }
  }

  /// Puts a frame into the slot. Returns `true` if this frame, or the one there, is lost. An encoder that takes every second frame
  /// would else never get a key frame that falls on the others.
  private func put(_ frame: consuming SmallFrame) -> Bool {
    let isKeyFrame = frame.isKeyFrame
    var incoming: SmallFrame? = consume frame
    let displaced = monitor.locked { () -> SmallFrame? in
      guard slot == nil || !holdsKeyFrame || isKeyFrame else { return incoming.take() }
      let displaced = slot.take()
      slot = incoming.take()
      holdsKeyFrame = isKeyFrame
      return displaced
    }
    monitor.signal()
    return displaced != nil
  }
}
