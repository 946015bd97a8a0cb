import Capture
import Encoding
import Media
import Platform
import RTP
import Streaming
import Synchronization
import TestSupport
import Testing

/// Rotations that the source or the encoder refuses.
@Suite struct PictureRotationTests {
  private static let size = PictureSize(width: 320, height: 240)

  /// A synthetic camera that refuses the rotations it is told to refuse.
  private final class StiffCamera: VideoSource, Sendable {
    struct Stiff: Failure {
      let description = "it is screwed down"
      let kind = FailureKind.unavailable
    }

    private let camera: SyntheticCamera
    private let refused: Mutex<Orientation?>
    private let isRefusing = Mutex(false)
    let asked = Mutex(0)

    init(refusing refused: Orientation) throws {
      camera = try SyntheticCamera(size: size, frameRate: .thirty)
      self.refused = Mutex(refused)
    }

    func relent() { refused.withLock { $0 = nil } }

    var format: SourceFormat { camera.format }
    var name: String { camera.name }
    var isLive: Bool { camera.isLive }
    var orientation: Orientation { camera.orientation }
    var turningFailure: (any Failure)? { isRefusing.withLock { $0 } ? Stiff() : nil }

    func orient(_ orientation: Orientation) {
      let isRefused = refused.withLock { $0 == orientation }
      isRefusing.withLock { $0 = isRefused }
      if !isRefused { camera.orient(orientation) }
      asked.withLock { $0 += 1 }
    }

    func prepareTurning() throws { try camera.prepareTurning() }
    func start() throws { camera.start() }
    func stop() { camera.stop() }
    func next(interrupt: borrowing Interrupt) throws -> CaptureEvent { camera.next(interrupt: interrupt) }
  }

  /// A synthetic camera that leaves all rotation to the encoder.
  private final class UprightCamera: VideoSource, Sendable {
    private let camera: SyntheticCamera
    private let request = Mutex(Orientation.upright)
    private let last = Mutex(Orientation.upright)

    init() throws { camera = try SyntheticCamera(size: size, frameRate: .thirty) }

    var format: SourceFormat { camera.format }
    var name: String { camera.name }
    var isLive: Bool { camera.isLive }
    var orientation: Orientation { last.withLock { $0 } }
    let turningFailure: (any Failure)? = nil

    func orient(_ orientation: Orientation) { request.withLock { $0 = orientation } }
    func prepareTurning() {}
    func start() { camera.start() }
    func stop() { camera.stop() }
    func next(interrupt: borrowing Interrupt) throws -> CaptureEvent {
      switch camera.next(interrupt: interrupt) {
      case .frame(var frame):
        frame.orientation = request.withLock { $0 }
        last.withLock { $0 = frame.orientation }
        return .frame(frame)
      case .dropped(let cause, let count): return .dropped(cause, count: count)
      case .idle: return .idle
      case .ended: return .ended
      }
    }
  }

  private static let configuration = EncoderConfiguration(
    size: size, frameRate: .thirty, bitrate: 500_000, color: .bt709)

  private static func pipeline(_ source: any VideoSource, aspects: EncoderAspects) throws -> Pipeline {
    try pipeline(source, EncoderSelector.select(.x264, configuration, aspects: aspects).encoder)
  }

  /// x264 for frames that are not upright.
  private static func rotatingEncoder(_ aspects: EncoderAspects) throws -> EncoderLineup {
    let encoder = try EncoderLineup(
      configuration, aspects: aspects, offer: TurnOffer(),
      software: { configuration throws(EncoderError) in try EncoderSelector.select(.x264, configuration).encoder })
    try encoder.prepare()
    return encoder
  }

  private static func pipeline(_ source: any VideoSource, _ encoder: any VideoEncoder) throws -> Pipeline {
    let pipeline = try Pipeline(
      source: source, encoder: encoder,
      destinations: [StreamDestination(host: "127.0.0.1", port: try UDPPort.free())],
      keyFrameInterval: Duration(seconds: 1000))
    try pipeline.start()
    return pipeline
  }

  private static func streamsOn(_ pipeline: Pipeline) -> Bool {
    let before = pipeline.statistics.encoded
    return eventually { pipeline.statistics.encoded > before + 10 }
  }

  private static func end(_ pipeline: Pipeline) {
    pipeline.stop()
    guard case .stopped = pipeline.waitUntilEnd() else {
      Issue.record("it has ended by itself")
      return
    }
  }

