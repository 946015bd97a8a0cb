import CLinux
import Glibc
import Media
import RTP
import SRTP
import Synchronization
import Threading

/// Packetizes coded pictures, sends them to every viewer, and answers what viewers say by RTCP. Runs on its own thread,
/// which waits for nothing but the next of all these.
final class SendStage: @unchecked Sendable {
  // Sendable: what others use is under a mutex or atomic; all else is used by the send thread alone once that runs.
  let pictures: CodedPictureQueue
  let statistics: StatisticsRecorder
  let canonicalName: String
  let heldLimit: Int
  /// The part of a frame interval over which a large frame is spread.
  let pacing: Double
  let frameInterval: MediaTime
  /// What it does without.
  let without: Set<Optimization>
  let requests: EncoderRequests
  let parameterSetCache = ParameterSetCache()
  /// How often the cache had changed when ``currentParameterSets`` was last replaced.
  var notedChanges: Int
  let repeatsParameterSets = Atomic(false)
  let orders = Mutex<[Order]>([])
  let hasOrders = Atomic(false)
  /// Bits a second that the encoder was last asked for.
  let bitrate: Atomic<Int>
  /// The parameter sets of the stream, replaced whenever a picture brings others, with a count of the changes.
  let currentParameterSets: Mutex<(sets: ParameterSets, changes: Int)>

