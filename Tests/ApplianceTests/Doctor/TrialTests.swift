import Appliance
import CDispatch
import Glibc
import Media
import Platform
import TestSupport
import Testing

/// The judgement of trials of cameras and encoders.
@Suite struct TrialTests {
  /// Pictures come for `seconds` at `fps`, and are waited for until `end`.
  private static func rate(fps: Double, seconds: Double, until end: Double) -> PictureCount.Rate? {
    var pictures = PictureCount()
    for number in 0..<Int(fps * seconds) {
      let time = Instant(seconds: 100 + Double(number) / fps)
      pictures.add(time, at: time + Duration(seconds: 0.01))
    }
    return pictures.rate(until: Instant(seconds: 100 + end), interval: FrameRate.thirty.interval)
  }

  @Test func `a camera that stops in the middle does not reach its rate`() throws {
    let well = try #require(Self.rate(fps: 30, seconds: 2, until: 2))
    #expect(abs(well.framesPerSecond - 30) < 0.01 && well.finding(agreed: 30).kind == .rate)
    let stopped = try #require(Self.rate(fps: 30, seconds: 1, until: 2))
    let finding = stopped.finding(agreed: 30, of: "YUYV 640x480")
    let fps = decimal(stopped.framesPerSecond)
    #expect(finding.text == "\(fps) of 30.0 pictures a second, YUYV 640x480; none in the last 1.0 s")
    #expect(finding.kind == .rateLow)
    #expect(abs(stopped.framesPerSecond - 15) < 1)
    // Slow, and not stopped.
    let slow = try #require(Self.rate(fps: 5, seconds: 2, until: 2)).finding(agreed: 30)
    #expect(slow.kind == .rateLow && slow.text == "5.0 of 30.0 pictures a second", "\(slow)")
    #expect(Self.rate(fps: 1, seconds: 1, until: 2) == nil)
  }

  @Test func `more than two of a hundred lost pictures are told`() {
    let rate = PictureCount.Rate(framesPerSecond: 29)
    func key(_ lost: Int) -> String? {
      CameraTrial.finding(ofLosses: [.corrupt: lost], among: 98, rate, 30)?.kind.rawValue
    }
    #expect(key(0) == nil && key(2) == nil && key(3) == "rate-losses")
  }

  /// One that is at work on two threads, each for a time by its own clock.
  private final class TwoThreads: VideoEncoder {
    static let eachSeconds = 0.02
    let configuration: EncoderConfiguration
    let name = "x264 in two threads"
    let parameterSets: ParameterSets

    init() throws {
      configuration = EncoderConfiguration(
        size: PictureSize(width: 64, height: 64), frameRate: try #require(FrameRate(60)), bitrate: 100_000,
        color: .bt709)
      parameterSets = try #require(ParameterSets(sequence: [0x67, 66, 0, 30], picture: [0x68, 0xCE]))
    }

    func prepare() throws(EncoderError) {}
    func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {}
    func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {}
    func stop() {}

    func encode(
      _ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
    ) throws(EncoderError) {
      var other = pthread_t()
      pthread_create(&other, nil, { _ in TwoThreads.spin() }, nil)
      _ = Self.spin()
      pthread_join(other, nil)
    }

    private static func spin() -> UnsafeMutableRawPointer? {
      func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
      }
      let end = now() + eachSeconds
      while now() < end {}
      return nil
    }
  }

  @Test func `an encoder's threads are all counted, and so is what several cameras take together`() throws {
    let trial = try EncoderTrial(TwoThreads(), limit: Duration(seconds: 0.1))
    #expect(trial.processorTime.seconds >= 2 * TwoThreads.eachSeconds)
    // Two at 60 a second are 2 × 2 × 20 ms of 16.7 ms: more than four processors.
    let four = try #require(EncoderTrial.total(of: [trial, trial], processors: 4))
    #expect(four.kind == .encoderSlow && four.figures["headroom_percent"] ?? 1 < 0, "\(four)")
    #expect(EncoderTrial.total(of: [trial, trial], processors: 4096)?.kind == .encoder)
    #expect(EncoderTrial.total(of: [], processors: 4) == nil)
    #expect(EncoderTrial.finding("", headroom: 19, figures: [:], isHEVC: false).kind.rawValue == "encoder-tight")
    #expect(EncoderTrial.finding("", headroom: 20, figures: [:], isHEVC: false).kind.rawValue == "encoder")
    let hevc = EncoderTrial.finding("", headroom: -1, figures: [:], isHEVC: true)
    #expect(hevc.mends.first == .advice("codec = \"h264\", or x264-preset = \"ultrafast\""))
    let less = "reduce the load: size = \"1280x720\" or smaller, fps = \"15\""
    let hardware = EncoderTrial.finding(
      "", headroom: -1, figures: [:], isHEVC: false, isHardware: true, couldChooseLevel: true)
    #expect(hardware.mends == [.advice("vaapi-quality = \"auto\""), .advice("or \(less)")])
    // Mesa's levels have no order; or a level is chosen already.
    let without = EncoderTrial.finding("", headroom: -1, figures: [:], isHEVC: false, isHardware: true)
    #expect(without.mends == [.advice(less)])
    #expect(EncoderTrial.isHardware("VA-API (Intel iHD driver), EncSlice, CBR, 1 slice"))
    #expect(!EncoderTrial.isHardware("x264 build 164, ultrafast, 1 thread"))
  }
}
