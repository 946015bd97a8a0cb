import Foundation
import Media
import Platform
import RTP
import Streaming
import TestSupport
import Testing

@Suite struct PortReachabilityTests {
  private var port = PortReachability()

  @Test mutating func `on this machine each packet is refused, and the first frames that are not show a listener`() {
    #expect(!port.noteSent(at: Instant(seconds: 1)) && !port.isRefused)
    for frame in 0..<30 { port.noteRefusal(at: Instant(seconds: 1 + Double(frame) / 30)) }
    #expect(port.isRefused)
    let told = (30..<60).filter { port.noteSent(at: Instant(seconds: 1 + Double($0) / 30)) }
    #expect(told.count == 1 && told[0] <= 34, "\(told)")
    #expect(!port.isRefused)
  }

  /// Sends `frames` of 30 a second from `start` on, each refused; returns the number of the first after them that shows a listener.
  private mutating func refuse(_ frames: Int, from start: Int) -> Int? {
    for frame in start..<start + frames {
      let now = Instant(seconds: 1 + Double(frame) / 30)
      port.noteRefusal(at: now)
      let isTold = port.noteSent(at: now)
      #expect(!isTold)
    }
    return (start + frames..<start + frames + 30).first { port.noteSent(at: Instant(seconds: 1 + Double($0) / 30)) }
  }

  @Test mutating func `where each frame was refused, the first one that is not shows a listener`() {
    let told = refuse(PortReachability.leastRegularity, from: 0)
    #expect(told == PortReachability.leastRegularity && !port.isRefused)
  }

  @Test mutating func `a program that comes and goes needs more refused frames each time, and never more than some`() {
    let (least, most) = (PortReachability.leastRegularity, PortReachability.mostRegularity)
    let first = refuse(least, from: 0)
    #expect(first == least)
    // It has gone at once: as few refused frames show nothing now, and silence does.
    let second = refuse(least, from: 40)
    #expect(second ?? 0 > 40 + least)
    var start = 100
    for _ in 0..<10 {
      let told = refuse(most, from: start)
      #expect(told == start + most)
      start += most + 10
    }
  }

  @Test mutating func `over a network a host refuses once a second, and packets between show no listener`() {
    // The first six at once (Linux: XRLIM_BURST_FACTOR), then one a second.
    var told: [Int] = []
    for frame in 0..<600 {
      let now = Instant(seconds: Double(frame) / 30)
      if frame < 6 || frame.isMultiple(of: 30) {
        port.noteRefusal(at: now)
      } else if port.noteSent(at: now) {
        told.append(frame)
      }
    }
    // Once before it is known how seldom it answers.
    #expect(told.count <= 1, "\(told)")
    let here = (600..<900).first { port.noteSent(at: Instant(seconds: Double($0) / 30)) }
    #expect((here ?? 900) < 600 + 90)
  }

  /// A host on a network that refuses packets at most once in `interval`. It saves up to `burst` refusals while it has
  /// nothing to refuse (Linux: XRLIM_BURST_FACTOR).
  private struct FarHost {
    let interval: Double
    let burst: Double
    private var allowed = 1.0
    private var last = 0.0
    /// `true` if a refusal is on its way.
    var hasRefused = false

    init(interval: Double, burst: Double) {
      self.interval = interval
      self.burst = burst
    }

    /// Takes a packet at `seconds` that nobody listens for.
    mutating func refuse(at seconds: Double) {
      allowed = min(burst, allowed + (seconds - last) / interval)
      last = seconds
      hasRefused = allowed >= 1
      if hasRefused { allowed -= 1 }
    }
  }
  private var frame = 0

  /// Sends 30 frames a second for `seconds`. Returns the seconds from the first one until a listener was shown, each
  /// time.
  private mutating func send(to host: inout FarHost, for seconds: Int, isListening: Bool) -> [Double] {
    var told: [Double] = []
    for number in 0..<seconds * 30 {
      frame += 1
      let now = Double(frame) / 30
      if host.hasRefused { port.noteRefusal(at: Instant(seconds: now)) }
      host.hasRefused = false
      if port.noteSent(at: Instant(seconds: now)) { told.append(Double(number) / 30) }
      if !isListening { host.refuse(at: now) }
    }
    return told
  }

  @Test(arguments: [[6, 6, 15, 40], [9, 9, 9, 9]], [1.0, 6.0])
  mutating func `over a network no receiver waits longer because of the one before`(seconds: [Int], burst: Double) {
    var host = FarHost(interval: 1, burst: burst)
    let before = send(to: &host, for: 4, isListening: false)
    #expect(before.count <= 1, "not yet known how seldom the host answers: \(before)")
    for listening in seconds {
      let told = send(to: &host, for: listening, isListening: true)
      #expect(told.count == 1 && told[0] < 3, "\(listening) s: \(told)")
      let wrong = send(to: &host, for: 4, isListening: false)
      #expect(wrong.isEmpty, "after \(listening) s: \(wrong)")
    }
  }

