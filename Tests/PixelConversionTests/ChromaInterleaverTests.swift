import Media
import PixelConversion
import TestSupport
import Testing

/// Planar chroma of any size against ffmpeg's conversion.
@Suite struct ChromaInterleaverTests {
  /// ffmpeg's name and how many luma samples one of chroma covers.
  struct Subsampling: CustomTestStringConvertible {
    let name: String
    let across: Int
    let down: Int
    /// In decibels: where chroma is stretched, both interpolate in their own way.
    let threshold: Double

    var testDescription: String { name }
  }

  static let subsamplings = [
    Subsampling(name: "yuv444p", across: 1, down: 1, threshold: 45),
    Subsampling(name: "yuv422p", across: 2, down: 1, threshold: 45),
    Subsampling(name: "yuv440p", across: 1, down: 2, threshold: 45),
    Subsampling(name: "yuv411p", across: 4, down: 1, threshold: 25),
    Subsampling(name: "yuv410p", across: 4, down: 4, threshold: 22),
    Subsampling(name: "yuv420p", across: 2, down: 2, threshold: .infinity),
  ]

  @Test(arguments: pairs(subsamplings, sizes))
  func `chroma of any subsampling is resampled as ffmpeg does`(
    subsampling: Subsampling, size: PictureSize
  ) throws {
    let picture = try testPicture(size, subsampling.name)
    let expected = try PackedPicture(raw: ffmpegConverts(picture, size, from: subsampling.name), size: size)
    let chroma = PictureSize(
      width: (size.width + subsampling.across - 1) / subsampling.across,
      height: (size.height + subsampling.down - 1) / subsampling.down)
    let cb = try GuardedBytes(Array(picture[size.pixels..<size.pixels + chroma.pixels]))
    let cr = try GuardedBytes(Array(picture[(size.pixels + chroma.pixels)...]))
    let pool = try FramePool(size: size, capacity: 1)
    let frame = try pool.anyFrame()
    try ChromaInterleaver(size: size).interleave(
      cb: cb.plane(stride: chroma.width), cr: cr.plane(stride: chroma.width), of: chroma, into: frame.planes)
    let result = PackedPicture(frame.planes)
    #expect(psnr(result.chroma, expected.chroma) >= subsampling.threshold)
    withExtendedLifetime((cb, cr)) {}
  }

  @Test func `every chroma size up to luma's own keeps a flat colour flat`() throws {
    let size = PictureSize(width: 38, height: 26)
    let interleaver = try ChromaInterleaver(size: size)
    let pool = try FramePool(size: size, capacity: 1)
    let frame = try pool.anyFrame()
    let planes = frame.planes
    for width in 1...38 {
      for height in 1...26 {
        let chroma = PictureSize(width: width, height: height)
        let cb = try GuardedBytes([UInt8](repeating: 77, count: chroma.pixels))
        let cr = try GuardedBytes([UInt8](repeating: 200, count: chroma.pixels))
        try interleaver.interleave(
          cb: cb.plane(stride: width), cr: cr.plane(stride: width), of: chroma, into: planes)
        let result = PackedPicture(planes).chroma
        let isFlat = result.enumerated().allSatisfy { $1 == ($0.isMultiple(of: 2) ? 77 : 200) }
        #expect(isFlat, "\(chroma)")
        withExtendedLifetime((cb, cr)) {}
      }
    }
    _ = consume frame
  }

  @Test func `chroma planes that are too large, too short or empty are refused`() throws {
    let size = PictureSize(width: 32, height: 32)
    let interleaver = try ChromaInterleaver(size: size)
    let memory = try GuardedBytes([UInt8](repeating: 1, count: 255))
    let pool = try FramePool(size: size, capacity: 1)
    let frame = try pool.anyFrame()
    let planes = frame.planes
    let plane = memory.plane(stride: 16)
    #expect(throws: ConversionError.short(got: 255, expected: 256)) {
      try interleaver.interleave(cb: plane, cr: plane, of: PictureSize(width: 16, height: 16), into: planes)
    }
    for (width, height) in [(0, 1), (1, 0), (-1, 4), (33, 1), (1, 33), (Int.max, Int.max)] {
      let chroma = PictureSize(width: width, height: height)
      #expect(throws: ConversionError.size(chroma)) {
        try interleaver.interleave(cb: plane, cr: plane, of: chroma, into: planes)
      }
    }
    withExtendedLifetime(memory) {}
    _ = consume frame
  }
}
