import Media
import RTP
import SRTP
import Synchronization
import Threading

extension SendStage {
  // MARK: Viewers

  func carryOutOrders() {
    hasOrders.store(false, ordering: .relaxed)
    let taken = orders.withLock { orders in
      defer { orders = [] }
      return orders
    }
    let now = MediaTime.now()
    for order in taken {
      switch order {
      case .add(let newcomer): join(newcomer, at: now)
      case .release(let protection):
        for output in outputs where output.kind.protection == protection { letGoIfUnwatched(output) }
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

  private func join(_ newcomer: Newcomer, at now: MediaTime) {
    let transport = newcomer.transport
    guard let output = output(newcomer.kind, at: now) else { return }
    var unprotector: ControlUnprotector?
    if let protection = newcomer.kind.protection {
      // The key was tried when the destination was added. In the clear is not what was asked for.
      guard
        let made = try? ControlUnprotector(newcomer.controlKey ?? protection.key, media: output.stream.ssrc)
      else { return letGoIfUnwatched(output) }
      unprotector = made
    }
    // Each viewer's own: one that all shared would have gaps for each.
    let retransmissions =
      newcomer.hasRetransmissionStream && newcomer.kind.protection == nil
      ? RetransmissionStream(RTPStream(payloadType: .retransmission)) : nil
    let viewer = Viewer(
      transport: transport,
      feedback: ViewerFeedback(media: output.stream.ssrc, retransmissions: retransmissions), figures: newcomer.figures,
      unprotector: unprotector, onStart: newcomer.onStart, onGoodbye: newcomer.onGoodbye)
    viewers[viewer.id] = (viewer, output)
    // Where the kernel watches no more, this viewer gets the stream, and what it says is not heard.
    if let descriptor = transport.descriptors.input { try? input.insert(descriptor, token: viewer.id.number) }
    output.add(viewer)
    // A fresh key frame where the limit allows one, else the last one, which is not older than the limit is long: but not to who
    // may have got that before.
    guard hasHadPicture else { return }
    if !newcomer.isReturning, !limiter.isOpen(at: now),
      output.replay(to: viewer, bitrate: bitrate.load(ordering: .relaxed), at: now)
    {
      return
    }
    if limiter.request(at: now) { requests.setKeyFrame() }
    viewer.keyFrameRequested(at: now)
  }

  private func output(_ kind: RTPOutput.Kind, at now: MediaTime) -> RTPOutput? {
    if let output = outputs.first(where: { $0.kind == kind }) { return output }
    // The packet size was checked when the destination was.
    guard
      let output = try? RTPOutput(
        kind, canonicalName: canonicalName, bitrate: bitrate.load(ordering: .relaxed), pictures: pictures,
        blocked: blocked, without: without, at: now)
    else { return nil }
    outputs.append(output)
    noteStreams()
    return output
  }

  func leave(_ id: ViewerID, goodbye: Bool) {
    guard let (viewer, output) = viewers.removeValue(forKey: id) else { return }
    blocked.forget(viewer)
    if let descriptor = viewer.transport.descriptors.input { input.remove(descriptor) }
    output.remove(viewer, goodbye: goodbye)
    letGoIfUnwatched(output)
  }

  /// Lets go of a stream that has no viewer and will have none again.
  private func letGoIfUnwatched(_ output: RTPOutput) {
    guard output.viewers.isEmpty, !output.kind.isKept else { return }
    // Gives back the picture that it may be in the middle of.
    output.endPacing(at: .now())
    outputs.removeAll { $0 === output }
    noteStreams()
  }

  private func noteStreams() {
    let count = outputs.count
    statistics.send.withLock { $0.streams = count }
  }

  /// Reads what viewers say, some datagrams of each.
  func read(at now: MediaTime) {
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
      if said.requests.goodbye { viewer.hasSaidGoodbye() }
      // Who has come to a destination in the middle of the stream has nothing to begin with.
      let isNew = said.requests.newReceiver && !viewer.isGuest && viewer.hasBegun
      if said.requests.keyFrame || isNew, limiter.request(at: now) { requests.setKeyFrame() }
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
}