  @Test mutating func `a host that refuses every five seconds seems to listen once at most`() {
    var host = FarHost(interval: 5, burst: 1)
    for round in 0..<2 {
      let wrong = send(to: &host, for: 300, isListening: false)
      #expect(wrong.count <= 1 - round, "\(wrong)")
      let told = send(to: &host, for: 20, isListening: true)
      #expect(told.count == 1 && told[0] < 8, "\(told)")
    }
  }

  /// Receives one refusal a second for `seconds`, of which a part that `random` chooses is this port's; returns how often
  /// a listener was shown.
  private mutating func share(for seconds: Int, _ random: inout SeededGenerator) -> Int {
    var (told, last) = (0, frame / 30)
    for _ in 0..<seconds * 30 {
      frame += 1
      let now = Instant(seconds: Double(frame) / 30)
      if frame / 30 > last {
        last = frame / 30
        if Bool.random(using: &random) { port.noteRefusal(at: now) }
      }
      if port.noteSent(at: now) { told += 1 }
    }
    return told
  }

  @Test(arguments: 1...8)
  mutating func `a port that shares its host's refusals seldom seems to listen, and is seen`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let told = share(for: 3600, &random)
    #expect(told < 30, "\(told)")
    var host = FarHost(interval: 1, burst: 1)
    port.noteRefusal(at: Instant(seconds: Double(frame) / 30))
    let seen = send(to: &host, for: 20, isListening: true)
    #expect(seen.count == 1 && seen[0] < 16, "\(seen)")
    // The other port is served now: this one gets each refusal, and is soon seen again.
    _ = send(to: &host, for: 60, isListening: false)
    let seenAgain = send(to: &host, for: 20, isListening: true)
    #expect(seenAgain.count == 1 && seenAgain[0] < 3, "\(seenAgain)")
  }

  @Test(arguments: [3, 4, 5])
  mutating func `receivers that leave soon are seen, however many come`(seconds: Int) {
    var host = FarHost(interval: 1, burst: 1)
    _ = send(to: &host, for: 30, isListening: false)
    for number in 1...8 {
      let told = send(to: &host, for: seconds, isListening: true)
      #expect(told.count == 1, "receiver \(number): \(told)")
      _ = send(to: &host, for: 10, isListening: false)
    }
  }

  @Test(arguments: [3, 4, 5], [4, 6])
  mutating func `a receiver that stays is seen in time, however many short visits came before`(seconds: Int, pause: Int)
  {
    for visits in 1...8 {
      (port, frame) = (PortReachability(), 0)
      var host = FarHost(interval: 1, burst: 1)
      _ = send(to: &host, for: 30, isListening: false)
      for _ in 0..<visits {
        _ = send(to: &host, for: seconds, isListening: true)
        _ = send(to: &host, for: pause, isListening: false)
      }
      let told = send(to: &host, for: 20, isListening: true)
      #expect(told.count == 1 && told[0] <= 7.6, "after \(visits) visits: \(told)")
    }
  }

  @Test mutating func `a refusal that is lost makes no receiver wait`() {
    var host = FarHost(interval: 1, burst: 1)
    _ = send(to: &host, for: 30, isListening: false)
    // As if a program listened for a second, which is too short to be seen.
    let told = send(to: &host, for: 1, isListening: true)
    #expect(told.isEmpty)
    _ = send(to: &host, for: 4, isListening: false)
    let seen = send(to: &host, for: 6, isListening: true)
    #expect(seen.count == 1 && seen[0] < 2.8, "\(seen)")
  }

  /// A viewer at a port whose refusals `transport` tells.
  private func refusedViewer(_ transport: ScriptedTransport) -> Viewer {
    let figures = ViewerFigures(id: ViewerID(number: 1), name: "viewer 1")
    return Viewer(transport: transport, feedback: ViewerFeedback(media: 1), figures: figures)
  }

  @Test func `each receiver has a key frame requested at once, however many came before`() throws {
    let (transport, maker) = (ScriptedTransport(), try FrameMaker())
    let viewer = refusedViewer(transport)
    var now = Instant(seconds: 100)
    /// Sends the next frame, of 30 a second; returns `true` if a key frame is to be requested.
    func next(isKeyFrame: Bool = false) throws -> Bool {
      now = now + .milliseconds(33)
      _ = viewer.offer(try maker.frame(isKeyFrame: isKeyFrame), at: now)
      viewer.flush(at: now)
      return viewer.wantsKeyFrame(at: now)
    }
    transport.isRefusing = true
    _ = try next(isKeyFrame: true)
    for receiver in 1...6 {
      transport.isRefusing = true
      for _ in 0..<PortReachability.mostRegularity + 8 {
        let isRequested = try next()
        #expect(!isRequested)
      }
      transport.isRefusing = false
      let isRequested = try next()
      #expect(isRequested, "receiver \(receiver)")
      let isRequestedAgain = try next(isKeyFrame: true)
      #expect(!isRequestedAgain)
      for _ in 0..<15 { _ = try next() }
    }
  }

  @Test func `a program that comes and goes all the time has a key frame requested about every two seconds`() throws {
    let (transport, maker) = (ScriptedTransport(), try FrameMaker())
    let viewer = refusedViewer(transport)
    var requests: [Int] = []
    // Six frames each, for 20 s. The request is answered with the next frame.
    for number in 0..<600 {
      let now = Instant(seconds: 100) + .milliseconds(Int64(number) * 33)
      transport.isRefusing = number % 12 < 6
      _ = viewer.offer(try maker.frame(isKeyFrame: number == 0 || requests.last == number - 1), at: now)
      viewer.flush(at: now)
      if viewer.wantsKeyFrame(at: now) { requests.append(number) }
    }
    #expect((6...12).contains(requests.count), "\(requests)")
    #expect(requests.allSatisfy { $0 % 12 >= 6 }, "nobody is there: \(requests)")
  }

  @Test func `a key frame between two refusals of a network is none for the receiver that comes after it`() throws {
    let (transport, maker) = (ScriptedTransport(), try FrameMaker())
    let viewer = refusedViewer(transport)
    var requests: [Int] = []
    for number in 0..<450 {
      let now = Instant(seconds: 100 + Double(number) / 30)
      // One refusal a second, the last one at 300. A program listens some frames after the key frame at 310.
      transport.isRefusing = number <= 300 && number.isMultiple(of: 30)
      _ = viewer.offer(try maker.frame(isKeyFrame: number == 0 || number == 310), at: now)
      viewer.flush(at: now)
      if viewer.wantsKeyFrame(at: now) { requests.append(number) }
    }
    #expect(requests.filter { $0 > 30 }.count == 1 && (375...390).contains(requests.last ?? 0), "\(requests)")
  }

  @Test func `a receiver whose first whole frame is a key frame has none requested`() throws {
    let (transport, maker) = (ScriptedTransport(), try FrameMaker())
    let viewer = refusedViewer(transport)
    transport.isRefusing = true
    for number in 0...PortReachability.leastRegularity {
      let now = Instant(seconds: 100) + .milliseconds(Int64(number) * 33)
      if number == PortReachability.leastRegularity { transport.isRefusing = false }
      let isKeyFrame = number == 0 || number == PortReachability.leastRegularity
      _ = viewer.offer(try maker.frame(isKeyFrame: isKeyFrame), at: now)
      viewer.flush(at: now)
    }
    #expect(viewer.figures.current.errorNumber == 0, "the receiver is seen")
    #expect(!viewer.wantsKeyFrame(at: Instant(seconds: 101)))
  }
}

