import CLinux
import Media
import NIOCore
import Platform
import RTP
import Streaming

/// The bytes given to a connection: those that wait here, the frames among them that have left the machine, and the time
/// when the client last took any. It lives on the connection's event loop.
///
/// Written bytes wait in TLS, in NIO, and then in the kernel until it has sent them once. Waiting in the kernel is
/// delay as elsewhere, so a frame is in transit until its last byte has been sent.
///
/// On a network that has shown a limit, pictures wait here instead, and the kernel gets only as many of their packets as the
/// network takes soon: neither sound nor an answer can overtake a picture that the kernel has.
package struct OutgoingBytes {
  /// A frame that has not left: the position of its end among all bytes, and its transport.
  private struct Frame {
    var end: Int
    let transport: InterleavedTransport
  }

  private let channel: any Channel
  /// TLS on this connection, which keeps written bytes while the channel is not writable.
  private let encryption: TLSHandler?
  /// The bytes that wait here.
  private var waiting = WaitingPackets()
  /// The number of bytes given to the connection, the waiting ones included.
  private var given = 0
  private var frames: [Frame] = []
  /// The position, among all bytes, at which the pictures end whose track is played no more.
  private var ended = 0
  /// The times at which bytes were given.
  private var log: SentLog?
  /// The transports of the tracks on this connection, which learn what the client has received.
  private var transports: [InterleavedTransport] = []
  private var lastReception = Instant.zero
  private var roundTrip = PresentRoundTrip()
  /// The most bytes that the client was known to have received. What the kernel counts beyond a hole may shrink.
  private var delivered = 0
  /// The client's acknowledged bytes at the last check.
  private var acknowledged: UInt64 = 0
  /// The start of the time in which the client has taken none of the waiting bytes; nil if none wait, or some are
  /// taken.
  private(set) var stalledSince: Instant?

  /// The least time between two looks at what the client has received.
  private static let receptionInterval = Duration.milliseconds(30)
  /// The seconds of a network's limit that the kernel gets beyond what is on its way in a round trip. A packet of sound waits
  /// for so long, and the connection is looked at several times meanwhile.
  private static let aheadSeconds = 0.06
  /// The least bytes that the kernel gets: two packets, so that one is there when the other has arrived.
  package static let leastAhead = 2 * 1200

  init(_ channel: any Channel) {
    self.channel = channel
    // Throws if there is none: a connection in the clear.
    encryption = try? channel.pipeline.syncOperations.handler(type: TLSHandler.self)
  }

  /// `true` if frames have not left, or bytes wait here.
  var isPending: Bool { !frames.isEmpty || !waiting.isEmpty }
  /// `true` if bytes wait here.
  var isHolding: Bool { !waiting.isEmpty }
  /// The number of bytes that wait here.
  var heldBytes: Int { waiting.count }

  /// The bits a second that the network takes; nil while it is open.
  private var limit: Int? {
    var least: Int?
    for transport in transports {
      guard let limit = transport.limit else { continue }
      least = min(least ?? limit, limit)
    }
    return least
  }

  /// Returns `true` if bytes of `transport`, or an answer if that is nil, leave at once, before all that waits here. The order
  /// of one transport's bytes stays, and no bytes overtake an answer that waits. An answer waits for the pictures of a track that
  /// is played no more: none comes after the answer that says so.
  func mayLeave(_ transport: InterleavedTransport?) -> Bool {
    guard let transport else { return waiting.allowsOvertaking && given - waiting.count >= ended }
    if transport.overtakesPictures { return waiting.allowsOvertaking }
    return waiting.isEmpty && limit == nil
  }

  /// Adds bytes that wait for ``next()``. They end a frame of `transport` if `endsFrame` is `true`.
  mutating func hold(_ bytes: ByteBuffer, of transport: InterleavedTransport?, endsFrame: Bool) {
    guard bytes.readableBytes > 0 else { return }
    waiting.append(bytes, isPicture: transport.map { !$0.overtakesPictures } ?? false)
    given += bytes.readableBytes
    guard endsFrame, let transport else { return }
    note(bytes.readableBytes, endingFrameOf: transport, at: given)
  }

  /// Removes the next bytes that may leave, whole packets; nil where none may now.
  mutating func next() -> ByteBuffer? {
    guard !waiting.isEmpty else { return nil }
    guard let limit, let state else { return waiting.take(within: .max) }
    note(roundTripOf: state, at: .now())
    let ahead = Self.ahead(limit: limit, roundTrip: roundTrip.seconds)
    return waiting.take(within: ahead - buffered - Int(state.unacknowledged))
  }

  /// Removes the next bytes, although there may be no room for them; nil where none wait.
  mutating func nextAtOnce() -> ByteBuffer? { waiting.take(within: .max) }

  /// Returns the most bytes to be with the kernel and on their way, before more of a picture follows.
  ///
  /// - Parameters:
  ///   - limit: the bits a second that the network takes.
  ///   - roundTrip: the seconds of a round trip without a queue of this connection's own.
  package static func ahead(limit: Int, roundTrip: Double) -> Int {
    max(leastAhead, Int(Double(limit) / 8 * (roundTrip + aheadSeconds)))
  }

  /// Adds the transport of a track, which learns what the client has received until ``letGo(of:)``.
  mutating func add(_ transport: InterleavedTransport) { transports.append(transport) }

  /// Lets go of a track's transport. Frames of it that have not left hold it until they have.
  mutating func letGo(of transport: InterleavedTransport) {
    transports.removeAll { $0 === transport }
    if !transport.overtakesPictures { ended = given }
  }

  /// Notes that bytes were given to the channel, before all that waits here; they end a frame of `transport` unless it is nil.
  mutating func give(_ count: Int, endingFrameOf transport: InterleavedTransport?) {
    let place = given - waiting.count
    given += count
    if !waiting.isEmpty {
      for index in frames.indices where frames[index].end > place { frames[index].end += count }
      if ended > place { ended += count }
    }
    guard let transport else { return }
    note(count, endingFrameOf: transport, at: place + count)
    noteProgress()
  }

  /// Notes a frame that ends at a position with the `count` bytes that were given last.
  private mutating func note(_ count: Int, endingFrameOf transport: InterleavedTransport, at end: Int) {
    let now = Instant.now()
    if log == nil { log = SentLog() }
    // Sound that overtakes is noted behind what it overtakes, which makes that seem a little younger.
    log?.note(position: Int64(given), packets: 0, bytes: count, at: now)
    tellReception(at: now)
    let index = frames.lastIndex { $0.end <= end }.map { $0 + 1 } ?? 0
    frames.insert(Frame(end: end, transport: transport), at: index)
  }

  /// Reports the frames that have left by now.
  mutating func noteProgress() {
    guard isPending else { return }
    // A viewer whose pictures are left out is given nothing, and must still learn when the queue is gone.
    tellReception(at: .now())
    // TLS adds little; its addition counts as waiting.
    var unsent = buffered
    let unsentByKernel = descriptor { nightjar_tcp_unsent_bytes($0) } ?? 0
    if unsentByKernel > 0 || !waiting.isEmpty {
      let state = state
      unsent += Int(max(0, unsentByKernel)) + heldBeyondWindow(state)
      // A path with long round trips takes a large frame in several of them, without a queue anywhere. The share of two
      // round trips counts as sent.
      unsent = max(0, unsent - 2 * Int(state?.path ?? 0))
    }
    let left = given - unsent
    while let first = frames.first, first.end <= left { frames.removeFirst().transport.frameHasLeft() }
  }

  /// Returns the waiting bytes that the kernel would not have sent soon, had it got them: those beyond its window, and beyond
  /// the growth of that, which is one packet for each that arrives. The others make no viewer slow because they wait here.
  private func heldBeyondWindow(_ state: nightjar_tcp_state?) -> Int {
    guard let state else { return waiting.count }
    let room = 2 * Int(state.window) - buffered - Int(state.unacknowledged)
    return max(0, waiting.count - max(0, room))
  }

  /// Tells the transports what the client has received. What was written last is on its way, and delays nothing yet.
  private mutating func tellReception(at now: Instant) {
    guard !transports.isEmpty, now - lastReception >= Self.receptionInterval, let state else { return }
    lastReception = now
    note(roundTripOf: state, at: now)
    let left = min(given, waiting.count + buffered + Int(state.unacknowledged))
    guard let place = log?.place(of: Int64(given - left), at: now) else { return }
    // A hole holds up the acknowledgement of what has arrived behind it.
    delivered = max(delivered, given - left + min(left, Int(state.selective)))
    // The end of a picture waits for an acknowledgement that is held back, and for no queue.
    let sample = ReceptionSample(
      delivered: delivered, age: place.age, waiting: place.waiting, outstanding: left,
      jitter: ReceptionSample.acknowledgementDelay)
    for transport in transports { transport.note(sample) }
  }

  private mutating func note(roundTripOf state: nightjar_tcp_state, at now: Instant) {
    roundTrip.note(
      smoothed: Double(state.smoothed_round_trip) / 1e6, shortest: Double(state.shortest_round_trip) / 1e6, at: now)
  }

  /// Notes if the client has taken anything since the last call.
  mutating func noteTaking(at now: Instant) {
    guard let state, state.unacknowledged > 0 || buffered > 0 else { return stalledSince = nil }
    if state.acknowledged != acknowledged {
      acknowledged = state.acknowledged
      stalledSince = nil
    } else {
      stalledSince = stalledSince ?? now
    }
  }

  /// Reports all frames as gone, with the connection.
  mutating func letGo() {
    for frame in frames { frame.transport.frameHasLeft() }
    frames.removeAll()
    transports.removeAll()
    waiting.removeAll()
  }

  private var buffered: Int {
    ((try? channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0) + (encryption?.waitingBytes ?? 0)
  }

  private var state: nightjar_tcp_state? {
    descriptor { socket in
      var state = nightjar_tcp_state()
      return nightjar_tcp_state(socket, &state) == 0 ? state : nil
    } ?? nil
  }

  /// Calls `body` with the connection's socket; nil if it is closed.
  private func descriptor<Value>(_ body: (CInt) -> Value) -> Value? {
    guard channel.isActive else { return nil }
    return try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: CInt.self, body)
  }
}
