import Adaptors
import Platform
import RTP
import Synchronization

/// The work of a receiver's thread: sessions one after the other, with a pause after each that is lost.
final class ReceiverWorker: Sendable {
  let pictures = Broadcast<EncodedPicture>(byteLimit: 32 << 20) { $0.annexB.count }
  let sounds = Broadcast<EncodedSound>(byteLimit: 4 << 20) { $0.bytes.count }
  let events = Broadcast<StreamReceiver.Event>()
  let published = Mutex(StreamReceiver.Statistics())
  /// Fires when the receiver must end.
  let stop: Interrupt
  /// Fires when somebody wants a key frame.
  let keyFrameRequest: Interrupt
  let source: StreamReceiver.Source
  let configuration: StreamReceiver.Configuration

  init(_ source: StreamReceiver.Source, _ configuration: StreamReceiver.Configuration) throws(SystemFailure) {
    (self.source, self.configuration) = (source, configuration)
    stop = try Interrupt()
    keyFrameRequest = try Interrupt()
  }

  /// The time for which an automatic choice stays with TCP after UDP has failed: long beside the silence that UDP costs where it is
  /// kept away, and short beside the life of a firewall's fault.
  private static let avoidance = Duration.seconds(600)

  /// Receives until the receiver is stopped, or until no other attempt could succeed.
  func run() {
    var backOff = RetryBackOff()
    var choice = configuration.transport
    // Within TLS by itself: UDP needs a server that encrypts packets.
    if choice == .automatic, case .rtsp(let url) = source, url.isEncrypted { choice = .tcp }
    /// The time until which TCP takes the place of a UDP that has failed.
    var avoidsUDP = Instant.zero
    var hasPlayed = false
    while true {
      let begun = Instant.now()
      let transport = choice == .automatic && begun < avoidsUDP ? .tcp : choice
      let units = published.withLock { figures in
        figures.attempts &+= 1
        return figures.accessUnits
      }
      let failure = attempt(by: transport)
      let hadMedia = published.withLock { figures in
        (figures.isPlaying, figures.lastFailure) = (false, failure)
        return figures.accessUnits != units
      }
      hasPlayed = hasPlayed || hadMedia
      if stop.hasFired() { return end(.stopped) }
      // A stream that came by UDP and went comes by UDP again.
      if transport == .automatic, !hadMedia, Self.isOfUDP(failure) {
        avoidsUDP = .now() + Self.avoidance
        continue
      }
      // A server that was the right one may begin its next connections badly while it starts. Nothing is sent to a wrong one.
      let isTemporary = if hasPlayed, case .encryption = failure { true } else { failure.isTemporary }
      guard configuration.reconnects, isTemporary else { return end(failure) }
      let delay = backOff.failed(after: .now() - begun)
      events.send(.lost(failure, retry: delay))
      _ = stop.wait(until: .now() + delay)
      if stop.hasFired() { return end(.stopped) }
    }
  }

  /// `true` if TCP may succeed where UDP has failed: packets that a firewall keeps away, or a server that sends none.
  private static func isOfUDP(_ failure: ReceiverError) -> Bool {
    switch failure {
    case .silence, .refused(status: 461, _), .unsupported: true
    default: false
    }
  }

  private func attempt(by transport: StreamReceiver.Transport) -> ReceiverError {
    do throws(ReceiverError) {
      switch source {
      case .rtsp(let url):
        try RTSPSession(self, url, transport: transport).run()
      case .sessionDescription(let text):
        try DescribedSession(self, text).run()
      }
      return .ended
    } catch {
      return error
    }
  }

  /// Tells the subscribers the end.
  func end(_ failure: ReceiverError) {
    published.withLock { $0.lastFailure = failure }
    events.send(.ended(failure))
    events.finish()
    pictures.finish()
    sounds.finish()
  }

  /// Publishes the figures of a session's tracks, added to `before`.
  func publish(_ tracks: [SessionTrack], since before: StreamReceiver.Statistics) {
    guard let picture = tracks.first?.reception else { return }
    let sound = tracks.count > 1 ? tracks[1].reception : nil
    let counts = picture.receiver.counts
    published.withLock { figures in
      figures.bytes = before.bytes &+ picture.bytes
      figures.packets = before.packets &+ picture.packets
      figures.packetsRefused = before.packetsRefused &+ picture.packetsRefused &+ (sound?.packetsRefused ?? 0)
      figures.accessUnits = before.accessUnits &+ counts.accessUnits
      figures.accessUnitsDamaged = before.accessUnitsDamaged &+ counts.accessUnitsDamaged
      figures.counts = counts
      figures.jitter = picture.receiver.statistics?.jitterTime ?? .zero
      figures.roundTrip = picture.receiver.roundTrip
      figures.delay = picture.delay
      figures.lastArrival = picture.lastArrival ?? figures.lastArrival
      guard let sound else { return }
      let former = before.sound ?? .init()
      var present = StreamReceiver.SoundStatistics()
      present.bytes = former.bytes &+ sound.bytes
      present.packets = former.packets &+ sound.packets
      present.counts = sound.receiver.counts
      present.jitter = sound.receiver.statistics?.jitterTime ?? .zero
      present.delay = sound.delay
      present.lastArrival = sound.lastArrival ?? former.lastArrival
      figures.sound = present
    }
  }

  /// Publishes whether the present session has sound, or the codecs of a sound that is not received.
  func noteSound(_ hasSound: Bool, other: String?) {
    published.withLock { figures in
      figures.otherSound = other
      figures.sound = hasSound ? figures.sound ?? .init() : nil
    }
  }

  /// Returns the reason why a stream counts as lost of which no packet comes.
  func silence(of picture: TrackReception) -> ReceiverError {
    let seconds = configuration.silenceTimeout.seconds
    guard picture.forgedSince != nil else { return .silence("no packet came for \(seconds) s") }
    return .forged("packets come, and none has the right tag for \(seconds) s: the key is another one")
  }

  /// Passes a picture or a packet of sound to the subscribers.
  func deliver(_ media: ReceivedMedia) {
    switch media {
    case .picture(let picture): pictures.send(picture)
    case .sound(let sound): sounds.send(sound)
    }
  }
}
