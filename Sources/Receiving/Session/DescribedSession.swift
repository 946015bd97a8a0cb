import Adaptors
import Platform
import RTP
import RTSP
import SRTP
import Synchronization

/// A session of plain RTP or SRTP: two ports a track, of this host or of a group, and no server to ask.
struct DescribedSession {
  private let worker: ReceiverWorker
  /// The tracks; the picture's is the first.
  private let tracks: [SessionTrack]
  private let before: StreamReceiver.Statistics

  /// Opens the ports of a session description.
  ///
  /// - Throws: ``ReceiverError``.
  init(_ worker: ReceiverWorker, _ text: String) throws(ReceiverError) {
    let description = try ReceivedDescription(Array(text.utf8))
    var described = [try description.picture()]
    if worker.configuration.receivesSound, let sound = description.sound() { described.append(sound) }
    self.worker = worker
    before = worker.published.withLock { $0 }
    let clock = SessionClock()
    var tracks: [SessionTrack] = []
    for track in described { tracks.append(try Self.opened(track, worker, clock)) }
    self.tracks = tracks
    worker.noteSound(tracks.count > 1, other: worker.configuration.receivesSound ? description.otherSound : nil)
  }

  private static func opened(
    _ track: ReceivedDescription.Track, _ worker: ReceiverWorker, _ clock: SessionClock
  ) throws(ReceiverError) -> SessionTrack {
    let medium = track.medium
    guard medium.port > 0, medium.port < .max else {
      throw .unsupported("the session description has no port: the stream is one of an RTSP server")
    }
    // What the file says is as secret as the file.
    var keys: TrackKeys?
    if track.profile.isProtected { keys = TrackKeys(sharing: try track.senderKey()) }
    let isGroup = track.address?.isMulticast == true
    let sockets: DatagramPair
    if isGroup, let group = track.address {
      let interface =
        if let name = worker.configuration.interface { try GroupMembership.index(of: name) } else { UInt32(0) }
      sockets = try DatagramPair(
        joining: GroupMembership(
          group, sender: track.source, isSourceSpecific: track.source != nil, interface: interface,
          timeToLive: track.timeToLive ?? 1),
        ports: PortPair(rtp: medium.port, rtcp: medium.port + 1), isMultiplexed: medium.isMultiplexed)
    } else {
      sockets = try DatagramPair(
        from: nil, port: medium.port, local: track.address, isMultiplexed: medium.isMultiplexed)
    }
    let reception = try TrackReception(
      track, .init(isMultiplexed: medium.isMultiplexed, isGroup: isGroup), keys: keys, clock,
      worker.configuration, at: .now(), wallClock: wallClock
    ) { worker.deliver($0) }
    return SessionTrack(reception, sockets: sockets)
  }

  /// Receives until the receiver is stopped.
  ///
  /// - Throws: ``ReceiverError/silence(_:)``, ``ReceiverError/forged(_:)``, ``ReceiverError/ended``,
  ///   ``ReceiverError/stopped``.
  func run() throws(ReceiverError) {
    let packetMemory = PacketMemory()
    let memory = packetMemory.bytes
    defer { withExtendedLifetime(packetMemory) {} }
    worker.published.withLock { $0.isPlaying = true }
    worker.events.send(.playing(way))
    let picture = tracks[0].reception
    while true {
      var wait = SessionWait()
      let stop = wait.add(worker.stop.fileDescriptor)
      let request = wait.add(worker.keyFrameRequest.fileDescriptor)
      for track in tracks { track.add(to: &wait) }
      // A stream that has not begun yet is waited for; one that was there and is silent is lost.
      let silence = silenceTime
      let deadline = tracks.map(\.reception.receiver.nextDeadline).min() ?? .now()
      wait.wait(until: min(deadline, silence ?? .now() + .seconds(1)))
      if wait.isReady(stop) {
        for track in tracks { track.reception.sendGoodbye(into: memory, at: .now()) { track.sockets?.send($0) } }
        throw .stopped
      }
      if wait.isReady(request) {
        worker.keyFrameRequest.clear()
        picture.receiver.requestKeyFrame()
      }
      for track in tracks {
        track.receiveDatagrams(into: memory)
        track.reception.poll(at: .now())
        track.reception.sendFeedback(into: memory, at: .now()) { track.sockets?.send($0) }
      }
      worker.publish(tracks, since: before)
      if let silenceTime, silenceTime < .now() { throw worker.silence(of: picture) }
      if picture.receiver.hasEnded { throw .ended }
    }
  }

  /// The time at which the stream counts as lost, unless a packet comes before; nil before the first.
  private var silenceTime: Instant? {
    let picture = tracks[0].reception
    return (picture.lastPacket ?? picture.forgedSince).map { $0 + worker.configuration.silenceTimeout }
  }

  /// The way of the packets, for people.
  private var way: String {
    let kinds = tracks.map { track in
      let reception = track.reception.track
      let name = reception.profile.isProtected ? "SRTP" : "RTP"
      let group = reception.address.flatMap { $0.isMulticast ? " of the group \($0.text)" : nil } ?? ""
      return "\(name) at UDP port \(reception.medium.port)\(group)"
    }
    return kinds[0] + (tracks.count > 1 ? ", sound at port \(tracks[1].reception.track.medium.port)" : "")
  }
}
