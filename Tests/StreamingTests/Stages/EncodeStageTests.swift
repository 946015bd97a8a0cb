import Capture
import Encoding
import Glibc
import Media
import Platform
import RTP
import Streaming
import Synchronization
import TestSupport
import Testing

/// The stage alone, with an encoder that holds pictures back and notes what it is told.
@Suite struct EncodeStageTests {
  private static let size = PictureSize(width: 64, height: 64)

  /// Holds `delay` pictures back, as one with lookahead does.
  private final class PatientEncoder: VideoEncoder, @unchecked Sendable {
    private(set) var configuration = EncoderConfiguration(
      size: size, frameRate: .thirty, bitrate: 100_000, color: .bt709)
    private(set) var name: String
    private(set) var counters = EncoderCounters()
    let parameterSets: ParameterSets
    private let delay: Int
    private let isLost: Bool
    private var held: [(time: Instant, isKey: Bool)] = []
    private(set) var changes: [EncoderConfiguration] = []
    /// The number of the first frame that takes longer than a frame interval, until the effort is less; nil for none.
    var slowFrom: Int?
    /// The number of the first frame that another encoder takes, and the name of that encoder; nil for none.
    var successor: (from: Int, name: String)?
    /// The restrictions, with the number of frames encoded before.
    private(set) var restrictions: [(frames: Int, effort: EncodingEffort?, level: Int?)] = []
    private var frames = 0
    private let slice = UnsafeMutableRawBufferPointer.allocate(byteCount: 2, alignment: 1)

    init(
      _ name: String = "x264, patient", delay: Int = 0, isLost: Bool = false, frameRate: FrameRate = .thirty
    ) throws {
      self.name = name
      configuration.frameRate = frameRate
      parameterSets = try #require(ParameterSets(sequence: [0x67, 66, 0xc0, 30, 1], picture: [0x68, 1]))
      self.delay = delay
      self.isLost = isLost
    }

    deinit { slice.deallocate() }

    func prepare() throws(EncoderError) {}
    func stop() {}

    func restrict(_ restrictions: EncoderRestrictions) {
      self.restrictions.append((frames, restrictions.effort, restrictions.vaapiQuality))
      slowFrom = nil
    }

    func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {
      configuration.bitrate = bitrate
      configuration.frameRate = frameRate
      changes.append(configuration)
    }

    func encode(
      _ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
    ) throws(EncoderError) {
      if isLost { throw .lost(reason: "test") }
      if let successor, frames == successor.from {
        name = successor.name
        counters.failovers += 1
      }
      let interval = configuration.frameRate.interval.nanoseconds
      if let slowFrom, frames >= slowFrom { usleep(UInt32(interval * 3 / 2 / 1000)) }
      frames += 1
      held.append((frame.timestamp, keyFrame))
      if held.count > delay { release { sink.take($0) } }
    }

    func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {
      while !held.isEmpty { release(deliver) }
    }

    private func release(_ deliver: (borrowing AccessUnit) -> Void) {
      let (time, isKey) = held.removeFirst()
      slice.copyBytes(from: [isKey ? 0x65 : 0x41, 9])
      guard let unit = NALUnit(UnsafeRawBufferPointer(slice)) else { return }
      withUnsafePointer(to: unit) {
        let unit = AccessUnit(
          nalUnits: UnsafeBufferPointer(start: $0, count: 1), isKeyFrame: isKey, timestamp: time, captured: time)
        deliver(unit)
      }
    }
  }

