import Glibc
import RTP
import RTSP
import SRTP
import Streaming

/// The protected streams of a camera's viewers by RTSP, on its event loop.
///
/// DESCRIBE offers a stream with a key of its own, which nobody else gets, and the next SETUP on the same connection
/// takes it. Where a protected group is served, it is the group's key that all get: a player reads one key only, and
/// says later whether it wants the group. Each has a source of its own all the same, and so a rollover counter that
/// begins with it.
struct ViewerKeys {
  private let suite: SRTPSuite?
  private let pipeline: Pipeline
  /// The group's stream; nil where there is none, or it is in the clear.
  private(set) var group: ProtectedStream?
  /// By connection.
  private var offered: [UInt64: ProtectedStream] = [:]
  private var taken: [SessionIdentifier: Taken] = [:]

  /// What a session has.
  struct Taken {
    let stream: ProtectedStream
    /// What the viewer protects its RTCP by; nil is the stream's key.
    let controlKey: SRTPKey?
  }

  init(_ suite: SRTPSuite?, _ pipeline: Pipeline, protectsGroup: Bool) {
    self.suite = suite
    self.pipeline = pipeline
    protectGroup(protectsGroup)
  }

  /// Has a group that is protected, or none any more. Streams that viewers have stay what they are.
  mutating func protectGroup(_ isProtected: Bool) {
    guard isProtected != (group != nil) else { return }
    if let group { pipeline.release(group) }
    group = isProtected ? suite.map { pipeline.reserve(SRTPKey(random: $0)) } : nil
  }

  /// The stream of a session; nil where it is in the clear.
  subscript(session: SessionIdentifier) -> Taken? { taken[session] }

  /// The stream that a connection is told of by DESCRIBE, the same each time until it is taken; nil where none is
  /// offered.
  mutating func offer(on connection: UInt64) -> ProtectedStream? {
    if let stream = offered[connection] { return stream }
    offered[connection] = new()
    return offered[connection]
  }

  /// Gives a session the stream that its connection was told of, else the one that it has, else a new one; nil where
  /// none is to be had.
  ///
  /// - Parameter controlKey: what the viewer says that it protects its RTCP by.
  mutating func take(
    for session: SessionIdentifier, on connection: UInt64, controlKey: SRTPKey?
  ) -> ProtectedStream? {
    let former = taken[session]?.stream
    guard let stream = offered.removeValue(forKey: connection) ?? former ?? new() else { return nil }
    if let former, former.ssrc != stream.ssrc { pipeline.release(former) }
    taken[session] = Taken(stream: stream, controlKey: controlKey)
    return stream
  }

  /// The message by which a viewer gets a key; over TLS only.
  func message(for stream: ProtectedStream) -> String {
    var streams = [MIKEYMessage.Stream(ssrc: stream.ssrc, rolloverCounter: stream.rolloverCounter)]
    if let group { streams.append(.init(ssrc: group.ssrc, rolloverCounter: group.rolloverCounter)) }
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    var generator = SystemRandomNumberGenerator()
    return MIKEYMessage(key: stream.key, streams: streams).text(
      at: NTPTimestamp(unixSeconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec)), using: &generator)
  }

  /// A session is over, or goes on in the clear.
  mutating func end(_ session: SessionIdentifier) {
    if let taken = taken.removeValue(forKey: session) { pipeline.release(taken.stream) }
  }

  /// A connection is closed.
  mutating func forget(_ connection: UInt64) {
    if let stream = offered.removeValue(forKey: connection) { pipeline.release(stream) }
  }

  /// Lets all streams go: nobody watches any more.
  mutating func endAll() {
    for stream in Array(offered.values) + taken.values.map(\.stream) { pipeline.release(stream) }
    offered.removeAll()
    taken.removeAll()
    protectGroup(false)
  }

  private func new() -> ProtectedStream? {
    suite.map { pipeline.reserve(group?.key ?? SRTPKey(random: $0)) }
  }
}
