import CLinux
import Capture
import Media
import Testing

/// Formats and buffers as a driver might give them.
private func format(
  _ pixelFormat: PixelFormat, _ planes: [DriverFormat.Plane], width: Int = 64, height: Int = 32
) -> DriverFormat {
  DriverFormat(
    size: PictureSize(width: width, height: height), pixelFormat: pixelFormat, field: 1, planes: planes,
    color: CameraColor())
}

@Suite struct BufferLayoutTests {
  @Test func theChromaOfNV12LiesBehindAllPaddedRowsOfLuma() throws {
    let layout = try #require(NV12Layout(format(.nv12, [.init(stride: 80, byteCount: 80 * 48)])))
    var memory = [UInt8](repeating: 0, count: 80 * 48)
    memory.withUnsafeMutableBufferPointer { bytes in
      var buffer = DequeuedBuffer()
      buffer.contents.0 = DequeuedPlane(base: bytes.baseAddress, byteCount: bytes.count)
      let planes = layout.planes(of: buffer)
      #expect(planes?.luma == bytes.baseAddress)
      #expect(planes?.chroma == bytes.baseAddress.map { $0 + 80 * 32 })
      #expect(planes?.lumaStride == 80)
      #expect(planes?.chromaStride == 80)
    }
  }

  @Test func aBufferOneByteShortIsNoPicture() throws {
    let layout = try #require(NV12Layout(format(.nv12, [.init(stride: 80, byteCount: 80 * 48)])))
    var memory = [UInt8](repeating: 0, count: 80 * 48)
    memory.withUnsafeMutableBufferPointer { bytes in
      var buffer = DequeuedBuffer()
      // The last row need not be padded.
      buffer.contents.0 = DequeuedPlane(base: bytes.baseAddress, byteCount: 80 * 47 + 64)
      #expect(layout.planes(of: buffer) != nil)
      buffer.contents.0.byteCount -= 1
      #expect(layout.planes(of: buffer) == nil)
      buffer.contents.0.byteCount = 0
      #expect(layout.planes(of: buffer) == nil)
    }
  }

  @Test func bothPlanesOfNM12MustBeWhole() throws {
    let layout = try #require(
      NV12Layout(format(.nm12, [.init(stride: 64, byteCount: 64 * 32), .init(stride: 72, byteCount: 72 * 16)])))
    var memory = [UInt8](repeating: 0, count: 64 * 32)
    memory.withUnsafeMutableBufferPointer { bytes in
      var buffer = DequeuedBuffer()
      buffer.contents.0 = DequeuedPlane(base: bytes.baseAddress, byteCount: 64 * 32)
      buffer.contents.1 = DequeuedPlane(base: bytes.baseAddress, byteCount: 72 * 15 + 64)
      #expect(layout.planes(of: buffer)?.chromaStride == 72)
      buffer.contents.1.byteCount -= 1
      #expect(layout.planes(of: buffer) == nil)
    }
  }

  @Test func aFormatWhosePlanesCannotHoldThePictureHasNoLayout() {
    #expect(NV12Layout(format(.nv12, [.init(stride: 63, byteCount: 1 << 20)])) == nil)
    #expect(NV12Layout(format(.nv12, [.init(stride: 64, byteCount: 64 * 48 - 1)])) == nil)
    #expect(NV12Layout(format(.nv12, [])) == nil)
    #expect(NV12Layout(format(.nm12, [.init(stride: 64, byteCount: 64 * 48)])) == nil)
    #expect(
      NV12Layout(format(.nm12, [.init(stride: 64, byteCount: 2048), .init(stride: 0, byteCount: 2048)])) == nil)
    #expect(NV12Layout(format(.yuyv, [.init(stride: 128, byteCount: 4096)])) == nil)
  }

  @Test func aDriversFormatIsBelievedOnlyWithinLimits() {
    #expect(format(.yuyv, [.init(stride: 128, byteCount: 4096)]).flaw == nil)
    #expect(format(.yuyv, [.init(stride: 128, byteCount: 0)]).flaw != nil)
    #expect(format(.yuyv, [.init(stride: 128, byteCount: DriverFormat.planeLimit + 1)]).flaw != nil)
    #expect(format(.yuyv, [.init(stride: Int(UInt32.max), byteCount: 4096)]).flaw != nil)
    #expect(format(.yuyv, []).flaw != nil)
    #expect(format(.ym12, [.init(stride: 64, byteCount: 4096)]).flaw != nil)
    #expect(format(.yuyv, [.init(stride: 128, byteCount: 4096)], width: 63).flaw != nil)
  }

  @Test func theAnswerOfTheMultiPlanarInterfaceIsRead() {
    var answer = DriverFormat.request(
      .nm12, size: PictureSize(width: 64, height: 32), type: V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE.rawValue)
    answer.fmt.pix_mp.num_planes = 2
    answer.fmt.pix_mp.plane_fmt.0.bytesperline = 64
    answer.fmt.pix_mp.plane_fmt.0.sizeimage = 2048
    answer.fmt.pix_mp.plane_fmt.1.bytesperline = 72
    answer.fmt.pix_mp.plane_fmt.1.sizeimage = 1152
    answer.fmt.pix_mp.colorspace = V4L2_COLORSPACE_REC709.rawValue
    let format = DriverFormat(answer)
    #expect(format.planes == [.init(stride: 64, byteCount: 2048), .init(stride: 72, byteCount: 1152)])
    #expect(format.pixelFormat == .nm12)
    #expect(format.color.description(of: .nm12) == .bt709)
    #expect(format.flaw == nil)
  }

  @Test func coloursBehindAMissingMagicNumberAreNotRead() {
    var answer = DriverFormat.request(
      .yuyv, size: PictureSize(width: 64, height: 32), type: V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue)
    answer.fmt.pix.colorspace = V4L2_COLORSPACE_REC709.rawValue
    answer.fmt.pix.quantization = V4L2_QUANTIZATION_FULL_RANGE.rawValue
    #expect(DriverFormat(answer).color.description(of: .yuyv).isFullRange)
    answer.fmt.pix.priv = 0
    #expect(DriverFormat(answer).color.description(of: .yuyv) == .bt709)
  }
}

