import Platform
import RTP

/// The replays for viewers that join late.
extension RTPOutput {
  /// Begins to send a viewer the last key frame and all that followed it, so that its first packet is that of a picture
  /// that can be decoded. The viewer gets frames once it has got all of that.
  ///
  /// - Parameter bitrate: bits a second of the stream.
  /// - Returns: `false` if the packets are not held any more, or have no room on their way.
  func replay(to viewer: Viewer, bitrate: Int, at now: Instant) -> Bool {
    // After so many packets, its number is another packet's.
    guard let lastKeyFrame, stream.packetsSent - lastKeyFrame.index < 1 << 15 else { return false }
    let first = lastKeyFrame.number
    let next = stream.nextSequenceNumber
    var number = first
    // First a check that all packets are there: half a picture is worth less than none.
    while number != next {
      guard history.withPacket(number, at: now, { _ in true }) == true else { return false }
      number &+= 1
    }
    history.withPacket(first, at: now) { viewer.catchUp(withFirst: $0) }
    replays.append(Replay(to: viewer, from: first, bitrate: bitrate, at: now))
    continueReplays(at: now)
    // A viewer that has got all of it is in no list any more.
    return !viewer.awaitsKeyFrame
  }

  /// The time at which the next packets of a replay may leave; nil where there is none.
  var replayDeadline: Instant? { replays.lazy.map { $0.deadline }.min() }

  /// `true` if some viewer gets earlier packets instead of frames.
  var isReplaying: Bool { !replays.isEmpty }

  /// Sends the packets that may leave by now to viewers that have joined late.
  func continueReplays(at now: Instant) {
    for index in replays.indices.reversed() where !continueReplay(index, at: now) { replays.remove(at: index) }
  }

  /// Sends the packets of a replay that may leave. Returns `false` once nothing follows.
  private func continueReplay(_ index: Int, at now: Instant) -> Bool {
    let viewer = replays[index].viewer
    guard viewer.isCatchingUp else { return false }
    guard replays[index].refill(at: now) || !viewer.transport.losesBursts else { return true }
    while replays[index].next != stream.nextSequenceNumber {
      guard replays[index].allowsPacket || !viewer.transport.losesBursts else { return true }
      let bytes = history.withPacket(replays[index].next, at: now) { viewer.sendAgain($0, at: now) ? $0.count : 0 } ?? 0
      guard bytes > 0 else {
        // The packet is held no longer, or there was no room.
        viewer.fallBehind()
        return false
      }
      replays[index].noteSent(bytes: bytes)
    }
    viewer.caughtUp(isInFrame: isInPicture)
    return false
  }
}
