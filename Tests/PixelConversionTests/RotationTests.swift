import Foundation
import Media
import PixelConversion
import TestSupport
import Testing

/// Every format in every orientation against ffmpeg's transpose, hflip and vflip.
@Suite struct RotationTests {
  /// A V4L2 code, ffmpeg's name for it and bytes in a row for each luma sample.
  struct Format: CustomTestStringConvertible {
    let code: String
    let name: String
    var bytesPerSample = 1
    /// The greatest distance of chroma from ffmpeg's: the mean of two rows is rounded in another way.
    var tolerance = 0

    var testDescription: String { code }
  }

  static let formats = [
    Format(code: "NV12", name: "nv12"),
    Format(code: "NV21", name: "nv21"),
    Format(code: "YU12", name: "yuv420p"),
    Format(code: "YUYV", name: "yuyv422", bytesPerSample: 2, tolerance: 1),
    Format(code: "UYVY", name: "uyvy422", bytesPerSample: 2, tolerance: 1),
    Format(code: "YVYU", name: "yvyu422", bytesPerSample: 2, tolerance: 1),
  ]

  @Test(arguments: pairs(formats, sizes))
  func `a raw picture is rotated as by ffmpeg`(format: Format, size: PictureSize) throws {
    let picture = noise(size.pixels * (format.bytesPerSample == 2 ? 4 : 3) / 2)
    let all = try ffmpegTurns(picture, size, from: format.name)
    let code = try #require(PixelFormat(format.code))
    let memory = try GuardedBytes(picture)
    let source = SourcePicture(first: memory.plane(stride: size.width * format.bytesPerSample))
    for (orientation, expected) in zip(Orientation.all, all) {
      let result = try turn(source, size, from: code, orientation)
      #expect(result.luma == expected.luma, "\(orientation)")
      #expect(distance(result.chroma, expected.chroma) <= format.tolerance, "\(orientation)")
    }
    withExtendedLifetime(memory) {}
  }

  @Test(arguments: pairs(["NV12", "NV21", "YU12", "YV12", "YUYV", "UYVY", "YVYU", "VYUY", "GREY"], sizes))
  func `a rotation changes no sample`(code: String, size: PictureSize) throws {
    let format = try #require(PixelFormat(code))
    let rows = RawFormatTests.rows(of: format, size)
    let memory = try GuardedBytes(noise(rows.reduce(0) { $0 + $1.width }))
    let source = SourcePicture(first: memory.plane(stride: rows[0].width))
    let upright = try turn(source, size, from: format, .upright)
    let all = try ffmpegTurns(upright.luma + upright.chroma, size, from: "nv12")
    for (orientation, expected) in zip(Orientation.all, all) {
      #expect(try turn(source, size, from: format, orientation) == expected, "\(orientation)")
    }
    withExtendedLifetime(memory) {}
  }

  @Test(arguments: pairs(JPEGTests.kinds, [PictureSize(width: 642, height: 362), PictureSize(width: 18, height: 22)]))
  func `a JPEG of any subsampling is rotated as by ffmpeg`(kind: JPEGTests.Kind, size: PictureSize) throws {
    let jpeg = try output(of: kind.command(size))
    let memory = try GuardedBytes(jpeg)
    let source = SourcePicture(first: memory.plane(stride: 0))
    let upright = try turn(source, size, from: .mjpeg, .upright)
    let reference = try JPEGTests.reference(jpeg, size, decoded: kind.decoded)
    let exact = try ffmpegTurns(upright.luma + upright.chroma, size, from: "nv12")
    let all = try ffmpegTurns(reference.luma + reference.chroma, size, from: "nv12")
    for (index, orientation) in Orientation.all.enumerated() {
      let result = try turn(source, size, from: .mjpeg, orientation)
      #expect(result == exact[index], "\(orientation)")
      #expect(psnr(result.luma, all[index].luma) > 45, "\(orientation)")
      #expect(psnr(result.chroma, all[index].chroma) > kind.threshold, "\(orientation)")
    }
    withExtendedLifetime(memory) {}
  }

  @Test(arguments: ["NV12", "NV21", "YU12", "YUYV", "UYVY", "GREY"])
  func `every width and height comes out right, whatever remains after the last vector`(code: String) throws {
    let format = try #require(PixelFormat(code))
    for length in stride(from: 16, through: 150, by: 2) {
      for size in [PictureSize(width: length, height: 38), PictureSize(width: 38, height: length)] {
        let rows = RawFormatTests.rows(of: format, size)
        let memory = try GuardedBytes(noise(rows.reduce(0) { $0 + $1.width }))
        let source = SourcePicture(first: memory.plane(stride: rows[0].width))
        let upright = try turn(source, size, from: format, .upright)
        for orientation in Orientation.all {
          let result = try turn(source, size, from: format, orientation)
          #expect(result.luma == rotated(upright.luma, size, orientation, bytes: 1), "\(size) \(orientation)")
          let half = PictureSize(width: size.width / 2, height: size.height / 2)
          #expect(result.chroma == rotated(upright.chroma, half, orientation, bytes: 2), "\(size) \(orientation)")
        }
        withExtendedLifetime(memory) {}
      }
    }
  }

