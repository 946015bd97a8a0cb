import Capture
import Media
import Testing

private let p720 = PictureSize(width: 1280, height: 720)
private let vga = PictureSize(width: 640, height: 480)

/// `NV12 1280x720@30,15 640x480@60` → a format; `?` for rates that the driver does not tell.
private func format(_ text: String) throws -> CameraFormat {
  let words = text.split(separator: " ")
  let pixelFormat = try #require(PixelFormat(String(words[0])))
  let sizes = try words.dropFirst().map { word in
    let halves = word.split(separator: "@")
    let sides = halves[0].split(separator: "x").compactMap { Int($0) }
    let rates: CameraRates =
      halves[1] == "?"
      ? .unknown : .listed(halves[1].split(separator: ",").compactMap { UInt32($0).flatMap { FrameRate($0) } })
    return CameraSize(extent: .discrete(PictureSize(width: sides[0], height: try #require(sides.last))), rates: rates)
  }
  return CameraFormat(pixelFormat: pixelFormat, name: text, sizes: sizes)
}

private func camera(_ lines: [String]) throws -> CameraCapabilities {
  CameraCapabilities(formats: try lines.map(format))
}

private struct Case: Sendable, CustomTestStringConvertible {
  let offers: [String]
  var request = FormatRequest()
  let expected: String
  var testDescription: String { "\(offers) → \(expected)" }
}

@Suite struct FormatNegotiationTests {
  /// A driver's list of formats, what is asked, and what must come out: format, size, rate.
  private static let cases: [Case] = [
    Case(offers: ["YUYV 1280x720@30", "NV12 1280x720@30", "MJPG 1280x720@30"], expected: "NV12 1280x720 30"),
    Case(offers: ["YUYV 1280x720@30", "NM12 1280x720@30"], expected: "NM12 1280x720 30"),
    Case(offers: ["MJPG 1280x720@30", "YUYV 1280x720@30", "YU12 1280x720@30"], expected: "YU12 1280x720 30"),
    Case(offers: ["MJPG 1280x720@30", "YUYV 1280x720@30"], expected: "YUYV 1280x720 30"),
    Case(offers: ["GREY 1280x720@30", "UYVY 1280x720@30"], expected: "UYVY 1280x720 30"),
    Case(offers: ["RGB3 1280x720@30", "MJPG 1280x720@30"], expected: "MJPG 1280x720 30"),
    Case(offers: ["GREY 1280x720@30", "BGR3 1280x720@30"], expected: "BGR3 1280x720 30"),
    Case(offers: ["Y16 1280x720@30", "BA81 1280x720@30"], expected: "BA81 1280x720 30"),
    Case(offers: ["GREY 1280x720@30"], expected: "GREY 1280x720 30"),
    // The usual webcam: raw pictures too slow at this size.
    Case(
      offers: ["YUYV 1280x720@10 640x480@30", "MJPG 1280x720@30 640x480@30", "H264 1280x720@30"],
      expected: "MJPG 1280x720 30"),
    Case(
      offers: ["YUYV 1280x720@10 640x480@30", "MJPG 1280x720@30 640x480@30"],
      request: FormatRequest(size: vga), expected: "YUYV 640x480 30"),
    Case(offers: ["NV12 1280x720@5", "YUYV 1280x720@30"], expected: "YUYV 1280x720 30"),
    // Nobody chose the rate: the nearest will do.
    Case(offers: ["YUYV 1280x720@5,10"], expected: "YUYV 1280x720 10"),
    Case(offers: ["YUYV 1280x720@25,60"], expected: "YUYV 1280x720 25"),
    Case(offers: ["YUYV 1280x720@20,40"], expected: "YUYV 1280x720 40"),
    // Nobody chose the size: the nearest will do, of two equally near ones the larger.
    Case(offers: ["YUYV 320x240@30 640x480@30 1920x1080@30"], expected: "YUYV 640x480 30"),
    Case(offers: ["YUYV 640x480@30 1600x896@30"], expected: "YUYV 1600x896 30"),
    Case(offers: ["YUYV 1278x720@30 1282x720@30"], expected: "YUYV 1282x720 30"),
    Case(offers: ["YUYV 1281x720@30 640x480@30"], expected: "YUYV 640x480 30"),
    // A rate that somebody chose weighs more than a size that nobody chose.
    Case(
      offers: ["YUYV 1280x720@30 640x480@60,30"],
      request: FormatRequest(frameRate: FrameRate(60)), expected: "YUYV 640x480 60"),
    Case(
      offers: ["YUYV 1280x720@30", "MJPG 1280x720@30"],
      request: FormatRequest(format: .mjpeg), expected: "MJPG 1280x720 30"),
    Case(offers: ["H264 1280x720@30", "YUYV 640x480@30"], expected: "YUYV 640x480 30"),
    Case(offers: ["NV12 1280x720@?"], request: FormatRequest(frameRate: FrameRate(24)), expected: "NV12 1280x720 24"),
    Case(
      offers: ["NV12 1280x720@30"], request: FormatRequest(frameRate: FrameRate(30000, 1001)),
      expected: "NV12 1280x720 30"),
  ]

  @Test(arguments: cases)
  private func theCheapestFormatThatReachesSizeAndRateWins(_ row: Case) throws {
    let choice = try FormatNegotiation.choose(row.request, from: camera(row.offers))
    #expect("\(choice.format) \(choice.size) \(choice.frameRate)" == row.expected)
  }

  /// The same for wishes that cannot be met: the message names what can.
  private static let refusals: [Case] = [
    Case(
      offers: ["YUYV 1280x720@30 640x480@30"], request: FormatRequest(size: PictureSize(width: 800, height: 600)),
      expected: "the camera does not offer 800x600; the nearest is 640x480"),
    Case(
      offers: ["YUYV 640x480@30", "MJPG 800x600@30"],
      request: FormatRequest(size: PictureSize(width: 800, height: 600), format: .yuyv),
      expected: "the camera does not offer 800x600 in YUYV; the nearest is 640x480"),
    Case(
      offers: ["YUYV 1280x720@10,30"], request: FormatRequest(size: p720, frameRate: FrameRate(60)),
      expected: "the camera does not offer 60 fps at 1280x720; the nearest is 30"),
    Case(
      offers: ["YUYV 1280x720@10 640x480@30"], request: FormatRequest(frameRate: FrameRate(25)),
      expected: "the camera does not offer 25 fps at 640x480; the nearest is 30"),
    Case(
      offers: ["YUYV 1280x720@30", "MJPG 1280x720@30"], request: FormatRequest(format: .nv12),
      expected: "the camera does not offer NV12; it has YUYV, MJPG"),
    Case(
      offers: ["YUYV 1281x721@30"], request: FormatRequest(size: PictureSize(width: 1281, height: 721)),
      expected: "1281x721 cannot be encoded: width and height must be even, from 16 to 16384"),
    Case(
      offers: ["YUYV 1281x721@30"],
      expected: "the camera has no size that can be encoded (even, from 16 to 16384)"),
    Case(
      offers: ["H264 1280x720@30", "HEVC 1280x720@30"],
      expected: "the camera delivers only H264, HEVC, which nightjar does not decode; "
        + "--encoder camera passes its H.264 on"),
    Case(
      offers: ["H264 1280x720@30", "YUYV 1280x720@30", "HEVC 1280x720@30"], request: FormatRequest(format: .h264),
      expected: "nightjar does not decode H264: choose YUYV, or leave --format out"),
    Case(
      offers: ["H264 1280x720@30"], request: FormatRequest(format: .h264),
      expected: "the camera delivers only H264, which nightjar does not decode; --encoder camera passes its H.264 on"),
    Case(offers: ["Z16 1280x720@30"], expected: "no way to open Z16 pictures"),
    Case(offers: [], expected: "the camera's driver names no pixel format"),
  ]

  @Test(arguments: refusals)
  private func anImpossibleRequestIsRefusedWithTheNearestThatExists(_ row: Case) throws {
    let capabilities = try camera(row.offers)
    let error = #expect(throws: CaptureError.self) {
      try FormatNegotiation.choose(row.request, from: capabilities)
    }
    #expect(error?.description == row.expected)
  }

  @Test func aGridOfSizesGivesTheNearestEvenSize() throws {
    let grid = CameraSize(
      extent: .stepwise(
        widths: try #require(SteppedRange(minimum: 2, maximum: 1000, step: 1)),
        heights: try #require(SteppedRange(minimum: 1, maximum: 701, step: 2))),
      rates: .range(slowest: try #require(FrameRate(1)), fastest: .thirty))
    // Every height of the grid is odd.
    #expect(grid.nearestEncodable(to: p720) == nil)
    let even = CameraSize(
      extent: .stepwise(
        widths: try #require(SteppedRange(minimum: 2, maximum: 1001, step: 1)),
        heights: try #require(SteppedRange(minimum: 2, maximum: 702, step: 4))),
      rates: .unknown)
    #expect(even.nearestEncodable(to: p720) == PictureSize(width: 1000, height: 702))
    #expect(even.nearestEncodable(to: PictureSize(width: 1, height: 1)) == PictureSize(width: 16, height: 18))
  }

  @Test func everyEvenValueOfARangeIsItsOwnNearest() throws {
    for (minimum, step) in [(1, 1), (1, 3), (2, 2), (5, 7), (16, 16), (3, 5)] {
      let range = try #require(SteppedRange(minimum: minimum, maximum: 900, step: step))
      for value in stride(from: minimum, through: 900, by: step) where value.isMultiple(of: 2) && value >= 16 {
        #expect(range.nearestEven(to: value) == value)
      }
    }
  }

  @Test func ratesOfARangeAreClampedToIt() throws {
    let range = CameraRates.range(slowest: try #require(FrameRate(5)), fastest: .thirty)
    #expect(range.nearest(to: try #require(FrameRate(60))) == .thirty)
    #expect(range.nearest(to: try #require(FrameRate(1))) == FrameRate(5))
    #expect(range.nearest(to: try #require(FrameRate(15))) == FrameRate(15))
  }

  @Test func absurdNumbersOfADriverDoNotTrap() throws {
    let huge = Int(UInt32.max)
    let range = try #require(SteppedRange(minimum: 1, maximum: huge, step: huge))
    #expect(range.nearestEven(to: 720) == nil)
    let sizes = CameraSize(
      extent: .discrete(PictureSize(width: huge, height: huge)), rates: .listed([.thirty]))
    let capabilities = CameraCapabilities(formats: [CameraFormat(pixelFormat: .nv12, name: "", sizes: [sizes])])
    #expect(throws: CaptureError.self) { try FormatNegotiation.choose(FormatRequest(), from: capabilities) }
    #expect(throws: CaptureError.self) {
      try FormatNegotiation.choose(
        FormatRequest(size: PictureSize(width: Int.max, height: 2)), from: capabilities)
    }
  }
}