  #if X264
    @Test func `a refusal by the source is an error, the stream continues, and a second request works`() async throws {
      let camera = try StiffCamera(refusing: Orientation(.quarter))
      let pipeline = try Self.pipeline(camera, aspects: .both)
      try await pipeline.rotate(to: Orientation(.half), patience: Duration(seconds: 60))
      #expect(pipeline.rotationRefusal == nil)
      let refusal = await #expect(throws: RotationRefusal.self) {
        try await pipeline.rotate(to: Orientation(.quarter), patience: Duration(seconds: 60))
      }
      #expect(refusal?.description == "the picture cannot rotate to 90 degrees: it is screwed down; it stays at 180")
      #expect(refusal?.kind == .unavailable)
      #expect(Self.streamsOn(pipeline))
      #expect(pipeline.orientation == Orientation(.half))
      #expect(pipeline.rotationRefusal?.wanted == Orientation(.quarter))
      camera.relent()
      try await pipeline.rotate(to: Orientation(.quarter), patience: Duration(seconds: 60))
      #expect(pipeline.orientation == Orientation(.quarter))
      #expect(pipeline.rotationRefusal == nil)
      #expect(pipeline.encoder.configuration.size == PictureSize(width: 240, height: 320))
      Self.end(pipeline)
      #expect(pipeline.statistics.drops[.encoderError] == 0)
    }

    @Test func `a refusal by the encoder restores the orientation before the stream is lost`() async throws {
      let camera = try SyntheticCamera(size: Self.size, frameRate: .thirty)
      // Made for the one aspect, x264 takes no other.
      let pipeline = try Self.pipeline(camera, aspects: .one)
      for wanted in [Orientation(.quarter), Orientation(.threeQuarters, mirrored: true)] {
        try await pipeline.rotate(to: Orientation(.half), patience: Duration(seconds: 60))
        let refusal = await #expect(throws: RotationRefusal.self) {
          try await pipeline.rotate(to: wanted, patience: Duration(seconds: 60))
        }
        #expect(refusal?.wanted == wanted)
        #expect(refusal?.reason.description == "a frame of 240x320 for an encoder of 320x240")
        #expect(refusal?.stays == Orientation(.half))
        #expect(Self.streamsOn(pipeline))
        #expect(pipeline.orientation == Orientation(.half) && camera.orientation == Orientation(.half))
      }
      Self.end(pipeline)
      // Far fewer than end the stream.
      #expect((2..<20).contains(pipeline.statistics.drops[.encoderError] ?? 0))
    }

    @Test func `frames that the encoder rotates count with their rotated size`() async throws {
      let camera = try UprightCamera()
      let encoder = try Self.rotatingEncoder(.both)
      let pipeline = try Self.pipeline(camera, encoder)
      for wanted in [Orientation(.quarter), Orientation(.half), Orientation(.threeQuarters)] {
        let begin = Instant.now()
        try await pipeline.rotate(to: wanted, patience: Duration(seconds: 3600))
        #expect(Instant.now() - begin < Duration(seconds: 3000))
        #expect(pipeline.orientation == wanted && pipeline.encoder.configuration.size == wanted.size(of: Self.size))
      }
      Self.end(pipeline)
      #expect(pipeline.statistics.drops[.encoderError] == 0)
    }

    @Test func `an encoder that refuses the rotated size gets the former orientation back`() async throws {
      let encoder = try Self.rotatingEncoder(.one)
      let pipeline = try Self.pipeline(try UprightCamera(), encoder)
      try await pipeline.rotate(to: Orientation(.half), patience: Duration(seconds: 60))
      let refusal = await #expect(throws: RotationRefusal.self) {
        try await pipeline.rotate(to: Orientation(.quarter), patience: Duration(seconds: 60))
      }
      #expect(refusal?.wanted == Orientation(.quarter))
      #expect(refusal?.reason.description == "a frame of 240x320 for an encoder of 320x240")
      #expect(refusal?.stays == Orientation(.half))
      #expect(Self.streamsOn(pipeline))
      Self.end(pipeline)
    }
  #endif

  @Test func `a rotation that every part refuses is given up, and the last request stands`() async throws {
    let camera = try StiffCamera(refusing: .upright)
    let turn = PictureRotation(camera, Orientation(.half))
    #expect(turn.orientation == Orientation(.half) && turn.refusal == nil)
    #expect(!turn.hasSettled(Orientation(.half)))
    // Another request came in between.
    #expect(turn.hasSettled(Orientation(.quarter)))
    turn.orient(Orientation(.quarter))
    // A frame of before the request: no reason to go back.
    turn.refuse(Self.size, reason: StiffCamera.Stiff())
    #expect(turn.refusal == nil)
    turn.refuse(PictureSize(width: 240, height: 320), reason: StiffCamera.Stiff())
    #expect(turn.refusal?.stays == Orientation(.half) && turn.refusal?.wanted == Orientation(.quarter))
    // And a second one of those that were on their way.
    turn.refuse(PictureSize(width: 240, height: 320), reason: StiffCamera.Stiff())
    #expect(turn.refusal?.stays == Orientation(.half))
    turn.orient(Orientation(.half))
    #expect(turn.refusal == nil)
  }
}
