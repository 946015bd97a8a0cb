#if X264
  import Capture
  import Foundation
  import Host
  import Media
  import Platform
  import Serving
  import Streaming
  import Synchronization
  import TestSupport
  import Testing

  import Appliance
  import Encoding

  /// The choice of the effort while encoders take turns.
  @Suite struct EffortControlTests {
    /// An encoder that makes no pictures, and has the names of others.
    private final class NamedEncoder: VideoEncoder {
      private struct State {
        var name: String
        var changes = 0
        /// The number of pictures so far.
        var pictures = 0
        /// The number of threads that was requested last; nil for that of the configuration.
        var threads: Int?
      }
      private let state: Mutex<State>
      let configuration: EncoderConfiguration
      let parameterSets: ParameterSets

      init(_ name: String, _ configuration: EncoderConfiguration) throws {
        state = Mutex(State(name: name))
        self.configuration = configuration
        parameterSets = try EncoderSelector.softwareParameterSets(for: configuration)
      }

      var name: String { state.withLock { $0.name } }

      var counters: EncoderCounters {
        var counters = EncoderCounters()
        counters.handovers = state.withLock { $0.changes }
        return counters
      }

      func become(_ name: String) {
        state.withLock { state in
          state.name = name
          state.changes += 1
        }
      }

      func prepare() throws(EncoderError) {}
      /// A picture takes 6 ms, and 2 with two threads.
      func encode(_ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink) throws(EncoderError) {
        usleep(threads == 2 ? 2000 : 6000)
        state.withLock { $0.pictures += 1 }
      }
      func restrict(_ restrictions: EncoderRestrictions) { state.withLock { $0.threads = restrictions.threads } }
      var threads: Int? { state.withLock { $0.threads } }
      var pictures: Int { state.withLock { $0.pictures } }
      func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {}
      func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {}
      func stop() {}
    }

    @Test func `no quality level is shown while the camera's own pictures pass, and it is back with the hardware`()
      throws
    {
      let size = PictureSize(width: 160, height: 120)
      let hardware = "VA-API (scripted)"
      let encoder = try NamedEncoder(
        hardware, EncoderConfiguration(size: size, frameRate: .thirty, bitrate: 100_000, color: .bt709))
      let pipeline = try Pipeline(
        source: try SyntheticCamera(size: size, frameRate: .thirty), encoder: encoder, destinations: [],
        keyFrameInterval: Duration(seconds: 1))
      try pipeline.start()
      defer {
        pipeline.stop()
        _ = pipeline.waitUntilEnd()
      }
      let levels = HardwareLevels()
      levels.note(QualityLevels(count: 7, present: 4))
      var control = try #require(
        EffortControl(pipeline, preset: nil, levels: levels, threads: 1, ProcessorBudget(share: 1)))
      _ = control.measure(.nominal, at: .now())
      #expect(control.status?.vaapiQuality == 4 && control.status?.vaapiQualityLevels == 7)

      encoder.become(PassThroughEncoder.cameraName)
      try #require(eventually { pipeline.encoderAtWork == .camera })
      _ = control.measure(.nominal, at: .now())
      #expect(control.status == nil && control.isLeast)

      encoder.become(hardware)
      try #require(eventually { pipeline.encoderAtWork == .hardware })
      _ = control.measure(.nominal, at: .now())
      #expect(control.status?.vaapiQuality == 4 && control.status?.vaapiQualityLevels == 7)
    }

    /// Each step is ten seconds for the control, and two pictures of the stream. A busy machine makes pictures of 6 ms slow or late, which
    /// ends the trial: so steps are too far apart for slow ones to be judged, and only one that takes 200 ms is late.
    @Test func `two sliced threads that save time are requested, kept and told, and end with software`() throws {
      let (size, frameRate) = (PictureSize(width: 160, height: 120), try #require(FrameRate(5)))
      var configuration = EncoderConfiguration(size: size, frameRate: frameRate, bitrate: 100_000, color: .bt709)
      configuration.x264Preset = "fast"
      let encoder = try NamedEncoder("x264 (scripted)", configuration)
      let pipeline = try Pipeline(
        source: try SyntheticCamera(size: size, frameRate: frameRate), encoder: encoder, destinations: [],
        keyFrameInterval: Duration(seconds: 1))
      try pipeline.start()
      defer {
        pipeline.stop()
        _ = pipeline.waitUntilEnd()
      }
      try #require(eventually { pipeline.encoderAtWork == .software })
      var control = try #require(
        EffortControl(
          pipeline, preset: "fast", levels: nil, threads: 1, triesThreads: true, ProcessorBudget(share: 1)))
      var (now, told) = (Instant.now(), [String]())
      func step() {
        let former = encoder.pictures
        #expect(eventually { encoder.pictures >= former + 2 })
        now = now + Duration(seconds: 10)
        if let words = control.measure(.nominal, at: now) { told.append(words) }
      }
      let deadline = ContinuousClock.now + .seconds(240)
      // On a busy machine frames may be late: then the preset changes, and the trial comes later.
      while control.status?.threads == nil, .now < deadline { step() }
      #expect(control.status?.threads == 2 && encoder.threads == 2, "\(told)")
      #expect(told.last?.hasPrefix("x264 continues with two sliced threads: a picture takes ") == true, "\(told)")

      encoder.become("VA-API (scripted)")
      try #require(eventually { pipeline.encoderAtWork == .hardware })
      for _ in 0..<3 { step() }
      #expect(control.status == nil)
      #expect(eventually { encoder.threads == nil })
      #expect(told.last?.hasPrefix("x264 will take over with one thread: ") == true, "\(told)")
    }
  }
#endif
