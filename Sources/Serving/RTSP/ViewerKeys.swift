import Glibc
import RTP
import RTSP
import SRTP
import Streaming

/// The protected streams of a camera's RTSP viewers, on its event loop. Each track has a stream and a key of its own.
///
/// DESCRIBE offers streams with new keys, which no other viewer gets. The next SETUP of a track on the same connection
/// takes that track's stream. If a protected group is served, all get the group's keys: a player reads one key a
/// track only, and says later whether it wants the group. Each viewer still has sources of its own, and so rollover
/// counters that begin with it.
struct ViewerKeys {
  private let suite: SRTPSuite?
  private let pipeline: Pipeline
  /// The numbers of the pipeline's tracks, by the tracks' numbers in the presentation.
  private let tracks: [Int]
  /// The group's streams by track; empty if there is no group, or if it is in the clear.
  private(set) var group: [ProtectedStream] = []
  /// The offered streams by connection.
  private var offered: [UInt64: [ProtectedStream]] = [:]
  private var taken: [SessionIdentifier: [Int: Taken]] = [:]

  /// A session's stream and key of one track.
  struct Taken {
    let stream: ProtectedStream
    /// The key that protects the viewer's RTCP; nil is the stream's key.
    let controlKey: SRTPKey?
  }

  init(_ suite: SRTPSuite?, _ pipeline: Pipeline, tracks: [Int], protectsGroup: Bool) {
    self.suite = suite
    self.pipeline = pipeline
    self.tracks = tracks
    protectGroup(protectsGroup)
  }

  /// Sets whether the group is protected. Streams that viewers already have do not change.
  mutating func protectGroup(_ isProtected: Bool) {
    guard isProtected != !group.isEmpty else { return }
    for stream in group { pipeline.release(stream) }
    group = isProtected ? tracks.compactMap { new($0) } : []
  }

  /// The stream of a session's track; nil if it is in the clear.
  subscript(session: SessionIdentifier, track: Int) -> Taken? { taken[session]?[track] }

  /// Returns the streams that DESCRIBE offers on a connection, one for each track, the same each time until they are
  /// taken; empty if none are offered.
  mutating func offer(on connection: UInt64) -> [ProtectedStream] {
    let former = offered[connection] ?? []
    let streams = tracks.compactMap { track in former.first { $0.track == track } ?? new(track) }
    offered[connection] = streams
    return streams
  }

  /// Gives a session's track the stream that its connection was offered, else the one that it has, else a new one; nil
  /// if none is available.
  ///
  /// - Parameter controlKey: the key that protects the viewer's RTCP, as the viewer says.
  mutating func take(
    for session: SessionIdentifier, track: Int, on connection: UInt64, controlKey: SRTPKey?
  ) -> ProtectedStream? {
    let former = taken[session]?[track]?.stream
    guard let stream = takeOffer(tracks[track], on: connection) ?? former ?? new(tracks[track]) else { return nil }
    if let former, former.ssrc != stream.ssrc { pipeline.release(former) }
    taken[session, default: [:]][track] = Taken(stream: stream, controlKey: controlKey)
    return stream
  }

  /// - Parameter track: the number in the pipeline.
  private mutating func takeOffer(_ track: Int, on connection: UInt64) -> ProtectedStream? {
    guard let index = offered[connection]?.firstIndex(where: { $0.track == track }) else { return nil }
    return offered[connection]?.remove(at: index)
  }

  /// Returns the message that gives a viewer its key; over TLS only.
  func message(for stream: ProtectedStream) -> String {
    var streams = [MIKEYMessage.Stream(ssrc: stream.ssrc, rolloverCounter: stream.rolloverCounter)]
    for shared in group where shared.track == stream.track {
      streams.append(.init(ssrc: shared.ssrc, rolloverCounter: shared.rolloverCounter))
    }
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    var generator = SystemRandomNumberGenerator()
    return MIKEYMessage(key: stream.key, streams: streams).text(
      at: NTPTimestamp(unixSeconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec)), using: &generator)
  }

  /// Releases a session's streams: the session is over.
  mutating func end(_ session: SessionIdentifier) {
    for taken in (taken.removeValue(forKey: session) ?? [:]).values { pipeline.release(taken.stream) }
  }

  /// Releases a session's stream of one track: the track is over, or continues in the clear.
  mutating func end(_ session: SessionIdentifier, track: Int) {
    if let taken = taken[session]?.removeValue(forKey: track) { pipeline.release(taken.stream) }
  }

  /// Releases the streams that a closed connection was offered.
  mutating func forget(_ connection: UInt64) {
    for stream in offered.removeValue(forKey: connection) ?? [] { pipeline.release(stream) }
  }

  /// Releases all streams: there is no viewer any more.
  mutating func endAll() {
    for stream in offered.values.joined() { pipeline.release(stream) }
    for taken in taken.values.map(\.values).joined() { pipeline.release(taken.stream) }
    offered.removeAll()
    taken.removeAll()
    protectGroup(false)
  }

  /// - Parameter track: the number in the pipeline.
  private func new(_ track: Int) -> ProtectedStream? {
    let shared = group.first { $0.track == track }
    return suite.map { pipeline.reserve(shared?.key ?? SRTPKey(random: $0), track: track) }
  }
}