  @Test(arguments: ["NV12", "NV21", "YU12", "YV12", "YUYV", "UYVY", "YVYU", "VYUY", "GREY"])
  func `padding is skipped, and a short buffer refused, in every orientation`(code: String) throws {
    let size = PictureSize(width: 330, height: 246)
    let format = try #require(PixelFormat(code))
    let rows = RawFormatTests.rows(of: format, size)
    let widest = rows[0].width
    let tight = noise(rows.reduce(0) { $0 + $1.width })
    // The first plane's padding is 46 bytes; that of half as wide rows is half of it.
    var padded: [UInt8] = []
    var rest = tight[...]
    for (index, row) in rows.enumerated() {
      padded += rest.prefix(row.width)
      rest = rest.dropFirst(row.width)
      if index < rows.count - 1 { padded += [UInt8](repeating: 0xee, count: row.width == widest ? 46 : 23) }
    }
    let exact = try GuardedBytes(tight)
    let wide = try GuardedBytes(padded)
    let short = try GuardedBytes(padded.dropLast())
    for orientation in Orientation.all {
      let expected = try turn(SourcePicture(first: exact.plane(stride: widest)), size, from: format, orientation)
      let result = try turn(SourcePicture(first: wide.plane(stride: widest + 46)), size, from: format, orientation)
      #expect(result == expected, "\(orientation)")
      #expect(throws: ConversionError.short(got: padded.count - 1, expected: padded.count)) {
        try turn(SourcePicture(first: short.plane(stride: widest + 46)), size, from: format, orientation)
      }
    }
    withExtendedLifetime((exact, wide, short)) {}
  }

  @Test func `a window of a larger picture is rotated alone`() throws {
    let (whole, size) = (PictureSize(width: 400, height: 300), PictureSize(width: 130, height: 74))
    let picture = noise(whole.pixels * 3 / 2)
    let (x, y) = (38, 22)
    let folder = try TemporaryDirectory()
    let file = try folder.write(picture, as: "picture")
    let cut = try output(
      of: """
        ffmpeg -nostdin -v error -f rawvideo -pix_fmt nv12 -s \(whole) -i \(file) -vf \
        crop=\(size.width):\(size.height):\(x):\(y) -pix_fmt nv12 -f rawvideo -
        """)
    let all = try ffmpegTurns(cut, size, from: "nv12")
    let luma = try GuardedBytes(Array(picture[(y * whole.width + x)..<whole.pixels]))
    let chroma = try GuardedBytes(Array(picture[(whole.pixels + y / 2 * whole.width + x)...]))
    let source = SourcePicture(first: luma.plane(stride: whole.width), second: chroma.plane(stride: whole.width))
    for (orientation, expected) in zip(Orientation.all, all) {
      #expect(try turn(source, size, from: .nv12, orientation) == expected, "\(orientation)")
    }
    withExtendedLifetime((luma, chroma)) {}
  }

  @Test func `formats of several memory planes are rotated like those of one`() throws {
    let size = PictureSize(width: 330, height: 246)
    let picture = noise(size.pixels * 3 / 2)
    let all = try ffmpegTurns(picture, size, from: "yuv420p")
    let (luma, chroma, half) = (size.pixels, size.pixels / 4, size.width / 2)
    let y = try GuardedBytes(Array(picture[..<luma]))
    let cb = try GuardedBytes(Array(picture[luma..<luma + chroma]))
    let cr = try GuardedBytes(Array(picture[(luma + chroma)...]))
    let first = y.plane(stride: size.width)
    let (second, third) = (cb.plane(stride: half), cr.plane(stride: half))
    for (orientation, expected) in zip(Orientation.all, all) {
      let cases: [(PixelFormat, SourcePicture)] = [
        (.ym12, SourcePicture(first: first, second: second, third: third)),
        (.ym21, SourcePicture(first: first, second: third, third: second)),
      ]
      for (format, source) in cases {
        #expect(try turn(source, size, from: format, orientation) == expected, "\(format) \(orientation)")
      }
    }
    withExtendedLifetime((y, cb, cr)) {}
  }

  @Test func `a frame that stands the wrong way is refused`() throws {
    let size = PictureSize(width: 64, height: 32)
    let memory = try GuardedBytes(noise(size.pixels * 3 / 2))
    let source = SourcePicture(first: memory.plane(stride: 64))
    let quarter = try PixelConverter(from: .nv12, size: size, orientation: Orientation(.quarter))
    let half = try PixelConverter(from: .nv12, size: size, orientation: Orientation(.half))
    let turned = PictureSize(width: 32, height: 64)
    #expect(quarter.frameSize == turned && half.frameSize == size)
    #expect(throws: ConversionError.frameSize(size, expected: turned)) {
      try convert(source, size, with: quarter)
    }
    #expect(throws: ConversionError.frameSize(turned, expected: size)) {
      try convert(source, turned, with: half)
    }
    withExtendedLifetime(memory) {}
  }
}

