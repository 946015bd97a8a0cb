import Encoding
import Media
import Platform
import TestSupport
import Testing

@Suite struct EncodingTests {
  @Test(arguments: [
    (640, 480, UInt32(30), 1_500_000), (1280, 720, 30, 3_000_000), (1920, 1080, 30, 6_000_000),
    (1920, 1080, 60, 12_000_000), (3840, 2160, 30, 20_000_000), (1280, 720, 15, 1_500_000), (640, 480, 1, 50_000),
  ])
  func `the bitrate goes by size and rate`(width: Int, height: Int, rate: UInt32, bitrate: Int) throws {
    let frameRate = try #require(FrameRate(rate))
    #expect(BitrateLadder.bitrate(for: PictureSize(width: width, height: height), at: frameRate) == bitrate)
  }

  @Test func `key frames come by time, whatever the rate`() {
    for (rate, expected) in [(30.0, [0, 60, 120]), (29.97, [0, 60, 120]), (15.0, [0, 30, 60]), (7.5, [0, 15, 30])] {
      var clock = KeyFrameClock(interval: Duration(seconds: 2))
      let interval = Duration(seconds: 1 / rate)
      var keys: [Int] = []
      for index in 0..<(expected[2] + 1) {
        // A camera's clock jitters.
        let jitter = index.isMultiple(of: 2) ? 1e-3 : -1e-3
        let time = Instant(seconds: Double(index) / rate + jitter)
        if clock.isDue(at: time, frameInterval: interval) {
          keys.append(index)
          clock.keyFrameDelivered(at: time)
        }
      }
      #expect(keys == expected, "at \(rate) frames a second")
    }
  }

  @Test func `a request makes the next frame a key frame, once`() {
    var clock = KeyFrameClock(interval: Duration(seconds: 10))
    let interval = Duration(seconds: 0.04)
    clock.keyFrameDelivered(at: .zero)
    #expect(!clock.isDue(at: Instant.zero + interval, frameInterval: interval))
    clock.request()
    #expect(clock.isDue(at: Instant.zero + interval * 2, frameInterval: interval))
    clock.keyFrameDelivered(at: Instant.zero + interval * 2)
    #expect(!clock.isDue(at: Instant.zero + interval * 3, frameInterval: interval))
  }

  @Test func `one thread is used while one core can encode the picture`() throws {
    let thirty = FrameRate.thirty
    let sixty = try #require(FrameRate(60))
    func threads(_ width: Int, _ height: Int, _ rate: FrameRate, _ processors: Int) -> Int {
      EncoderSelector.threads(for: PictureSize(width: width, height: height), at: rate, processors: processors)
    }
    #expect(threads(1280, 720, thirty, 8) == 1)
    #expect(threads(1920, 1080, thirty, 8) == 1)
    #expect(threads(1920, 1080, sixty, 8) == 2)
    #expect(threads(3840, 2160, thirty, 8) == 4)
    #expect(threads(3840, 2160, thirty, 2) == 2)
    #expect(threads(3840, 2160, sixty, 64) == 8)
  }
}
