import Platform
import RTP
import SRTP
import Synchronization

extension SendStage {
  // MARK: Viewers

  func carryOutOrders() {
    hasOrders.store(false, ordering: .relaxed)
    let taken = orders.withLock { orders in
      defer { orders = [] }
      return orders
    }
    let now = Instant.now()
    for order in taken {
      switch order {
      case .add(let joining): join(joining, at: now)
      case .release(let protection):
        for output in outputs where output.kind.protection == protection { letGoIfUnwatched(output) }
      case .remove(let id, let goodbye): leave(id, goodbye: goodbye)
      case .keyFrame:
        if limiter.request(at: now) { requests.setKeyFrame() }
      case .watch(let ports):
        self.ports.append(ports)
        // Where the kernel watches no more descriptors, unknown senders are not counted, and nothing else is amiss.
        try? input.insert(ports.descriptors.media, token: Self.unknownSendersToken)
        try? input.insert(ports.descriptors.control, token: Self.unknownSendersToken)
      }
    }
  }

  private func join(_ joining: JoiningViewer, at now: Instant) {
    let transport = joining.transport
    guard let output = returned(joining, at: now) ?? output(joining.kind, at: now) else { return }
    var unprotector: ControlUnprotector?
    if let key = joining.controlKey ?? joining.kind.protection?.key {
      // The key was tried when the destination was added. Sending in the clear was not requested.
      guard
        let made = try? ControlUnprotector(key, media: output.stream.ssrc)
      else { return letGoIfUnwatched(output) }
      unprotector = made
    }
    // Each viewer's own: a shared stream would have gaps for each viewer.
    let retransmissions =
      joining.hasRetransmissionStream && joining.kind.protection == nil
      ? RetransmissionStream(
        RTPStream(
          protected: .retransmission, clockRate: output.stream.clockRate, ssrc: joining.retransmissionSource))
      : nil
    var bandwidth: ViewerBandwidth?
    if output.keyFrameRule == .keyFrames, !transport.isShared {
      let breaker =
        transport.losesBursts && !output.kind.isForPeers
        ? CircuitBreaker(
          frameInterval: frameInterval, groupInterval: groupInterval, expectsReports: joining.onStart != nil) : nil
      bandwidth = ViewerBandwidth(
        wanted: wantedBandwidth, breaker: breaker, takesReceiverLimit: output.kind.isForPeers)
    }
    let viewer = Viewer(
      transport: transport,
      feedback: ViewerFeedback(
        media: output.stream.ssrc, clockRate: output.stream.clockRate, retransmissions: retransmissions,
        limits: output.kind.isForPeers ? .browser : .init()),
      figures: joining.figures, bandwidth: bandwidth,
      framesInFlightLimit: output.keyFrameRule == .everyUnit ? heldLimit : Viewer.framesInFlightLimit,
      unprotector: unprotector, onStart: joining.onStart, onGoodbye: joining.onGoodbye)
    viewers[viewer.id] = (viewer, output)
    if let place = joining.place { places[viewer.id] = place }
    // Where the kernel watches no more descriptors, this viewer gets the stream, and its RTCP is not read.
    if let descriptor = transport.descriptors.input { try? input.insert(descriptor, token: viewer.id.number) }
    output.add(viewer)
    if output.renditions?.present == .small { noteRendition(.small, of: viewer) }
    // A fresh key frame where the limit allows one; else the last one, which is not older than the limit is long. A
    // viewer that may have got that one before does not get it again.
    guard hasHadPicture, output.keyFrameRule == .keyFrames else { return }
    if !joining.isReturning, !limiter.isOpen(at: now),
      output.replay(to: viewer, bitrate: bitrate.load(ordering: .relaxed), at: now)
    {
      return
    }
    requestKeyFrame(for: output, at: now)
    viewer.keyFrameRequested(at: now)
  }

  /// Returns a stream that goes on with the numbers of the one that the viewer had for itself before a pause; nil where it had none.
  private func returned(_ joining: JoiningViewer, at now: Instant) -> RTPOutput? {
    guard joining.kind.protection == nil, let numbering = joining.place?.numbering.withLock({ $0.take() }) else {
      return nil
    }
    var kind = joining.kind
    kind.viewer = joining.figures.id
    let keeps = joining.transport.losesBursts && hasRoomForOwnStream ? RetransmissionRoom.smallSecond : .nothing
    let output = output(kind, numbering: numbering, keeps: keeps, at: now)
    output?.renditions = RenditionSwitch(frameInterval: frameInterval)
    return output
  }

  private func output(
    _ kind: RTPOutput.Kind, numbering: RTPStream? = nil, keeps: RetransmissionRoom = .second, at now: Instant
  ) -> RTPOutput? {
    if let output = outputs.first(where: { $0.kind == kind }) { return output }
    // The packet size was checked when the destination was.
    guard
      let output = try? RTPOutput(
        kind, numbering: numbering ?? (kind.isForPeers ? peerNumbering : nil), canonicalName: canonicalName,
        bitrate: bitrate.load(ordering: .relaxed), keeps: keeps, pictures: pictures,
        blocked: blocked, sending, at: now)
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
    if let place = places.removeValue(forKey: id), output.kind.viewer == id, output.kind.protection == nil {
      place.numbering.withLock { $0 = output.stream }
    }
    letGoIfUnwatched(output)
  }

  /// Removes a stream that has no viewer and will have none again.
  func letGoIfUnwatched(_ output: RTPOutput) {
    guard output.viewers.isEmpty, !output.kind.isKept(forGuestsOf: guestPayload) else { return }
    // Gives back the picture that the stream may be in the middle of.
    output.endPacing(at: .now())
    outputs.removeAll { $0 === output }
    noteStreams()
  }

  func noteStreams() {
    let count = outputs.count
    statistics.send.withLock { $0.streams = count }
  }

  /// Reads the viewers' RTCP, a few datagrams of each.
  func read(at now: Instant) {
    guard inputRests == nil else { return }
    var isFlooding = false
    var unknownSenders = 0
    let isAll = input.takeReady { token in
      guard token != Self.unknownSendersToken else {
        let limit = 2 * RTPOutput.datagramsAtATime
        var count = 0
        for ports in ports { count += ports.discardStrangers(limit: limit) }
        unknownSenders += count
        if count >= limit { isFlooding = true }
        return
      }
      guard let (viewer, output) = viewers[ViewerID(number: token)] else { return }
      let said = output.receive(from: viewer, into: datagram, at: now)
      if said.isFlooding { isFlooding = true }
      if said.requests.goodbye { viewer.hasSaidGoodbye() }
      // A receiver that has joined a destination in the middle of the stream has no picture to begin with.
      let isNew = said.requests.newReceiver && !viewer.isGuest && viewer.hasBegun
      if isNew { output.greet(viewer) }
      if said.requests.keyFrame || isNew { requestKeyFrame(for: output, at: now) }
      viewer.figures.update {
        if said.isHeard { $0.lastHeard = now }
        $0.reception = viewer.feedback.reception
        $0.feedback = viewer.feedback.counts
        if let unprotector = viewer.unprotector { $0.refused = unprotector.counts }
      }
    }
    if unknownSenders > 0 { statistics.send.withLock { $0.unknownSenders += unknownSenders } }
    if isFlooding || !isAll { inputRests = now + Self.inputRest }
  }
}