/// Receivers that come in the middle of a stream that has a key frame once in 1000 s.
@Suite(.serialized) struct LateReceiverTests {
  @Test(arguments: [StreamPayload.h264, .mp2t], [false, true])
  func `a receiver that starts to listen gets a key frame`(payload: StreamPayload, isMuxed: Bool) throws {
    let port = try UDPPort.free()
    let encoder = try SizedEncoder(keyBytes: 3000, bytes: 500)
    let running = try RunningPipeline(
      encoder,
      to: [StreamDestination(host: "127.0.0.1", port: port, payload: payload, multiplexesRTCP: isMuxed)])
    defer { running.end() }
    func figures() -> DestinationStatistics { running.pipeline.statistics.destinations[0] }
    #expect(eventually { figures().frames > 30 && figures().errorNumber == ECONNREFUSED })
    for round in 1...2 {
      usleep(600_000)
      let before = encoder.keyFrames.count
      let socket = try TestSocket(port: port)
      #expect(eventually { encoder.keyFrames.count > before && figures().errorNumber == 0 }, "round \(round)")
      let packet = socket.first(within: 20) { payload == .mp2t ? $0.isTransportStreamKeyFrame : $0.isRTPKeyFrame }
      #expect(packet != nil)
      usleep(700_000)
      #expect(encoder.keyFrames.count == before + 1)
      _ = consume socket
      #expect(eventually { figures().errorNumber == ECONNREFUSED })
    }
  }

