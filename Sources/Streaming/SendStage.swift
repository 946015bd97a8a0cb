import CLinux
import CTracing
import FrameTracing
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
  private let heldLimit: Int
  /// The part of a frame interval over which a large frame is spread.
  private let pacing: Double
  private let frameInterval: MediaTime
  /// What it does without.
  let without: Set<Optimization>
  let requests: EncoderRequests
  private let parameterSetCache = ParameterSetCache()
  /// How often the cache had changed when ``currentParameterSets`` was last replaced.
  private var notedChanges: Int
  private let repeatsParameterSets = Atomic(false)
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
  private var held: [CodedPicture] = []
  let blocked: BlockedViewers
  /// RTCP of viewers, and datagrams of strangers.
  let input: DescriptorSet
  /// Until when nothing is read, because there was too much to read.
  var inputRests: MediaTime?
  let datagram = UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 8)
  var limiter = KeyFrameRequestLimiter()
  private var nextKeepAlive = MediaTime.zero
  /// Whether there was a picture: the first one is a key frame, whether somebody asks for it or not.
  var hasHadPicture = false
  /// The last frame, until all of it has left.
  private var lastFrame: FrameTimes?
  /// What became of the parts of a picture that is still being made.
  private var openOutcome = Outcome()

  private struct FrameTimes {
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
    /// Is told of the first packet.
    var onStart: (@Sendable (StreamStart) -> Void)?
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

  // MARK: Pictures

  /// Readies for a picture that begins.
  private func begin(_ picture: CodedPicture, at now: MediaTime) {
    hasHadPicture = true
    for output in outputs { output.endPacing(at: now) }
    recordLastFrame(at: now)
    nextKeepAlive = now + Self.keepAliveInterval
    makeRoom()
    openOutcome = Outcome()
    if repeatsParameterSets.exchange(false, ordering: .relaxed) { parameterSetCache.invalidate() }
  }

  /// Sends what is new of a picture, mostly all of it.
  ///
  /// - Returns: When it was sent.
  private func send(_ picture: CodedPicture, at begin: MediaTime) -> MediaTime {
    let part = picture.part
    let before = openOutcome.packets
    openOutcome.packetizing = .zero
    if part.isFirstPart {
      openOutcome.lacksParameterSets = complete(part) { unit, isAnotherStream in
        openOutcome.isAnotherStream = isAnotherStream
        sendToAll(unit, picture, at: begin)
      }
      if part.isKeyFrame { limiter.keyFrameSent() }
    } else {
      sendToAll(part, picture, at: begin)
    }
    if part.isLastPart, !part.isWhole, outputs.contains(where: { !$0.takesParts }) {
      if openOutcome.lacksParameterSets { parameterSetCache.invalidate() }
      complete(picture.accessUnit) { unit, _ in sendToAll(unit, picture, at: .now()) }
    }
    var end = begin
    if before == 0, openOutcome.packets > 0 {
      end = .now()
      let latency = end - part.captured
      statistics.send.withLock { $0.toFirstPacket.record(latency) }
    }
    guard part.isLastPart else { return end }
    openOutcome.isTaken = picture.holders > 1
    if picture.holders > 1 { held.append(picture) }
    let times = FrameTimes(
      timestamp: part.timestamp, captured: part.captured, encoded: picture.encoded, begin: begin,
      packetizing: openOutcome.packetizing)
    let isSent = openOutcome.packets > 0 || openOutcome.isTaken
    // One look at the clock is enough for a picture that was sent whole.
    if before > 0 || openOutcome.packets == 0 || !part.isWhole { end = .now() }
    pictures.release(picture)
    askForKeyFrames(at: begin)
    statistics.send.withLock { $0.pictures += 1 }
    guard !viewers.isEmpty else {
      FrameMark.skipped(times.timestamp, .unsent)
      return end
    }
    if isSent {
      lastFrame = times
      recordLastFrame(at: end)
    } else {
      FrameMark.dropped(times.timestamp, .network)
      statistics.send.withLock { $0.unsent += 1 }
    }
    return end
  }

  /// Ends a picture whose encoder has failed in its middle. The next one is a key frame.
  private func breakOff(_ picture: CodedPicture) {
    for output in outputs { output.breakOff() }
    if picture.holders > 1 { held.append(picture) }
    pictures.release(picture)
    statistics.send.withLock { $0.pictures += 1 }
  }

  /// Lends a picture, or the first part of one, with the parameter sets in front where it needs them, and whether they
  /// are others than before; returns whether it lacked them.
  @discardableResult
  private func complete(
    _ unit: borrowing AccessUnit, _ body: (borrowing AccessUnit, _ isAnotherStream: Bool) -> Void
  ) -> Bool {
    let count = unit.nalUnits.count
    var isCompleted = false
    do throws(ParameterSetError) {
      try parameterSetCache.complete(unit) { completed in
        isCompleted = completed.nalUnits.count > count
        body(completed, noteParameterSets())
      }
    } catch {
      // More NAL units, or longer sets, than the cache holds: no encoder of ours makes them, and a receiver may cope.
      body(unit, false)
    }
    return isCompleted
  }

  /// Records how long the last frame has taken once all of it that is not in anybody's way has left.
  private func recordLastFrame(at end: MediaTime) {
    guard let frame = lastFrame, !outputs.contains(where: \.isPacing) else { return }
    lastFrame = nil
    nightjar_frame_sent(frame.timestamp.nanoseconds, frame.captured.nanoseconds, end.nanoseconds)
    statistics.send.withLock {
      $0.keyFrameRequests = (limiter.requests, limiter.granted)
      $0.frames += 1
      $0.queue.record(frame.begin - frame.encoded)
      $0.packetizing.record(frame.packetizing)
      $0.latency.record(end - frame.begin - frame.packetizing)
      $0.total.record(end - frame.captured)
      $0.recent.record(end - frame.captured)
      if $0.firstPacket == nil { $0.firstPacket = end }
    }
  }

  /// Sends a picture to all; or a part of one to those that take parts, and where it was the last, all of it to the
  /// others.
  private func sendToAll(
    _ unit: borrowing AccessUnit, _ picture: CodedPicture, at now: MediaTime
  ) {
    let usualBytes = Double(bitrate.load(ordering: .relaxed)) / 8 * frameInterval.seconds
    for output in outputs where output.viewers.isEmpty { output.skip() }
    for output in outputs where !output.viewers.isEmpty && (picture.part.isWhole || output.takesParts != unit.isWhole) {
      // The picture of an orientation switch or of a fail-over comes late as it is.
      let spread = openOutcome.isAnotherStream ? .zero : MediaTime(seconds: frameInterval.seconds * pacing)
      let plan = PacedFrame.Plan(spread: spread, usual: Int(usualBytes) / output.kind.packetSize)
      // Each one's own packetizing is measured from here.
      let begin = output === outputs.first ? now : .now()
      let sent = output.send(unit, in: picture, plan, at: begin)
      openOutcome.packets += sent.packets
      openOutcome.packetizing = openOutcome.packetizing + sent.packetizing
    }
  }

  /// What became of a picture.
  private struct Outcome {
    /// Packets that left at once, over all viewers.
    var packets = 0
    /// Whether some viewer has it on its way.
    var isTaken = false
    /// How long packetizing took, of its last part where it came in parts: what came before was done while it was coded.
    var packetizing = MediaTime.zero
    /// Whether its parameter sets are others than before, as from another encoder.
    var isAnotherStream = false
    /// Whether the parameter sets had to be put before it.
    var lacksParameterSets = false
  }

  /// Gives back the oldest picture that viewers keep, where they keep too many.
  private func makeRoom() {
    guard held.count >= heldLimit, let oldest = held.first else { return }
    for output in outputs { output.letGo(of: oldest) }
    held.removeFirst()
  }

  /// Viewers that have lost frames and could take some again.
  private func askForKeyFrames(at now: MediaTime) {
    for output in outputs {
      for viewer in output.viewers where viewer.wantsKeyFrame(at: now) {
        if limiter.request(at: now) { requests.setKeyFrame() }
      }
    }
  }

  /// Takes over new parameter sets; whether there were, as from another encoder.
  private func noteParameterSets() -> Bool {
    guard parameterSetCache.changes != notedChanges else { return false }
    notedChanges = parameterSetCache.changes
    guard let sets = parameterSetCache.parameterSets else { return false }
    currentParameterSets.withLock { $0 = (sets, $0.changes + 1) }
    return true
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
