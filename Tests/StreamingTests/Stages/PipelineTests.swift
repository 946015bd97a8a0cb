import Capture
import Encoding
import Foundation
import Media
import Platform
import RTP
import Streaming
import TestSupport
import Testing

/// A pipeline with sources and encoders that behave as real ones seldom do.
@Suite struct PipelineTests {
  private static let size = PictureSize(width: 64, height: 64)

  /// A camera at a rate that no encoder keeps up with.
  private final class HastyCamera: VideoSource, @unchecked Sendable {
    let format = SourceFormat(
      size: size, frameRate: .thirty, pixelFormat: .nv12, color: .bt709, conversion: "no copy")
    let name = "hasty camera"
    let isLive = true
    private let pool: FramePool
    private var count = 0
    private let limit: Int

    init(limit: Int) throws {
      pool = try FramePool(size: size)
      self.limit = limit
    }

    func start() throws {}
    func stop() {}
    let orientation = Orientation.upright
    let turningFailure: (any Failure)? = nil
    func orient(_ orientation: Orientation) {}
    func prepareTurning() throws {}

    func next(interrupt: borrowing Interrupt) throws -> CaptureEvent {
      guard count < limit else { return .ended }
      guard interrupt.wait(until: .now() + Duration(nanoseconds: 200_000)) else { return .idle }
      count += 1
      return .frame(try pool.frame(at: Instant(nanoseconds: Int64(count) * 1_000_000)))
    }
  }

  /// An encoder that takes its time, changes its parameter sets, or fails.
  private final class FakeEncoder: VideoEncoder, @unchecked Sendable {
    let configuration = EncoderConfiguration(size: size, frameRate: .thirty, bitrate: 100_000, color: .bt709)
    let name = "fake encoder"
    let parameterSets: ParameterSets
    private let microseconds: UInt32
    private let tellsSetsOnce: Bool
    private let fails: @Sendable (Int) -> Bool
    private var count = 0
    private(set) var keyFrames: [Int] = []
    private(set) var isStopped = false

    init(
      microseconds: UInt32 = 0, tellsSetsOnce: Bool = false, fails: @escaping @Sendable (Int) -> Bool = { _ in false }
    ) throws {
      parameterSets = try #require(ParameterSets(sequence: [0x67, 66, 0xc0, 30, 1], picture: [0x68, 1]))
      self.microseconds = microseconds
      self.tellsSetsOnce = tellsSetsOnce
      self.fails = fails
    }

    func prepare() throws(EncoderError) {}
    func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {}
    func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {}

    func encode(
      _ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
    ) throws(EncoderError) {
      usleep(microseconds)
      defer { count += 1 }
      if fails(count) { throw .encode(library: "fake", code: 1) }
      if keyFrame { keyFrames.append(count) }
      // From the tenth picture on the stream has another SPS, as after a change of encoder.
      let sequence: [UInt8] = [0x67, 66, 0xc0, 30, count < 10 ? 1 : 2]
      let sets: [[UInt8]] = keyFrame && !(tellsSetsOnce && count > 0) ? [sequence, [0x68, 1]] : []
      let units = sets + (keyFrame ? [[0x65, 9, 9]] : [[0x41, 9]])
      let memory = units.map { UnsafeMutableRawBufferPointer.allocate(byteCount: $0.count, alignment: 1) }
      defer { memory.forEach { $0.deallocate() } }
      for (buffer, bytes) in zip(memory, units) { buffer.copyBytes(from: bytes) }
      let nalUnits = memory.compactMap { NALUnit(UnsafeRawBufferPointer($0)) }
      let (timestamp, captured) = (frame.timestamp, frame.captured)
      nalUnits.withUnsafeBufferPointer {
        let unit = AccessUnit(nalUnits: $0, isKeyFrame: keyFrame, timestamp: timestamp, captured: captured)
        sink.take(unit)
      }
    }

    func stop() { isStopped = true }
  }

  private static func pipeline(
    _ source: any VideoSource, _ encoder: any VideoEncoder, port: UInt16? = nil
  ) throws -> Pipeline {
    try Pipeline(
      source: source, encoder: encoder,
      destinations: [StreamDestination(host: "127.0.0.1", port: try port ?? UDPPort.free())],
      keyFrameInterval: Duration(seconds: 1000))
  }

  @Test func `a late encoder costs frames, all of them counted`() throws {
    let encoder = try FakeEncoder(microseconds: 3000)
    let pipeline = try Self.pipeline(try HastyCamera(limit: 300), encoder)
    try pipeline.start()
    guard case .sourceEnded = pipeline.waitUntilEnd() else {
      Issue.record("the source has ended")
      return
    }
    let figures = pipeline.statistics
    #expect(figures.captured == 300)
    #expect(figures.drops[.encoderLate] ?? 0 > 0)
    #expect(figures.encoded + (figures.drops[.encoderLate] ?? 0) == 300)
    #expect(figures.sent == figures.encoded)
    #expect(encoder.isStopped)
  }

  @Test func `an encoder that stumbles starts again with a key frame`() throws {
    let encoder = try FakeEncoder(microseconds: 100) { $0 == 5 }
    let pipeline = try Self.pipeline(try HastyCamera(limit: .max), encoder)
    try pipeline.start()
    #expect(eventually { pipeline.statistics.encoded > 6 })
    pipeline.stop()
    _ = pipeline.waitUntilEnd()
    #expect(encoder.keyFrames == [0, 6])
    #expect(pipeline.statistics.drops[.encoderError] == 1)
  }

  @Test func `an encoder that fails for good ends the pipeline with its error`() throws {
    let pipeline = try Self.pipeline(try HastyCamera(limit: .max), try FakeEncoder { $0 > 3 })
    try pipeline.start()
    guard case .failed(let error) = pipeline.waitUntilEnd() else {
      Issue.record("the encoder has failed")
      return
    }
    #expect(error is EncoderError)
  }

