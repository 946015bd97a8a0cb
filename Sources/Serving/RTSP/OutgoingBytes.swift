import CLinux
import Media
import NIOCore
import Platform
import RTP
import Streaming

/// The bytes given to a connection: the frames among them that have left the machine, and the time when the client last
/// took any. It lives on the connection's event loop.
///
/// Written bytes wait in TLS, in NIO, and then in the kernel until it has sent them once. Waiting in the kernel is
/// delay as elsewhere, so a frame is in transit until its last byte has been sent.
struct OutgoingBytes {
  /// A frame that has not left: the position of its end among all bytes, and its transport.
  private struct Frame {
    let end: Int
    let transport: InterleavedTransport
  }

  private let channel: any Channel
  /// TLS on this connection, which keeps written bytes while the channel is not writable.
  private let encryption: TLSHandler?
  /// The number of bytes given to the connection.
  private var given = 0
  private var frames: [Frame] = []
  /// The times at which bytes were given.
  private var log: SentLog?
  /// The transports of the tracks on this connection, which learn what the client has received.
  private var transports: [InterleavedTransport] = []
  private var lastReception = Instant.zero
  /// The most bytes that the client was known to have received. What the kernel counts beyond a hole may shrink.
  private var delivered = 0
  /// The client's acknowledged bytes at the last check.
  private var acknowledged: UInt64 = 0
  /// The start of the time in which the client has taken none of the waiting bytes; nil if none wait, or some are
  /// taken.
  private(set) var stalledSince: Instant?

  /// The least time between two looks at what the client has received.
  private static let receptionInterval = Duration.milliseconds(30)

  init(_ channel: any Channel) {
    self.channel = channel
    // Throws if there is none: a connection in the clear.
    encryption = try? channel.pipeline.syncOperations.handler(type: TLSHandler.self)
  }

  /// `true` if frames have not left.
  var hasFrames: Bool { !frames.isEmpty }

  /// Adds the transport of a track, which learns what the client has received until ``letGo(of:)``.
  mutating func add(_ transport: InterleavedTransport) { transports.append(transport) }

  /// Lets go of a track's transport. Frames of it that have not left hold it until they have.
  mutating func letGo(of transport: InterleavedTransport) { transports.removeAll { $0 === transport } }

  /// Notes that bytes were given to the connection; they end a frame of `transport` unless it is nil.
  mutating func give(_ count: Int, endingFrameOf transport: InterleavedTransport?) {
    given += count
    guard let transport else { return }
    let now = Instant.now()
    if log == nil { log = SentLog() }
    log?.note(position: Int64(given), packets: 0, bytes: count, at: now)
    tellReception(at: now)
    frames.append(Frame(end: given, transport: transport))
    noteProgress()
  }

  /// Reports the frames that have left by now.
  mutating func noteProgress() {
    guard !frames.isEmpty else { return }
    // A viewer whose pictures are left out is given nothing, and must still learn when the queue is gone.
    tellReception(at: .now())
    // TLS adds little; its addition counts as waiting.
    var waiting = buffered
    let unsent = descriptor { nightjar_tcp_unsent_bytes($0) } ?? 0
    if unsent > 0 {
      waiting += Int(unsent)
      // A path with long round trips takes a large frame in several of them, without a queue anywhere. The share of two
      // round trips counts as sent.
      waiting = max(0, waiting - 2 * Int(state?.path ?? 0))
    }
    let left = given - waiting
    while let first = frames.first, first.end <= left { frames.removeFirst().transport.frameHasLeft() }
  }

  /// Tells the transports what the client has received. What was written last is on its way, and delays nothing yet.
  private mutating func tellReception(at now: Instant) {
    guard !transports.isEmpty, now - lastReception >= Self.receptionInterval, let state else { return }
    lastReception = now
    let left = min(given, buffered + Int(state.unacknowledged))
    guard let place = log?.place(of: Int64(given - left), at: now) else { return }
    // A hole holds up the acknowledgement of what has arrived behind it.
    delivered = max(delivered, given - left + min(left, Int(state.selective)))
    let sample = ReceptionSample(
      delivered: delivered, age: place.age, waiting: place.waiting,
      outstanding: left)
    for transport in transports { transport.note(sample) }
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
