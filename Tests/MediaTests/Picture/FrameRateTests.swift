import Media
import Platform
import Testing

@Suite struct FrameRateTests {
  @Test func `a frame's time does not drift with its number`() throws {
    let ntsc = try #require(FrameRate(30_000, 1001))
    #expect(ntsc.time(ofFrame: 30_000) == Duration(seconds: 1001))
    #expect(ntsc.time(ofFrame: 30_000 * 100_000) == Duration(seconds: 100_100_000))
    let odd = try #require(FrameRate(4_294_967_291, 4_294_967_279))
    #expect(odd.time(ofFrame: 4_294_967_290).seconds.rounded() == 4_294_967_278)
    #expect(ntsc.time(ofFrame: 1) == Duration(nanoseconds: 33_366_666))
  }

  @Test(arguments: [
    (30, 1, "30"), (30_000, 1001, "29.97"), (15, 2, "7.5"), (60_000, 2000, "30"), (24_000, 1001, "23.98"),
  ])
  func `a frame rate reads as people write it`(numerator: UInt32, denominator: UInt32, text: String) {
    #expect(FrameRate(numerator, denominator)?.description == text)
  }

  @Test func `no frame rate has a zero in it`() {
    #expect(FrameRate(0, 1) == nil)
    #expect(FrameRate(30, 0) == nil)
  }
}

@Suite struct PixelFormatTests {
  @Test func `the codes are the kernel's`() {
    // linux/videodev2.h: v4l2_fourcc('N', 'V', '1', '2') and others.
    #expect(PixelFormat.nv12.fourCC == 0x3231_564E)
    #expect(PixelFormat.mjpeg.fourCC == 0x4750_4A4D)
    #expect(PixelFormat("YUYV")?.fourCC == 0x5659_5559)
    #expect(PixelFormat("Y16")?.fourCC == 0x2036_3159)
  }

  @Test func `a driver's code can do a terminal no harm`() {
    #expect(PixelFormat(fourCC: 0x5B1B_0A07).description == "???[")
    #expect(PixelFormat(fourCC: 0x3231_564E | 1 << 31).description == "NV12-BE")
  }

  @Test(arguments: ["", "TOOLONG", "é", "A\n"])
  func `a text that is no code is refused`(text: String) {
    #expect(PixelFormat(text) == nil)
  }
}