  @Test func `a request makes a key frame, and new parameter sets are noticed`() throws {
    let encoder = try FakeEncoder(microseconds: 100)
    let pipeline = try Self.pipeline(try HastyCamera(limit: .max), encoder)
    try pipeline.start()
    #expect(eventually { pipeline.statistics.encoded > 20 })
    #expect(pipeline.parameterSets.changes == 0)
    pipeline.requestKeyFrame()
    #expect(eventually { pipeline.parameterSets.changes == 1 })
    #expect(pipeline.parameterSets.sets.sequence.last == 2)
    let description = try #require(pipeline.sessionDescription(for: pipeline.destinations[0].id, sessionID: 7))
    #expect(description.version == 8)
    #expect(description.text.contains("sprop-parameter-sets=Z0LAHgI=,aAE="), "\(description.text)")
    pipeline.stop()
    _ = pipeline.waitUntilEnd()
    #expect(encoder.keyFrames.count == 2)
  }

  @Test func `parameter sets that were told once go with every key frame, and at once where asked for`() throws {
    let recorder = try DatagramRecorder()
    let encoder = try FakeEncoder(microseconds: 3000, tellsSetsOnce: true)
    let pipeline = try Self.pipeline(try HastyCamera(limit: .max), encoder, port: recorder.port)
    try pipeline.start()
    for step in [pipeline.requestKeyFrame, pipeline.repeatParameterSets, {}] {
      let sent = pipeline.statistics.sent
      #expect(eventually { pipeline.statistics.sent > sent + 10 })
      step()
    }
    pipeline.stop()
    _ = pipeline.waitUntilEnd()
    #expect(encoder.keyFrames.count == 2)
    #expect(pipeline.parameterSets.changes == 0)
    // The sets are one STAP-A (RFC 6184 section 5.7.1), each behind its length; the picture comes next.
    let datagrams = recorder.finish()
    let sets = Data([0, 5, 0x67, 66, 0xc0, 30, 1, 0, 2, 0x68, 1])
    let pictures = zip(datagrams, datagrams.dropFirst()).filter { $0.0.suffix(sets.count) == sets }
      .map { Array($0.1.dropFirst(12)) }
    #expect(pictures == [[0x65, 9, 9], [0x65, 9, 9], [0x41, 9]])
  }

  @Test func `two pipelines run side by side in one process`() throws {
    let pipelines = try (0..<2).map { _ in
      try Self.pipeline(
        try SyntheticCamera(size: Self.size, frameRate: .thirty), try FakeEncoder())
    }
    for pipeline in pipelines { try pipeline.start() }
    for pipeline in pipelines { #expect(eventually { pipeline.statistics.sent >= 5 }) }
    for pipeline in pipelines {
      pipeline.stop()
      guard case .stopped = pipeline.waitUntilEnd() else {
        Issue.record("the pipeline was stopped")
        return
      }
    }
  }

  @Test func `an unreachable destination is counted and the others get everything`() throws {
    let port = try UDPPort.free()
    let pipeline = try Pipeline(
      source: try SyntheticCamera(size: Self.size, frameRate: .thirty), encoder: try FakeEncoder(),
      destinations: [
        // 240/4 is reserved: no route leads there.
        StreamDestination(host: "240.0.0.1", port: 5004), StreamDestination(host: "127.0.0.1", port: port),
      ], keyFrameInterval: Duration(seconds: 1))
    try pipeline.start()
    #expect(eventually { pipeline.statistics.destinations[1].packets > 5 })
    pipeline.stop()
    _ = pipeline.waitUntilEnd()
    let figures = pipeline.statistics.destinations
    #expect(figures[0].packets + figures[0].lost >= figures[1].packets)
    #expect(pipeline.statistics.sent > 0)
    #expect(pipeline.statistics.drops[.network] == 0)
  }

  @Test func `frames of which no packet left are not counted as sent`() throws {
    let pipeline = try Pipeline(
      source: try HastyCamera(limit: 50), encoder: try FakeEncoder(),
      // Without the right to broadcast no packet gets there.
      destinations: [StreamDestination(host: "255.255.255.255", port: 5004)],
      keyFrameInterval: Duration(seconds: 1))
    try pipeline.start()
    _ = pipeline.waitUntilEnd()
    let figures = pipeline.statistics
    #expect(figures.encoded > 0)
    #expect(figures.sent == 0)
    #expect(figures.drops[.network] == figures.encoded)
    #expect(figures.captured == figures.sent + figures.dropped)
    #expect(figures.firstPacket == nil)
    #expect(figures.latencies[.total]?.count == 0)
    #expect(figures.destinations[0].lost >= figures.encoded)
    #expect(figures.destinations[0].errorNumber != 0)
  }

  @Test func `two names of one address are refused`() throws {
    func make(_ hosts: [(String, UInt16)]) throws {
      _ = try Pipeline(
        source: try HastyCamera(limit: 1), encoder: try FakeEncoder(),
        destinations: hosts.map { StreamDestination(host: $0.0, port: $0.1) }, keyFrameInterval: Duration(seconds: 1))
    }
    // Both as inet_aton(3) reads them, so that no name server is asked.
    let error = #expect(throws: StreamDestinationError.self) { try make([("127.0.0.1", 5004), ("127.1", 5004)]) }
    #expect(error?.kind == .usage)
    #expect(throws: StreamDestinationError.self) { try make([("::1", 5004), ("0:0::1", 5004)]) }
    #expect(throws: Never.self) { try make([("127.0.0.1", 5004), ("127.1", 5006), ("127.0.0.2", 5004)]) }
  }
}