  /// Sends frames of these times, in seconds, through a stage; the pictures that come out.
  private static func run(
    _ encoder: PatientEncoder, _ times: [Double], requests: EncoderRequests = EncoderRequests(),
    keyFrameInterval: Double = 1000
  ) throws -> (pictures: [(time: Instant, isKey: Bool)], figures: StreamStatistics, error: (any Error)?) {
    let mailbox = Mailbox<WaitingFrame>()
    let pictures = try CodedPictureQueue(capacity: 1000)
    let statistics = StatisticsRecorder(encoderName: encoder.name, started: .now())
    let stage = EncodeStage(
      encoder: encoder, keyFrameInterval: Duration(seconds: keyFrameInterval), mailbox: mailbox,
      consumers: CodedPictureConsumers(pictures), statistics: statistics, requests: requests, reducer: FrameReducer(),
      rotation: PictureRotation(try SyntheticCamera(size: size, frameRate: .thirty), .upright),
      pictureStage: PictureStage(size: size))
    let pool = try FramePool(size: size)
    let failure = Mutex<(any Error)?>(nil)
    let thread = try NamedThread("stage") {
      do { try stage.run() } catch {
        failure.withLock { $0 = error }
        mailbox.close()
      }
    }
    let producer = try NamedThread("producer") {
      for time in times {
        guard let frame = try? pool.frame(at: Instant(seconds: time)) else { continue }
        _ = mailbox.putWaiting(WaitingFrame(frame: frame, since: .now()))
      }
      mailbox.close()
    }
    var received: [(Instant, Bool)] = []
    loop: while true {
      switch pictures.next(until: .now() + Duration(seconds: 60)) {
      case .picture(let picture):
        received.append((picture.accessUnit.timestamp, picture.accessUnit.isKeyFrame))
        pictures.release(picture)
      case .timeout, .closed: break loop
      }
    }
    // Their ends wait for the threads'.
    _ = consume thread
    _ = consume producer
    return (received, statistics.statistics(until: .now()), failure.withLock { $0 })
  }

  @Test func `an encoder that looks ahead loses nothing, and is asked for one key frame at a time`() throws {
    let times = (0..<50).map { Double($0) / 30 }
    let result = try Self.run(try PatientEncoder(delay: 7), times, keyFrameInterval: 1)
    #expect(result.pictures.map(\.time) == times.map(Instant.init(seconds:)))
    #expect(result.pictures.indices.filter { result.pictures[$0].isKey } == [0, 30])
    #expect(result.figures.encoded == 50)
    #expect(result.figures.keyFrames == 2)
    #expect(result.error == nil)
  }