  var outputs: [RTPOutput] = []
  var viewers: [ViewerID: (viewer: Viewer, output: RTPOutput)] = [:]
  var ports: [LocalPorts] = []
  /// Pictures that some viewer has not got whole, the oldest first.
  var held: [CodedPicture] = []
  let blocked: BlockedViewers
  /// RTCP of viewers, and datagrams of strangers.
  let input: DescriptorSet
  /// Until when nothing is read, because there was too much to read.
  var inputRests: MediaTime?
  let datagram = UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 8)
  var limiter = KeyFrameRequestLimiter()
  var nextKeepAlive = MediaTime.zero
  /// Whether there was a picture: the first one is a key frame, whether somebody asks for it or not.
  var hasHadPicture = false
  /// The last frame, until all of it has left.
  var lastFrame: FrameTimes?
  /// What became of the parts of a picture that is still being made.
  var openOutcome = Outcome()

  struct FrameTimes {
    let timestamp: MediaTime
    let captured: MediaTime
    let encoded: MediaTime
    let begin: MediaTime
    /// How long packetizing took, for all streams.
    let packetizing: MediaTime
  }

  /// What is asked of the send thread.
  enum Order: @unchecked Sendable {
    // Sendable: what it carries is used by the send thread alone from then on.
    case add(Newcomer)
    case remove(ViewerID, goodbye: Bool)
    /// A stream that was held is held no longer.
    case release(StreamProtection)
    case watch(LocalPorts)
    case keyFrame
  }

  /// How often a transport stream without pictures repeats its clock: ISO/IEC 13818-1 allows 100 ms.
  static let keepAliveInterval = MediaTime(nanoseconds: 80_000_000)
  /// How long reading rests after there was more than is read at a time, so that a flood costs a bounded part of a core.
  static let inputRest = MediaTime(nanoseconds: 10_000_000)
  /// The longest wait without any reason to wake.
  static let idleInterval = MediaTime(nanoseconds: 1_000_000_000)
  /// How long after the last packet BYE follows at the end.
  static let goodbyeDelay = MediaTime(nanoseconds: 100_000_000)
  /// The token of strangers' datagrams; viewers count from 1.
  static let strangersToken: UInt64 = 0

  /// - Parameters:
  ///   - heldLimit: Pictures that viewers may keep at most; `pictures` has room for so many.
  ///   - pacing: The part of a frame interval over which a large frame is spread; 0 for not at all.
  ///   - without: What it is to do without.
  init(
    pictures: CodedPictureQueue, heldLimit: Int, encoder: EncoderConfiguration, parameterSets: ParameterSets,
    pacing: Double, canonicalName: String, requests: EncoderRequests, statistics: StatisticsRecorder,
    without: Set<Optimization> = []
  ) throws {
    self.without = without
    frameInterval = encoder.frameRate.interval
    bitrate = Atomic(encoder.bitrate)
    self.requests = requests
    self.pictures = pictures
    self.heldLimit = heldLimit
    self.pacing = pacing
    self.canonicalName = canonicalName
    self.statistics = statistics
    parameterSetCache.update(parameterSets)
    notedChanges = parameterSetCache.changes
    currentParameterSets = Mutex((parameterSets, 0))
    blocked = try BlockedViewers()
    input = try DescriptorSet(.input)
    held.reserveCapacity(heldLimit + 1)
  }

  deinit {
    datagram.deallocate()
  }

  // MARK: Orders, from any thread

  /// Adds a viewer, who begins with the next key frame.
  func add(_ newcomer: Newcomer) { order(.add(newcomer)) }

  /// Lets a stream go that was held, once it has no viewer.
  func release(_ protection: StreamProtection) { order(.release(protection)) }

  /// Lets a viewer go.
  func remove(_ id: ViewerID, goodbye: Bool) { order(.remove(id, goodbye: goodbye)) }

  /// Counts what comes to `ports` from others than viewers.
  func watch(_ ports: LocalPorts) { order(.watch(ports)) }

  /// Asks for a key frame on a viewer's behalf, within the limit on such requests.
  func requestKeyFrame() { order(.keyFrame) }

  /// Puts the parameter sets before the next picture, whatever kind it is: for a receiver that has joined without
  /// them.
  func repeatParameterSets() {
    repeatsParameterSets.store(true, ordering: .relaxed)
  }

  /// A viewer who is to be added.
  struct Newcomer {
    let transport: any PacketTransport
    let figures: ViewerFigures
    let kind: RTPOutput.Kind
    /// What the viewer protects RTCP by; nil is the stream's key.
    var controlKey: SRTPKey?
    /// Whether packets come again by a stream of their own (RFC 4588).
    var hasRetransmissionStream = false
    /// Whether it may have got packets of the stream before, which must not come to it twice.
    var isReturning = false
    /// Is told of the first packet.
    var onStart: (@Sendable (StreamStart) -> Void)?
    /// Is told when the viewer says BYE.
    var onGoodbye: (@Sendable () -> Void)?
  }

  private func order(_ order: Order) {
    orders.withLock { $0.append(order) }
    hasOrders.store(true, ordering: .releasing)
    pictures.arrival.fire()
  }

  // MARK: The thread

  /// Runs until the queue is closed and empty; what is on its way is sent, as far as there is room, and every viewer
  /// is told.
  func run() {
    var now = MediaTime.now()
    loop: while true {
      if hasOrders.load(ordering: .acquiring) { carryOutOrders() }
      // Pictures before all else that may have come, because each call in front of them delays them.
      var isIdle = false
      for _ in 0..<CodedPictureQueue.depth where !isIdle {
        // Before the queue lends one of them again, as another picture.
        held.removeAll { $0.holders == 0 }
        switch pictures.take() {
        case .picture(let picture):
          // It may have come after the last look at the clock.
          now = max(now, picture.encoded)
          if picture.part.isFirstPart {
            // Whoever was added before the picture came gets it.
            if hasOrders.load(ordering: .acquiring) { carryOutOrders() }
            begin(picture, at: now)
          }
          if picture.isBroken { breakOff(picture) } else { now = send(picture, at: now) }
        case .none: isIdle = true
        case .closed: break loop
        }
      }
      keepTime(now)
      let hasInput = wait(until: isIdle ? nextDeadline(now) : now, from: now)
      now = .now()
      if hasInput { read(at: now) }
      blocked.withReady { viewer in viewers[viewer.id]?.output.resume(viewer, at: now) }
    }
    end()
  }

  /// Sleeps until something arrives, there is room again, or `deadline`; it is `now`.
  ///
  /// - Returns: Whether there is something to read.
  private func wait(until deadline: MediaTime, from now: MediaTime) -> Bool {
    let readable = Int16(POLLIN)
    return withUnsafeTemporaryAllocation(of: pollfd.self, capacity: 3) { descriptors in
      descriptors[0] = pollfd(fd: pictures.arrival.fileDescriptor, events: readable, revents: 0)
      descriptors[1] = pollfd(fd: blocked.room.fileDescriptor, events: readable, revents: 0)
      // A negative descriptor is not looked at.
      descriptors[2] = pollfd(fd: inputRests == nil ? input.fileDescriptor : -1, events: readable, revents: 0)
      let rest = max(0, (deadline - now).nanoseconds)
      guard nightjar_poll(descriptors.baseAddress, 3, rest) > 0 else { return false }
      if descriptors[0].revents != 0 { pictures.arrival.clear() }
      return descriptors[2].revents != 0
    }
  }

  /// When there is something to do though nothing arrives.
  private func nextDeadline(_ now: MediaTime) -> MediaTime {
    var deadline = now + Self.idleInterval
    for output in outputs where !output.viewers.isEmpty {
      if output.kind.payload == .mp2t { deadline = min(deadline, nextKeepAlive) }
      if output.hasBegun { deadline = min(deadline, output.reportDeadline) }
      if let pacing = output.pacingDeadline { deadline = min(deadline, pacing) }
      if let replay = output.replayDeadline { deadline = min(deadline, replay) }
    }
    if let limited = limiter.deadline { deadline = min(deadline, limited) }
    if let retry = blocked.deadline(at: now) { deadline = min(deadline, retry) }
    if let inputRests { deadline = min(deadline, inputRests) }
    return deadline
  }

  /// Does what is due.
  private func keepTime(_ now: MediaTime) {
    for output in outputs where !output.viewers.isEmpty {
      output.pace(at: now)
      output.continueReplays(at: now)
      output.report(at: now, bitrate: bitrate.load(ordering: .relaxed))
      if now >= nextKeepAlive { output.keepAlive(at: now) }
    }
    recordLastFrame(at: now)
    if now >= nextKeepAlive { nextKeepAlive = now + Self.keepAliveInterval }
    if limiter.poll(at: now) { requests.setKeyFrame() }
    if let rests = inputRests, now >= rests { inputRests = nil }
    blocked.withEach { viewer in
      guard viewer.expire(at: now) else { return }
      blocked.note(viewer)
      viewers[viewer.id]?.output.reclaim()
    }
  }

  /// Sends what is on its way, for as long as a viewer's patience lasts, and says goodbye.
  private func end() {
    if hasOrders.load(ordering: .acquiring) { carryOutOrders() }
    var now = MediaTime.now()
    let deadline = now + Viewer.patience
    for output in outputs { output.endPacing(at: now) }
    recordLastFrame(at: now)
    while let retry = blocked.deadline(at: now), now < deadline {
      inputRests = deadline
      _ = wait(until: min(retry, deadline), from: now)
      now = .now()
      blocked.withReady { viewer in viewers[viewer.id]?.output.resume(viewer, at: now) }
    }
    // BYE goes to another port: a player that reads that first would leave the last picture unread.
    if outputs.contains(where: \.hasBegun) { usleep(UInt32(Self.goodbyeDelay.nanoseconds / 1000)) }
    for id in Array(viewers.keys) { leave(id, goodbye: true) }
  }
}
