#if X264
  import Encoding
  import Foundation
  import Media
  import Platform
  import SRTP
  import Synchronization
  import TestSupport
  import Testing

  import Streaming

  /// An encoder of small pictures that tells which effort is requested of it, and fails when it is told to.
  private final class WatchedEncoder: VideoEncoder, @unchecked Sendable {
    // Sendable: one thread at a time uses it; the log has a lock.

    /// The encoders so far.
    final class Log: Sendable {
      struct State {
        /// The effort with which each encoder was made.
        var opened: [EncodingEffort?] = []
        /// The efforts that were requested later.
        var requested: [EncodingEffort?] = []
        var isFailing = false
      }
      let state = Mutex(State())

      var opened: [EncodingEffort?] { state.withLock { $0.opened } }
      var requested: [EncodingEffort?] { state.withLock { $0.requested } }

      func fail(_ isFailing: Bool) { state.withLock { $0.isFailing = isFailing } }

      /// Makes the encoders.
      var maker: Pipeline.MakeRenditionEncoder {
        { [self] configuration in
          state.withLock { $0.opened.append(configuration.effort) }
          return WatchedEncoder(try EncoderSelector.selectSmall(.x264, configuration), self)
        }
      }
    }

    private let inner: any VideoEncoder
    private let log: Log

    init(_ inner: any VideoEncoder, _ log: Log) { (self.inner, self.log) = (inner, log) }

    var configuration: EncoderConfiguration { inner.configuration }
    var name: String { inner.name }
    var parameterSets: ParameterSets { inner.parameterSets }
    var turns: OrientationSet { inner.turns }
    var counters: EncoderCounters { inner.counters }

    func prepare() throws(EncoderError) { try inner.prepare() }

    func encode(_ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink) throws(EncoderError) {
      if log.state.withLock({ $0.isFailing }) { throw .output(library: "scripted", "it was told to fail") }
      try inner.encode(frame, keyFrame: keyFrame, to: sink)
    }

    func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {
      try inner.change(bitrate: bitrate, frameRate: frameRate)
    }

    func restrict(_ restrictions: EncoderRestrictions) {
      log.state.withLock { $0.requested.append(restrictions.effort) }
      inner.restrict(restrictions)
    }

    func frameSize(for rotated: PictureSize) -> PictureSize { inner.frameSize(for: rotated) }

    func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) { try inner.flush(deliver: deliver) }

    func stop() { inner.stop() }
  }

  /// Small pictures in the troubles of the network, of the machine and of their encoder.
  @Suite(.serialized) struct RenditionTroubleTests {
    private static let size = PictureSize(width: 320, height: 240)

    @Test func `a viewer whose network became open returns with the bitrate that its network has proved`() throws {
      let bench = try RenditionBench(try NoisyCamera(size: Self.size), bitrate: 900_000)
      defer { bench.end() }
      let (weak, strong) = (try NarrowConnection(), try NarrowConnection())
      let id = try bench.admit(weak)
      try bench.admit(strong)
      try #require(eventually { (bench.figures(id)?.frames ?? 0) > 30 })
      weak.rate = 150_000
      try #require(eventually { bench.isSmall(id) && bench.figures(id)?.bandwidth != nil })
      // The limit of a network of which nothing is heard ends after some time.
      weak.isSilent = true
      weak.rate = nil
      try #require(eventually { bench.figures(id)?.bandwidth == nil && bench.pipeline.bitrate == 900_000 })
      try #require(bench.isSmall(id))
      weak.isSilent = false
      var lowest = Int.max
      try #require(
        eventually {
          lowest = min(lowest, bench.pipeline.bitrate)
          return !bench.isSmall(id)
        })
      lowest = min(lowest, bench.pipeline.bitrate)
      // A fifth more than the floor, and what the network has shown since.
      #expect(lowest >= 300_000 && lowest < 750_000, "\(lowest)")
      #expect(eventually { bench.pipeline.bitrate == 900_000 }, "\(bench.pipeline.bitrate)")
    }

    @Test func `a viewer that joins a protected stream as the weak one leaves gets full pictures`() throws {
      let bench = try RenditionBench(try NoisyCamera(size: Self.size), bitrate: 900_000)
      defer { bench.end() }
      let stream = bench.pipeline.reserve(SRTPKey(random: .aes128CounterHMAC80))
      let (weak, strong) = (try NarrowConnection(), try NarrowConnection())
      let id = try bench.admit(weak, stream: stream)
      try #require(eventually { (bench.figures(id)?.frames ?? 0) > 30 })
      weak.rate = 150_000
      try #require(eventually { bench.isSmall(id) })
      // Mostly no picture comes between both.
      let other = try bench.admit(strong, stream: stream)
      _ = bench.pipeline.remove(id)
      try #require(eventually { (bench.figures(other)?.frames ?? 0) > 10 })
      // Small pictures of noise have a third of these bytes.
      let isFull = eventually {
        let before = bench.figures(other)
        usleep(1_000_000)
        let after = bench.figures(other)
        let frames = (after?.frames ?? 0) - (before?.frames ?? 0)
        return frames > 0 && ((after?.bytes ?? 0) - (before?.bytes ?? 0)) / frames > 2500
      }
      #expect(isFull && !bench.isSmall(other))
      withExtendedLifetime(weak) {}
    }

    @Test func `the small encoder follows the effort of the other, and its frames and its time count`() throws {
      let log = WatchedEncoder.Log()
      let bench = try RenditionBench(try NoisyCamera(size: Self.size), bitrate: 900_000, small: log.maker)
      defer { bench.end() }
      func runs(by preset: Int) -> Bool {
        let name = EncoderSelector.preset(of: EncodingEffort(rawValue: preset)) ?? "none"
        // The library, the preset and the threads.
        let parts = bench.pipeline.statistics.smallRendition?.encoderName.components(separatedBy: ", ")
        return parts?.dropLast().last == name
      }
      let weak = try NarrowConnection()
      let id = try bench.admit(weak)
      try #require(eventually { (bench.figures(id)?.frames ?? 0) > 30 })
      weak.rate = 150_000
      try #require(eventually { bench.isSmall(id) })
      #expect(log.opened == [EncodingEffort(rawValue: 0)] && runs(by: 0))
      // Nobody takes full pictures.
      let sent = bench.pipeline.counters.sent
      #expect(eventually { bench.pipeline.counters.sent > sent + 60 })
      bench.pipeline.govern(EncodingEffort(rawValue: 2), fallback: nil)
      #expect(eventually { runs(by: 2) }, "\(log.requested)")
      let begun = try #require(bench.figures(id)?.frames)
      try #require(eventually { (bench.figures(id)?.frames ?? 0) > begun + 30 })
      var restrictions = StreamRestrictions()
      restrictions.encoder.effort = EncodingEffort(rawValue: 0)
      try bench.pipeline.restrict(restrictions)
      #expect(eventually { runs(by: 0) }, "\(log.requested)")
      #expect(bench.pipeline.smallEncoderTime > .zero)
      try #require(bench.sendsSmall(id, 30))
      bench.end()
      #expect(log.opened.count == 1)
      let pictures = try ReceivedPictures(weak.packets)
      #expect(pictures.sources.count == 1 && pictures.repeated == 0 && pictures.damaged == 0)
      let sizes = try pictures.sizes()
      #expect(sizes.count == pictures.timestamps.count)
      #expect(Set(sizes) == [320 * 240 * 3 / 2, 160 * 120 * 3 / 2] && sizes.last == 160 * 120 * 3 / 2)
    }

    @Test func `an encoder that fails is told of once, and left alone for a minute`() throws {
      let log = WatchedEncoder.Log()
      let bench = try RenditionBench(try NoisyCamera(size: Self.size), bitrate: 900_000, small: log.maker)
      defer { bench.end() }
      let weak = try NarrowConnection()
      let id = try bench.admit(weak)
      try #require(eventually { (bench.figures(id)?.frames ?? 0) > 30 })
      weak.rate = 150_000
      try #require(eventually { bench.isSmall(id) })
      #expect(bench.pipeline.takeRenditionEvents().isEmpty)
      log.fail(true)
      // The reason is there a moment before the encoder has ended.
      try #require(
        eventually { bench.pipeline.statistics.smallRendition.map { $0.failure != nil && !$0.isRunning } == true })
      let figures = try #require(bench.pipeline.statistics.smallRendition)
      #expect(figures.failures == 1 && !figures.isRunning && figures.dropped >= 30)
      try #require(eventually { !bench.isSmall(id) })
      let returned = try #require(bench.figures(id)?.frames)
      try #require(eventually { (bench.figures(id)?.frames ?? 0) > returned + 10 })
      log.fail(false)
      usleep(3_000_000)
      #expect(log.opened.count == 1)
      let events = bench.pipeline.takeRenditionEvents()
      #expect(
        events.map(\.description) == [
          "no small pictures for weak networks: scripted delivered a broken stream: it was told to fail; "
            + "nightjar tries again in 60 s"
        ], "\(events)")
      #expect(events.allSatisfy { $0.isWarning })
    }

    @Test func `the pause after a failure doubles up to sixteen minutes, and begins anew after a minute of work`() {
      var failures = EncoderFailures()
      let pauses = (0..<6).map { _ in failures.failed(at: Instant(seconds: 100)).seconds }
      #expect(pauses == [60, 120, 240, 480, 960, 960])
      // The macro takes no call that changes its receiver.
      let firsts = [200.0, 201].map { failures.works(at: Instant(seconds: $0)) }
      #expect(firsts == [true, false])
      #expect(failures.failed(at: Instant(seconds: 210)).seconds == 960, "ten seconds of work prove nothing")
      let isFirst = failures.works(at: Instant(seconds: 300))
      #expect(isFirst)
      #expect(failures.failed(at: Instant(seconds: 361)).seconds == 60)
      _ = failures.works(at: Instant(seconds: 400))
      failures.rests(at: Instant(seconds: 470))
      #expect(failures.failed(at: Instant(seconds: 480)).seconds == 60)
    }

    @Test func `no count of a rendition falls where another pipeline takes the place of one`() {
      var (former, present) = (StreamStatistics(), StreamStatistics())
      var figures = RenditionStatistics()
      (figures.frames, figures.missed, figures.failures, figures.encoder.failovers) = (10, 2, 1, 4)
      (former.smallRendition, present.smallRendition) = (figures, figures)
      figures.sent = 9
      (former.h264Rendition, present.h264Rendition) = (figures, figures)
      present.add(former: former)
      #expect(present.smallRendition?.frames == 20 && present.smallRendition?.missed == 4)
      #expect(present.smallRendition?.failures == 2 && present.smallRendition?.encoder.failovers == 8)
      #expect(present.h264Rendition?.frames == 20 && present.h264Rendition?.sent == 18)
    }
  }
#endif