  @Test func `a receiver that reports for the first time gets a key frame, and no second one`() throws {
    let (media, control) = try TestSocket.pair()
    let encoder = try SizedEncoder(keyBytes: 3000, bytes: 500)
    let running = try RunningPipeline(encoder, to: [StreamDestination(host: "127.0.0.1", port: media.port)])
    defer { running.end() }
    let report = try #require(control.first { (200...207).contains($0[1]) })
    func say(_ source: UInt8) {
      // An empty RR (RFC 3550 section 6.4.2).
      control.send([0x80, 201, 0, 1, 0, 0, 0, source], to: report.port)
    }
    for source in UInt8(1)...2 {
      usleep(700_000)
      let before = encoder.keyFrames.count
      say(source)
      #expect(eventually { encoder.keyFrames.count == before + 1 })
      usleep(700_000)
      for again in 1...source { say(again) }
      usleep(700_000)
      #expect(encoder.keyFrames.count == before + 1)
    }
  }

  @Test func `a key frame that is sent again to a guest is paced, and each packet arrives once`() throws {
    // So small that the packets from the key frame on are kept for a second.
    let encoder = try SizedEncoder(keyBytes: 70_000, bytes: 5000)
    let running = try RunningPipeline(encoder, to: [])
    defer { running.end() }
    func admit(_ socket: TestSocket) throws -> ViewerID {
      try running.pipeline.admit(
        .datagrams(to: SocketAddress(host: "127.0.0.1", port: socket.port), control: nil, timeToLive: nil),
        name: "viewer"
      ) { _ in }
    }
    /// The first packets of a guest that comes so soon after another one that the limit on requests does not allow a key
    /// frame. Nil, with nothing judged, where the host was held up for so long that the limit may have allowed one.
    func comeLate() throws -> [TestSocket.Datagram]? {
      usleep(600_000)
      let (first, late) = (try TestSocket.pair().media, try TestSocket.pair().media)
      // Before the request that the limit counts from.
      let begin = Instant.now()
      let early = try admit(first)
      try #require(first.first { $0.isRTPKeyFrame } != nil)
      usleep(250_000)
      let keyFrames = encoder.keyFrames.count
      let second = try admit(late)
      defer { for viewer in [early, second] { running.pipeline.remove(viewer) } }
      var packets: [TestSocket.Datagram] = []
      // After the guest was admitted.
      var admitted = begin
      while packets.count < 150, let packet = late.next() {
        guard !(200...207).contains(packet.bytes[1]) else { continue }
        if packets.isEmpty { admitted = .now() }
        packets.append(packet)
      }
      guard admitted - begin < KeyFrameRequestLimiter().interval else { return nil }
      // Nor where it was held up within the replay: what is older than a second is not kept.
      let times = packets.map(\.arrival)
      guard zip(times, times.dropFirst()).allSatisfy({ $1 - $0 < 400_000_000 }) else { return nil }
      #expect(encoder.keyFrames.count == keyFrames && packets.count == 150)
      return packets
    }
    // Before the first picture no key frame is asked for, from which the limit would count.
    try #require(eventually { running.pipeline.tracks[0].figures.accessUnits > 0 })
    var judged: [TestSocket.Datagram]?
    for _ in 0..<10 where judged == nil { judged = try comeLate() }
    let packets = try #require(judged, "the host was held up for a quarter of a second, ten times")
    #expect(packets.first?.bytes.isRTPKeyFrame == true || packets.first.map { $0.bytes[12] & 31 == 24 } == true)
    let numbers = packets.map(\.bytes.rtpSequenceNumber)
    #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $1 == $0 &+ 1 })
    // The most that the kernel got within 5 ms: a burst, what had gathered while this machine was busy, and a frame. All of it,
    // some 110 kB, where it is not spread.
    var most = 0
    var begin = 0
    var inside = 0
    for packet in packets {
      inside += packet.bytes.count
      while packet.arrival - packets[begin].arrival > 5_000_000 {
        inside -= packets[begin].bytes.count
        begin += 1
      }
      most = max(most, inside)
    }
    #expect(most <= 2 * Replay.burstBytes + 12_000, "\(most) bytes within 5 ms")
  }
}

extension [UInt8] {
  /// `true` if an RTP packet of a transport stream has a random access point (ISO/IEC 13818-1 section 2.4.3.5).
  fileprivate var isTransportStreamKeyFrame: Bool {
    count >= 12 + 188
      && stride(from: 12, to: count - 187, by: 188).contains { start in
        self[start + 3] & 0x20 != 0 && self[start + 4] > 0 && self[start + 5] & 0x40 != 0
      }
  }
}