/// The same noise on every run.
private func noise(_ count: Int) -> [UInt8] {
  var generator = SeededGenerator(seed: UInt64(count))
  var bytes: [UInt8] = []
  bytes.reserveCapacity(count + 8)
  while bytes.count < count {
    withUnsafeBytes(of: generator.next()) { bytes.append(contentsOf: $0) }
  }
  return Array(bytes.prefix(count))
}

/// The largest difference between two samples.
private func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
  guard left.count == right.count else { return Int.max }
  return zip(left, right).reduce(0) { max($0, abs(Int($1.0) - Int($1.1))) }
}

/// `picture` in each of `Orientation.all`, as NV12, by ffmpeg.
private func ffmpegTurns(_ picture: [UInt8], _ size: PictureSize, from name: String) throws -> [PackedPicture] {
  let folder = try TemporaryDirectory()
  let file = try folder.write(picture, as: "picture")
  let turns = [0: "null", 90: "transpose=clock", 180: "hflip,vflip", 270: "transpose=cclock"]
  let filters = Orientation.all.map { (turns[$0.rotation.degrees] ?? "") + ($0.isMirrored ? ",hflip" : "") }
  let count = filters.count
  let graph =
    "[0]scale=flags=area,format=yuv420p,split=\(count)" + (0..<count).map { "[i\($0)]" }.joined() + ";"
    + filters.enumerated().map { "[i\($0)]\($1),format=nv12[o\($0)]" }.joined(separator: ";")
  let outputs = (0..<count).map { "-map '[o\($0)]' -f rawvideo \(folder.path("\($0)"))" }.joined(separator: " ")
  _ = try output(
    of: """
      ffmpeg -nostdin -v error -f rawvideo -pix_fmt \(name) -s \(size) -i \(file) -filter_complex '\(graph)' \(outputs)
      """)
  return try Orientation.all.enumerated().map { index, orientation in
    let raw = try Data(contentsOf: folder.url.appendingPathComponent("\(index)"))
    return try PackedPicture(raw: Array(raw), size: orientation.size(of: size))
  }
}

/// A plane whose samples are of `bytes` bytes, rotated by the definition.
private func rotated(_ plane: [UInt8], _ size: PictureSize, _ orientation: Orientation, bytes: Int) -> [UInt8] {
  let target = orientation.size(of: size)
  var result: [UInt8] = []
  result.reserveCapacity(plane.count)
  for y in 0..<target.height {
    for column in 0..<target.width {
      let x = orientation.isMirrored ? target.width - 1 - column : column
      let (sourceX, sourceY) =
        switch orientation.rotation {
        case .none: (x, y)
        case .quarter: (y, size.height - 1 - x)
        case .half: (size.width - 1 - x, size.height - 1 - y)
        case .threeQuarters: (size.width - 1 - y, x)
        }
      let start = (sourceY * size.width + sourceX) * bytes
      result += plane[start..<start + bytes]
    }
  }
  return result
}

/// Converts a picture into a frame whose rows are neither aligned nor adjacent, and sees that nothing else is written.
private func turn(
  _ picture: SourcePicture, _ size: PictureSize, from format: PixelFormat, _ orientation: Orientation
) throws -> PackedPicture {
  let converter = try PixelConverter(from: format, size: size, orientation: orientation)
  let target = converter.frameSize
  let (lumaStride, chromaStride) = (target.width + 6, target.width + 10)
  let (lumaBytes, chromaBytes) = (lumaStride * target.height, chromaStride * target.height / 2)
  let margin = 64
  var memory = [UInt8](repeating: 0xa5, count: margin + lumaBytes + margin + chromaBytes + margin)
  return try memory.withUnsafeMutableBufferPointer { memory in
    let base = try #require(memory.baseAddress)
    let planes = NV12Planes(
      size: target, luma: base + margin, lumaStride: lumaStride, chroma: base + margin * 2 + lumaBytes,
      chromaStride: chromaStride)
    try converter.convert(picture, into: planes)
    let result = PackedPicture(planes)
    for row in 0..<target.height { (planes.luma + row * lumaStride).update(repeating: 0xa5, count: target.width) }
    for row in 0..<target.height / 2 {
      (planes.chroma + row * chromaStride).update(repeating: 0xa5, count: target.width)
    }
    #expect(memory.allSatisfy { $0 == 0xa5 }, "written outside the frame")
    return result
  }
}