@Suite struct LegacyFormatTests {
  @Test(arguments: [
    ("RGB3", 64 * 3, 64 * 32 * 3), ("RGB3", 200, 200 * 31 + 192), ("RGB3", 191, nil),
    ("BGR4", 256, 64 * 32 * 4), ("RGBP", 128, 64 * 32 * 2), ("RGBP", 130, nil),
    ("NV16", 64, 64 * 32 * 2), ("NV16", 80, nil), ("NV16", 0, 64 * 32 * 2),
    ("M420", 64, 64 * 32 * 3 / 2), ("BA81", 64, 64 * 32), ("pBAA", 80, 64 * 32 * 10 / 8), ("pBAA", 96, nil),
  ])
  func theDecoderIsGivenNoFewerBytesThanItReads(_ code: String, _ stride: Int, _ expected: Int?) throws {
    let pixelFormat = try #require(PixelFormat(code))
    let legacy = try #require(LegacyFormat.of(pixelFormat))
    #expect(legacy.leastBytes(size: PictureSize(width: 64, height: 32), stride: stride) == expected)
  }

  @Test func aDecoderOfBlocksIsGivenWholeBlocksOnly() throws {
    let pixelFormat = try #require(PixelFormat("S501"))
    let legacy = try #require(LegacyFormat.of(pixelFormat))
    #expect(legacy.leastBytes(size: PictureSize(width: 352, height: 288), stride: 352) == 352 * 288 * 3 / 2)
    #expect(legacy.leastBytes(size: PictureSize(width: 18, height: 16), stride: 18) == nil)
    #expect(legacy.leastBytes(size: PictureSize(width: 32, height: 18), stride: 32) == nil)
  }

  @Test func whatTheLibraryOpensUnsafelyIsNotGivenToIt() throws {
    for code in ["O511", "O518", "S561", "S910", "SONX", "M310", "905C", "PJPG", "HM12", "HSV3", "HSV4", "H264", "Z16"]
    {
      let pixelFormat = try #require(PixelFormat(code))
      #expect(LegacyFormat.of(pixelFormat) == nil)
    }
  }
}
