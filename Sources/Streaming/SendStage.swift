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
  private let heldLimit: Int
  /// The part of a frame interval over which a large frame is spread.
  private let pacing: Double
  private let frameInterval: MediaTime
  private let requests: EncoderRequests
  private let parameterSetCache = ParameterSetCache()
  /// How often the cache had changed when ``currentParameterSets`` was last replaced.
  private var notedChanges: Int
  private let repeatsParameterSets = Atomic(false)
  private let orders = Mutex<[Order]>([])
  private let hasOrders = Atomic(false)
  /// Bits a second that the encoder was last asked for.
  let bitrate: Atomic<Int>
  /// The parameter sets of the stream, replaced whenever a picture brings others, with a count of the changes.
  let currentParameterSets: Mutex<(sets: ParameterSets, changes: Int)>

  private var outputs: [RTPOutput] = []
  private var viewers: [ViewerID: (viewer: Viewer, output: RTPOutput)] = [:]
  private var ports: [LocalPorts] = []
  /// Pictures that some viewer has not got whole, the oldest first.
  private var held: [CodedPicture] = []
  private let blocked: BlockedViewers
  /// RTCP of viewers, and datagrams of strangers.
  private let input: DescriptorSet
  /// Until when nothing is read, because there was too much to read.
  private var inputRests: MediaTime?
  private let datagram = UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 8)
  private var limiter = KeyFrameRequestLimiter()
  private var nextKeepAlive = MediaTime.zero
  /// Whether there was a picture: the first one is a key frame, whether somebody asks for it or not.
  private var hasHadPicture = false
  /// The last frame, until all of it has left.
  private var lastFrame: FrameTimes?

  private struct FrameTimes {
    let captured: MediaTime
    let encoded: MediaTime
    let begin: MediaTime
  }

  /// What is asked of the send thread.
  private enum Order: @unchecked Sendable {
    // Sendable: what it carries is used by the send thread alone from then on.
    case add(any PacketTransport, ViewerFigures, RTPOutput.Kind, onStart: (@Sendable (StreamStart) -> Void)?)
    case remove(ViewerID, goodbye: Bool)
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
  init(
    pictures: CodedPictureQueue, heldLimit: Int, encoder: EncoderConfiguration, parameterSets: ParameterSets,
    pacing: Double, canonicalName: String, requests: EncoderRequests, statistics: StatisticsRecorder
  ) throws {
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
  func add(
    _ transport: any PacketTransport, _ figures: ViewerFigures, _ kind: RTPOutput.Kind,
    onStart: (@Sendable (StreamStart) -> Void)? = nil
  ) {
    order(.add(transport, figures, kind, onStart: onStart))
  }

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

  private func order(_ order: Order) {
    orders.withLock { $0.append(order) }
    hasOrders.store(true, ordering: .releasing)
    pictures.arrival.ring()
  }

  // MARK: The thread

  /// Runs until the queue is closed and empty; what is on its way is sent, as far as there is room, and every viewer
  /// is told.
  func run() {
    loop: while true {
      if hasOrders.load(ordering: .acquiring) { carryOutOrders() }
      var isIdle = true
      // Before the queue lends one of them again, as another picture.
      held.removeAll { $0.holders == 0 }
      switch pictures.take() {
      case .picture(let picture):
        send(picture)
        isIdle = false
      case .none: break
      case .closed: break loop
      }
      let now = MediaTime.now()
      keepTime(now)
      wait(until: isIdle ? nextDeadline(now) : now)
      let woken = MediaTime.now()
      read(at: woken)
      blocked.withReady { viewer in viewers[viewer.id]?.output.resume(viewer, at: woken) }
    }
    end()
  }

  /// Sleeps until something arrives, there is room again, or `deadline`.
  private func wait(until deadline: MediaTime) {
    let readable = Int16(POLLIN)
    withUnsafeTemporaryAllocation(of: pollfd.self, capacity: 3) { descriptors in
      descriptors[0] = pollfd(fd: pictures.arrival.fileDescriptor, events: readable, revents: 0)
      descriptors[1] = pollfd(fd: blocked.room.fileDescriptor, events: readable, revents: 0)
      // A negative descriptor is not looked at.
      descriptors[2] = pollfd(fd: inputRests == nil ? input.fileDescriptor : -1, events: readable, revents: 0)
      let rest = max(0, (deadline - .now()).nanoseconds)
      _ = nightjar_poll(descriptors.baseAddress, 3, rest)
      if descriptors[0].revents != 0 { pictures.arrival.answer() }
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

  private func send(_ picture: CodedPicture) {
    let begin = MediaTime.now()
    hasHadPicture = true
    for output in outputs { output.endPacing(at: begin) }
    recordLastFrame(at: begin)
    nextKeepAlive = begin + Self.keepAliveInterval
    makeRoom()
    let unit = picture.accessUnit
    if repeatsParameterSets.exchange(false, ordering: .relaxed) { parameterSetCache.invalidate() }
    var outcome = (packets: 0, isTaken: false)
    do throws(ParameterSetError) {
      try parameterSetCache.complete(unit) { completed in
        let isAnotherStream = noteParameterSets()
        outcome = sendToAll(completed, picture, isUrgent: isAnotherStream, at: begin)
      }
    } catch {
      // More NAL units, or longer sets, than the cache holds: no encoder of ours makes them, and a receiver may cope.
      outcome = sendToAll(unit, picture, isUrgent: false, at: begin)
    }
    if unit.isKeyFrame { limiter.keyFrameSent() }
    if picture.holders > 1 { held.append(picture) }
    let times = FrameTimes(captured: unit.captured, encoded: picture.encoded, begin: begin)
    pictures.release(picture)
    askForKeyFrames(at: begin)
    guard !viewers.isEmpty else { return }
    if outcome.packets > 0 || outcome.isTaken {
      lastFrame = times
      recordLastFrame(at: .now())
    } else {
      statistics.send.withLock { $0.unsent += 1 }
    }
  }

  /// Records how long the last frame has taken once all of it that is not in anybody's way has left.
  private func recordLastFrame(at end: MediaTime) {
    guard let frame = lastFrame, !outputs.contains(where: \.isPacing) else { return }
    lastFrame = nil
    statistics.send.withLock {
      $0.keyFrameRequests = (limiter.requests, limiter.granted)
      $0.frames += 1
      $0.queue.record(frame.begin - frame.encoded)
      $0.latency.record(end - frame.begin)
      $0.total.record(end - frame.captured)
      $0.recent.record(end - frame.captured)
      if $0.firstPacket == nil { $0.firstPacket = end }
    }
  }

  private func sendToAll(
    _ unit: borrowing AccessUnit, _ picture: CodedPicture, isUrgent: Bool, at now: MediaTime
  ) -> (packets: Int, isTaken: Bool) {
    let usualBytes = Double(bitrate.load(ordering: .relaxed)) / 8 * frameInterval.seconds
    var packets = 0
    for output in outputs where output.viewers.isEmpty { output.skip() }
    for output in outputs where !output.viewers.isEmpty {
      // The picture of an orientation switch or of a fail-over comes late as it is.
      let spread = isUrgent ? .zero : MediaTime(seconds: frameInterval.seconds * pacing)
      let plan = PacedFrame.Plan(spread: spread, usual: Int(usualBytes) / output.kind.packetSize)
      packets += output.send(unit, in: picture, plan, at: now)
    }
    return (packets, picture.holders > 1)
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

  // MARK: Viewers

  private func carryOutOrders() {
    hasOrders.store(false, ordering: .relaxed)
    let taken = orders.withLock { orders in
      defer { orders = [] }
      return orders
    }
    let now = MediaTime.now()
    for order in taken {
      switch order {
      case .add(let transport, let figures, let kind, let onStart):
        join(transport, figures, kind, at: now, onStart: onStart)
      case .remove(let id, let goodbye): leave(id, goodbye: goodbye)
      case .keyFrame:
        if limiter.request(at: now) { requests.setKeyFrame() }
      case .watch(let ports):
        self.ports.append(ports)
        // Where the kernel watches no more, strangers are not counted, and nothing else is amiss.
        try? input.insert(ports.descriptors.media, token: Self.strangersToken)
        try? input.insert(ports.descriptors.control, token: Self.strangersToken)
      }
    }
  }

  private func join(
    _ transport: any PacketTransport, _ figures: ViewerFigures, _ kind: RTPOutput.Kind, at now: MediaTime,
    onStart: (@Sendable (StreamStart) -> Void)?
  ) {
    guard let output = output(kind, at: now) else { return }
    var unprotector: ControlUnprotector?
    if let protection = kind.protection {
      // The key was tried when the destination was added. In the clear is not what was asked for.
      guard let made = try? ControlUnprotector(protection.key, media: protection.ssrc) else { return }
      unprotector = made
    }
    let viewer = Viewer(
      transport: transport, feedback: ViewerFeedback(media: output.stream.ssrc), figures: figures,
      unprotector: unprotector, onStart: onStart)
    viewers[viewer.id] = (viewer, output)
    // Where the kernel watches no more, this viewer gets the stream, and what it says is not heard.
    if let descriptor = transport.descriptors.input { try? input.insert(descriptor, token: viewer.id.number) }
    output.add(viewer)
    // A fresh key frame where the limit allows one, else the last one, which is not older than the limit is long.
    guard hasHadPicture else { return }
    if !limiter.isOpen(at: now), output.replay(to: viewer, at: now) { return }
    if limiter.request(at: now) { requests.setKeyFrame() }
    viewer.keyFrameRequested(at: now)
  }

  private func output(_ kind: RTPOutput.Kind, at now: MediaTime) -> RTPOutput? {
    if let output = outputs.first(where: { $0.kind == kind }) { return output }
    // The packet size was checked when the destination was.
    guard
      let output = try? RTPOutput(
        kind, canonicalName: canonicalName, bitrate: bitrate.load(ordering: .relaxed), pictures: pictures,
        blocked: blocked, at: now)
    else { return nil }
    outputs.append(output)
    return output
  }

  private func leave(_ id: ViewerID, goodbye: Bool) {
    guard let (viewer, output) = viewers.removeValue(forKey: id) else { return }
    blocked.forget(viewer)
    if let descriptor = viewer.transport.descriptors.input { input.remove(descriptor) }
    output.remove(viewer, goodbye: goodbye)
  }

  /// Reads what viewers say, some datagrams of each.
  private func read(at now: MediaTime) {
    guard inputRests == nil else { return }
    var isFlooding = false
    var strangers = 0
    let isAll = input.takeReady { token in
      guard token != Self.strangersToken else {
        let limit = 2 * RTPOutput.datagramsAtATime
        var count = 0
        for ports in ports { count += ports.discardStrangers(limit: limit) }
        strangers += count
        if count >= limit { isFlooding = true }
        return
      }
      guard let (viewer, output) = viewers[ViewerID(number: token)] else { return }
      let said = output.receive(from: viewer, into: datagram, at: now)
      if said.isFlooding { isFlooding = true }
      if said.requests.keyFrame, limiter.request(at: now) { requests.setKeyFrame() }
      viewer.figures.update {
        if said.isHeard { $0.lastHeard = now }
        $0.reception = viewer.feedback.reception
        $0.feedback = viewer.feedback.counts
        if let unprotector = viewer.unprotector { $0.refused = unprotector.counts }
      }
    }
    if strangers > 0 { statistics.send.withLock { $0.strangers += strangers } }
    if isFlooding || !isAll { inputRests = now + Self.inputRest }
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
      wait(until: min(retry, deadline))
      now = .now()
      blocked.withReady { viewer in viewers[viewer.id]?.output.resume(viewer, at: now) }
    }
    // BYE goes to another port: a player that reads that first would leave the last picture unread.
    if outputs.contains(where: \.hasBegun) { usleep(UInt32(Self.goodbyeDelay.nanoseconds / 1000)) }
    for id in Array(viewers.keys) { leave(id, goodbye: true) }
  }
}