  @Test func `after two late frames the encoder takes the effort that the governor has named, once`() throws {
    // Five frames a second: no host is as slow as that by chance.
    let encoder = try PatientEncoder(frameRate: try #require(FrameRate(5, 1)))
    encoder.slowFrom = 4
    let requests = EncoderRequests()
    let lesser = EncodingEffort(rawValue: 2)
    requests.govern(EncoderRestrictions(), fallback: lesser)
    let result = try Self.run(encoder, (0..<12).map { Double($0) / 5 }, requests: requests)
    #expect(result.pictures.count == 12)
    #expect(encoder.restrictions.map(\.frames) == [6])
    #expect(encoder.restrictions.map(\.effort) == [lesser])
    #expect(requests.takeFallen() == lesser)
    #expect(requests.takeFallen() == nil)
  }

  @Test func `late frames of hardware change no effort, and those of its software fallback do`() throws {
    let rate = try #require(FrameRate(5, 1))
    let times = (0..<12).map { Double($0) / 5 }
    let lesser = EncodingEffort(rawValue: 2)
    let hardware = try PatientEncoder("VA-API, patient", frameRate: rate)
    hardware.slowFrom = 9
    var requests = EncoderRequests()
    requests.govern(EncoderRestrictions(), fallback: lesser)
    #expect(try Self.run(hardware, times, requests: requests).pictures.count == 12)
    #expect(hardware.restrictions.isEmpty && requests.takeFallen() == nil)
    // The frame at which software takes over is late because of the hardware.
    let failing = try PatientEncoder("VA-API, patient", frameRate: rate)
    failing.slowFrom = 4
    failing.successor = (from: 6, name: "x264, patient")
    requests = EncoderRequests()
    requests.govern(EncoderRestrictions(), fallback: lesser)
    #expect(try Self.run(failing, times, requests: requests).pictures.count == 12)
    #expect(failing.restrictions.map(\.frames) == [9])
    #expect(requests.takeFallen() == lesser)
    // A late frame of software, and then one of hardware that returns, are not two of software.
    let returning = try PatientEncoder("x264, patient", frameRate: rate)
    returning.slowFrom = 10
    returning.successor = (from: 11, name: "VA-API, patient")
    requests = EncoderRequests()
    requests.govern(EncoderRestrictions(), fallback: lesser)
    #expect(try Self.run(returning, times, requests: requests).pictures.count == 12)
    #expect(returning.restrictions.isEmpty && requests.takeFallen() == nil)
  }

  @Test(arguments: [nil, 5] as [Int?])
  func `after two late frames hardware takes the quality level that the governor has named, once`(level: Int?) throws {
    let encoder = try PatientEncoder("VA-API, patient", frameRate: try #require(FrameRate(5, 1)))
    encoder.slowFrom = 4
    let requests = EncoderRequests()
    // The lesser effort is that of the software behind the hardware.
    requests.govern(EncoderRestrictions(), fallback: EncodingEffort(rawValue: 2), faster: level)
    let result = try Self.run(encoder, (0..<12).map { Double($0) / 5 }, requests: requests)
    #expect(result.pictures.count == 12)
    #expect(encoder.restrictions.map(\.frames) == (level == nil ? [] : [6]))
    #expect(encoder.restrictions.map(\.level) == (level == nil ? [] : [level]))
    #expect(encoder.restrictions.allSatisfy { $0.effort == nil })
    #expect(requests.takeFallen() == nil)
    #expect(requests.takeFallenQuality() == level)
    #expect(requests.takeFallenQuality() == nil)
  }

  @Test func `the frame at which the encoder changes counts for neither, and ends a row of late ones`() throws {
    let rate = try #require(FrameRate(5, 1))
    let names = ["VA-API, patient", "x264, patient"]
    for (first, second) in [(names[0], names[1]), (names[1], names[0])] {
      let encoder = try PatientEncoder(first, frameRate: rate)
      // One late frame before the change, that of the change, and one after it.
      encoder.slowFrom = 8
      encoder.successor = (from: 9, name: second)
      let requests = EncoderRequests()
      requests.govern(EncoderRestrictions(), fallback: EncodingEffort(rawValue: 2), faster: 5)
      #expect(try Self.run(encoder, (0..<11).map { Double($0) / 5 }, requests: requests).pictures.count == 11)
      #expect(encoder.restrictions.isEmpty && requests.takeFallen() == nil && requests.takeFallenQuality() == nil)
    }
  }

  @Test func `the encoder is told the rate at which frames really come`() throws {
    let encoder = try PatientEncoder()
    _ = try Self.run(encoder, (0..<200).map { Double($0) / 15 })
    let last = try #require(encoder.changes.last)
    #expect((14.0...17.5).contains(last.frameRate.framesPerSecond), "\(last.frameRate)")
    #expect(last.bitrate == 100_000)
    // Jitter alone is no change.
    let steady = try PatientEncoder()
    _ = try Self.run(steady, (0..<200).map { Double($0) / 30 + ($0.isMultiple(of: 2) ? 0.004 : 0) })
    #expect(steady.changes.isEmpty)
  }

  @Test func `a bitrate that was asked for reaches the encoder once`() throws {
    let encoder = try PatientEncoder()
    let requests = EncoderRequests()
    requests.setBitrate(200_000)
    _ = try Self.run(encoder, (0..<10).map { Double($0) / 30 }, requests: requests)
    #expect(encoder.changes.map(\.bitrate) == [200_000])
    #expect(encoder.changes.map(\.frameRate) == [.thirty])
  }

  @Test func `an encoder that is lost ends the stage at its first frame`() throws {
    let result = try Self.run(try PatientEncoder(isLost: true), [0, 1, 2])
    guard case .lost? = result.error as? EncoderError else {
      Issue.record("\(String(describing: result.error))")
      return
    }
    #expect(result.figures.drops[.encoderError] == 1)
  }
}
