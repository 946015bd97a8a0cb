import Media
import PixelConversion
import TestSupport
import Testing

/// Pictures in frames of another size, against ffmpeg's scaler.
@Suite struct PictureScalerTests {
  private static func planes(_ raw: [UInt8], _ frame: borrowing Frame) {
    let planes = frame.planes
    for row in 0..<planes.size.height {
      for column in 0..<planes.size.width {
        planes.luma[row * planes.lumaStride + column] = raw[row * planes.size.width + column]
      }
    }
    for row in 0..<planes.size.height / 2 {
      for column in 0..<planes.size.width {
        planes.chroma[row * planes.chromaStride + column] =
          raw[planes.size.pixels + row * planes.size.width + column]
      }
    }
  }

  private static func raw(_ planes: NV12Planes) -> [UInt8] {
    var bytes: [UInt8] = []
    for row in 0..<planes.size.height {
      bytes += UnsafeBufferPointer(start: planes.luma + row * planes.lumaStride, count: planes.size.width)
    }
    for row in 0..<planes.size.height / 2 {
      bytes += UnsafeBufferPointer(start: planes.chroma + row * planes.chromaStride, count: planes.size.width)
    }
    return bytes
  }

  // The place is given, not computed as the scaler does.
  @Test(arguments: [
    (1280, 720, 640, 360, "640:360", "0:0"), (640, 480, 1280, 720, "960:720", "160:0"),
    (1920, 1080, 720, 1280, "720:406", "0:436"), (640, 360, 1280, 720, "1280:720", "0:0"),
    (64, 64, 322, 182, "182:182", "70:0"),
  ])
  func `a picture lies whole in the middle, as ffmpeg scales it`(
    width: Int, height: Int, toWidth: Int, toHeight: Int, content: String, place: String
  ) throws {
    let size = PictureSize(width: width, height: height)
    let target = PictureSize(width: toWidth, height: toHeight)
    let picture = try testPicture(size, "nv12")
    let source = try FramePool(size: size, capacity: 1).frame()
    Self.planes(picture, source)
    let frame = try FramePool(size: target, capacity: 1).frame()
    try PictureScaler(from: size, to: target).scale(source.planes, into: frame.planes)
    let folder = try TemporaryDirectory()
    let file = try folder.write(picture, as: "picture")
    let expected = try output(
      of: """
        ffmpeg -nostdin -v error -f rawvideo -pix_fmt nv12 -s \(size) -i \(file) -sws_flags area \
        -vf 'scale=\(content),pad=\(target.width):\(target.height):\(place):black' -pix_fmt nv12 -f rawvideo -
        """)
    let quality = psnr(Self.raw(frame.planes), expected)
    #expect(quality > 28, "\(quality) dB")
  }

  @Test func `frames of any other size are refused`() throws {
    let small = PictureSize(width: 64, height: 48)
    let large = PictureSize(width: 128, height: 96)
    let scaler = try PictureScaler(from: small, to: large)
    let first = try FramePool(size: small, capacity: 1).frame()
    let second = try FramePool(size: large, capacity: 1).frame()
    #expect(throws: ConversionError.frameSize(large, expected: small)) {
      try scaler.scale(second.planes, into: second.planes)
    }
    #expect(throws: ConversionError.frameSize(small, expected: large)) {
      try scaler.scale(first.planes, into: first.planes)
    }
    #expect(throws: ConversionError.size(PictureSize(width: 63, height: 48))) {
      _ = try PictureScaler(from: PictureSize(width: 63, height: 48), to: large)
    }
  }
}
