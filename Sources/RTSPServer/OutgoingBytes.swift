import CLinux
import Listening
import Media
import NIOCore
import Streaming

/// The bytes that were given to a connection: which frames among them have left the machine, and when the client last
/// took any. On the connection's event loop.
///
/// What was written waits in TLS, in NIO, and then in the kernel until it has been sent once. There it is delay like anywhere else,
/// so a frame is on its way until its last byte has been sent.
struct OutgoingBytes {
  /// A frame that has not left: the place of its end among all bytes, and whose it is.
  private struct Frame {
    let end: Int
    let transport: InterleavedTransport
  }

  private let channel: any Channel
  /// TLS on this connection, which keeps what was written while the channel is not writable.
  private let encryption: TLSHandler?
  /// Bytes that were given to the connection.
  private var given = 0
  private var frames: [Frame] = []
  /// What the client had acknowledged when it was last looked at.
  private var acknowledged: UInt64 = 0
  /// Since when the client has taken nothing of what waits for it; nil where nothing waits, or some of it is taken.
  private(set) var stalledSince: MediaTime?

  init(_ channel: any Channel) {
    self.channel = channel
    // Throws where there is none: a connection in the clear.
    encryption = try? channel.pipeline.syncOperations.handler(type: TLSHandler.self)
  }

  /// Whether frames have not left.
  var hasFrames: Bool { !frames.isEmpty }

  /// Some bytes were given to the connection, the last of a frame of `transport` where there is one.
  mutating func give(_ count: Int, endingFrameOf transport: InterleavedTransport?) {
    given += count
    guard let transport else { return }
    frames.append(Frame(end: given, transport: transport))
    noteProgress()
  }

  /// Has the frames counted that have left by now.
  mutating func noteProgress() {
    guard !frames.isEmpty else { return }
    // What TLS adds is small, and counts as waiting.
    var waiting = buffered
    let unsent = descriptor { nightjar_tcp_unsent_bytes($0) } ?? 0
    if unsent > 0 {
      waiting += Int(unsent)
      // A path of long round trips takes a large frame in several of them, without a queue anywhere. What it takes in two
      // is on its way.
      waiting = max(0, waiting - 2 * Int(state?.path ?? 0))
    }
    let left = given - waiting
    while let first = frames.first, first.end <= left { frames.removeFirst().transport.frameHasLeft() }
  }

  /// Notes whether the client has taken anything since the last call.
  mutating func noteTaking(at now: MediaTime) {
    guard let state, state.unacknowledged > 0 || buffered > 0 else { return stalledSince = nil }
    if state.acknowledged != acknowledged {
      acknowledged = state.acknowledged
      stalledSince = nil
    } else {
      stalledSince = stalledSince ?? now
    }
  }

  /// All frames are gone, with the connection.
  mutating func letGo() {
    for frame in frames { frame.transport.frameHasLeft() }
    frames.removeAll()
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

  /// Looks at the connection's socket; nil where it is closed.
  private func descriptor<Value>(_ body: (CInt) -> Value) -> Value? {
    guard channel.isActive else { return nil }
    return try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: CInt.self, body)
  }
}
