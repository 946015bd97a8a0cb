import CLinux
import Glibc
import Media
import Platform
import RTP
package import SRTP
import Synchronization

/// The stage that packetizes a track's coded pictures, sends them to every viewer, and answers the viewers' RTCP. Its own
/// thread waits only for the next of these events.
package final class SendStage: @unchecked Sendable {
  // Sendable: what other threads use is under a mutex or atomic; the send thread alone uses all else once it runs.
  let pictures: CodedPictureQueue
  /// The access units of the sound that some streams carry beside the pictures; nil where there is none.
  let sound: CodedPictureQueue?
  let statistics: StatisticsRecorder
  let canonicalName: String
  let heldLimit: Int
  /// The part of a frame interval over which a large frame is spread.
  let pacing: Double
  let frameInterval: Duration
  /// The time between two key frames.
  let groupInterval: Duration
  /// The way in which packets are made and leave.
  let sending: PacketSending
  let requests: EncoderRequests
  /// The payload of viewers by RTSP.
  let guestPayload: StreamPayload
  /// The H.264 profile that the session description demands of a decoder; nil for another codec.
  let profile: H264Profile?
  /// The numbering of the stream of all WebRTC peers, whose source their answers tell.
  let peerNumbering: RTPStream
  /// The parameter sets of the stream; nil where the track's codec has none. Other threads read
  /// ``ParameterSetCache/current``.
  let parameterSetCache: ParameterSetCache?
  /// The cache's count of changes that the stage knows of.
  var notedChanges = 0
  let repeatsParameterSets = Atomic(false)
  let orders = Mutex<[Order]>([])
  let hasOrders = Atomic(false)
  /// The bitrate in bits a second that the encoder was last requested to deliver.
  let bitrate: Atomic<Int>

  /// The least bits a second that the encoder is requested to deliver for the viewers' networks; 0 for the default.
  let bitrateFloor = Atomic(0)
  /// The times at which the network's limit was last raised, of the full pictures and of the small ones.
  var networkRaised = (full: Instant.zero, small: Instant.zero)
  /// The time at which the viewers' figures were last updated with it.
  var networkTold = Instant.zero

  var outputs: [RTPOutput] = []
  var viewers: [ViewerID: (viewer: Viewer, output: RTPOutput)] = [:]
  /// The places of the viewers that may pause.
  var places: [ViewerID: GuestPlace] = [:]
  var ports: [LocalPorts] = []
  let blocked: BlockedViewers
  /// The descriptors of the viewers' RTCP, and of datagrams from unknown senders.
  let input: DescriptorSet
  /// The time until which nothing is read, because there was too much to read.
  var inputRests: Instant?
  let datagram = UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 8)
  var limiter = KeyFrameRequestLimiter()
  /// The small rendition of the pictures; nil where the stream has none. Set before the thread starts.
  var small: SmallRendition?
  var smallLimiter = KeyFrameRequestLimiter()
  let smallParameterSets: ParameterSetCache
  /// The viewers that are to have streams of their own from the next picture on.
  var parting: [ViewerID] = []
  var nextKeepAlive = Instant.zero
  /// `true` if there was a picture. The first one is a key frame, even without a request.
  var hasHadPicture = false
  /// The last frame, until all of it has left.
  var lastFrame: FrameTimes?
  /// The outcome of the parts of a picture that is still being made.
  var openOutcome = Outcome()

  struct FrameTimes {
    let timestamp: Instant
    let captured: Instant
    let encoded: Instant
    let begin: Instant
    /// The time that packetizing took, for all streams.
    let packetizing: Duration
  }

  /// A request to the send thread.
  enum Order: @unchecked Sendable {
    // Sendable: once the request is queued, the send thread alone uses what the request carries.
    case add(JoiningViewer)
    case remove(ViewerID, goodbye: Bool)
    /// The end of holding a stream that was held.
    case release(StreamProtection)
    case watch(LocalPorts)
    case keyFrame
  }

  /// The interval at which a transport stream without pictures repeats its clock: ISO/IEC 13818-1 allows 100 ms.
  static let keepAliveInterval = Duration.milliseconds(80)
  /// The pause in reading after there was more than is read at a time, so that a flood costs a bounded part of a core.
  static let inputRest = Duration.milliseconds(10)
  /// The longest wait without any reason to wake.
  static let idleInterval = Duration.seconds(1)
  /// The delay between the last packet and BYE at the end.
  static let goodbyeDelay = Duration.milliseconds(100)
  /// The token of datagrams from unknown senders; viewers count from 1.
  static let unknownSendersToken: UInt64 = 0

  /// Creates the stage.
  ///
  /// - Parameters:
  ///   - heldLimit: the most pictures that viewers may keep; `pictures` has room for so many.
  ///   - sound: the access units of the sound beside them.
  ///   - track: the format of the access units.
  ///   - pacing: the part of a frame interval over which a large frame is spread; 0 for no pacing.
  ///   - sending: the way in which packets are made and leave.
  package init(
    pictures: CodedPictureQueue, sound: CodedPictureQueue? = nil, heldLimit: Int, track: TrackFormat, pacing: Double,
    canonicalName: String,
    requests: EncoderRequests, statistics: StatisticsRecorder, sending: PacketSending = PacketSending()
  ) throws {
    self.sending = sending
    guestPayload = track.payload
    profile = track.profile
    let encoding = track.payload.format.encoding
    peerNumbering = RTPStream(protected: encoding.payloadType, clockRate: encoding.clockRate, ssrc: nil)
    frameInterval = track.interval
    groupInterval = track.groupInterval ?? track.interval
    bitrate = Atomic(track.bitrate)
    self.requests = requests
    self.pictures = pictures
    self.sound = sound
    self.heldLimit = heldLimit
    self.pacing = pacing
    self.canonicalName = canonicalName
    self.statistics = statistics
    parameterSetCache = track.parameterSets.map { sets in
      let cache = ParameterSetCache(codec: sets.codec)
      cache.update(sets)
      return cache
    }
    notedChanges = parameterSetCache?.changes ?? 0
    smallParameterSets = ParameterSetCache(codec: track.parameterSets?.codec ?? .h264)
    blocked = try BlockedViewers()
    input = try DescriptorSet(.input)
  }

  deinit {
    datagram.deallocate()
  }

  // MARK: Orders, from any thread

  /// The parameter sets of the stream, and the number of their changes since the start; nil where the track has none.
  var parameterSets: (sets: ParameterSets, changes: Int)? {
    // The first ones are no change.
    parameterSetCache?.current.map { ($0.sets, $0.revision - 1) }
  }

  /// Adds a viewer, which begins with the next key frame.
  package func add(_ joining: JoiningViewer) { order(.add(joining)) }

  /// Releases a stream that was held, once it has no viewer.
  func release(_ protection: StreamProtection) { order(.release(protection)) }

  /// Removes a viewer.
  package func remove(_ id: ViewerID, goodbye: Bool) { order(.remove(id, goodbye: goodbye)) }

  /// Counts datagrams that come to `ports` from senders other than viewers.
  func watch(_ ports: LocalPorts) { order(.watch(ports)) }

  /// Requests a key frame on a viewer's behalf, within the limit on such requests.
  func requestKeyFrame() { order(.keyFrame) }

  /// Puts the parameter sets before the next picture, of whatever kind: for a receiver that has joined without them.
  func repeatParameterSets() {
    repeatsParameterSets.store(true, ordering: .relaxed)
  }

  /// A viewer that is to be added.
  package struct JoiningViewer {
    let transport: any PacketTransport
    let figures: ViewerFigures
    let kind: RTPOutput.Kind
    /// The key of the viewer's RTCP; nil is the stream's key.
    var controlKey: SRTPKey?
    /// `true` if packets are retransmitted in a stream of their own (RFC 4588).
    var hasRetransmissionStream = false
    /// The source of that stream; nil for any.
    var retransmissionSource: UInt32?
    /// `true` if the viewer may have got packets of the stream before. These must not come to the viewer twice.
    var isReturning = false
    /// The place that the viewer had before a pause, and will have after one.
    var place: GuestPlace?
    /// A closure that is told of the first packet.
    var onStart: (@Sendable (StreamStart) -> Void)?
    /// A closure that is called when the viewer says BYE.
    var onGoodbye: (@Sendable () -> Void)?

    /// Creates a viewer that is to join.
    package init(
      transport: any PacketTransport, figures: ViewerFigures, kind: RTPOutput.Kind, controlKey: SRTPKey? = nil,
      hasRetransmissionStream: Bool = false, retransmissionSource: UInt32? = nil, isReturning: Bool = false,
      place: GuestPlace? = nil, onStart: (@Sendable (StreamStart) -> Void)? = nil,
      onGoodbye: (@Sendable () -> Void)? = nil
    ) {
      self.transport = transport
      self.figures = figures
      self.kind = kind
      self.controlKey = controlKey
      self.hasRetransmissionStream = hasRetransmissionStream
      self.retransmissionSource = retransmissionSource
      self.isReturning = isReturning
      self.place = place
      self.onStart = onStart
      self.onGoodbye = onGoodbye
    }
  }

  private func order(_ order: Order) {
    orders.withLock { $0.append(order) }
    hasOrders.store(true, ordering: .releasing)
    pictures.arrival.fire()
  }

  // MARK: The thread

  /// Runs until the queue is closed and empty. At the end, the stage sends what is on its way, as far as there is room,
  /// and tells every viewer.
  package func run() {
    var now = Instant.now()
    loop: while true {
      if hasOrders.load(ordering: .acquiring) { carryOutOrders() }
      // Pictures before all other events, because each call in front of them delays them.
      var isIdle = false
      for _ in 0..<CodedPictureQueue.depth where !isIdle {
        switch pictures.take() {
        case .picture(let picture):
          // The picture may have come after the clock was last read.
          now = max(now, picture.encoded)
          if picture.part.isFirstPart {
            // A viewer that was added before the picture came gets the picture.
            if hasOrders.load(ordering: .acquiring) { carryOutOrders() }
            begin(picture, at: now)
          }
          if picture.isBroken { breakOff(picture) } else { now = send(picture, at: now) }
        case .none: isIdle = true
        case .closed: break loop
        }
      }
      if let sound { send(from: sound, at: now) }
      sendSmallPictures(at: now)
      keepTime(now)
      let hasInput = wait(until: isIdle ? nextDeadline(now) : now, from: now)
      now = .now()
      if hasInput { read(at: now) }
      blocked.withReady { viewer in viewers[viewer.id]?.output.resume(viewer, at: now) }
    }
    end()
  }

  /// Sleeps until something arrives, there is room again, or `deadline`. The present time is `now`.
  ///
  /// - Returns: `true` if there is something to read.
  private func wait(until deadline: Instant, from now: Instant) -> Bool {
    let readable = Int16(POLLIN)
    return withUnsafeTemporaryAllocation(of: pollfd.self, capacity: 4) { descriptors in
      descriptors[0] = pollfd(fd: pictures.arrival.fileDescriptor, events: readable, revents: 0)
      descriptors[1] = pollfd(fd: blocked.room.fileDescriptor, events: readable, revents: 0)
      // The kernel ignores a negative descriptor.
      descriptors[2] = pollfd(fd: inputRests == nil ? input.fileDescriptor : -1, events: readable, revents: 0)
      descriptors[3] = pollfd(fd: sound?.arrival.fileDescriptor ?? -1, events: readable, revents: 0)
      let rest = max(0, (deadline - now).nanoseconds)
      guard nightjar_poll(descriptors.baseAddress, 4, rest) > 0 else { return false }
      if descriptors[0].revents != 0 { pictures.arrival.clear() }
      if descriptors[3].revents != 0 { sound?.arrival.clear() }
      return descriptors[2].revents != 0
    }
  }

  /// Returns the time of the next work that needs no arrival.
  private func nextDeadline(_ now: Instant) -> Instant {
    var deadline = now + Self.idleInterval
    for output in outputs where !output.viewers.isEmpty {
      if output.repeatsClock { deadline = min(deadline, nextKeepAlive) }
      if output.hasBegun { deadline = min(deadline, output.reportDeadline) }
      if let pacing = output.pacingDeadline { deadline = min(deadline, pacing) }
      if let replay = output.replayDeadline { deadline = min(deadline, replay) }
    }
    if let limited = limiter.deadline { deadline = min(deadline, limited) }
    if let limited = smallLimiter.deadline { deadline = min(deadline, limited) }
    if let retry = blocked.deadline(at: now) { deadline = min(deadline, retry) }
    if let inputRests { deadline = min(deadline, inputRests) }
    return deadline
  }

  /// Does the work that is due.
  private func keepTime(_ now: Instant) {
    for output in outputs where !output.viewers.isEmpty {
      output.pace(at: now)
      output.continueReplays(at: now)
      output.report(at: now, bitrate: bitrate.load(ordering: .relaxed))
      if now >= nextKeepAlive { output.keepAlive(at: now) }
    }
    recordLastFrame(at: now)
    if now >= nextKeepAlive { nextKeepAlive = now + Self.keepAliveInterval }
    if limiter.poll(at: now) { requests.setKeyFrame() }
    if smallLimiter.poll(at: now) { small?.requests.setKeyFrame() }
    if let rests = inputRests, now >= rests { inputRests = nil }
    blocked.withEach { viewer in
      if viewer.expire(at: now) { blocked.note(viewer) }
    }
  }

  /// Sends what is on its way, for as long as a viewer's patience lasts, and says BYE.
  private func end() {
    if hasOrders.load(ordering: .acquiring) { carryOutOrders() }
    var now = Instant.now()
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
