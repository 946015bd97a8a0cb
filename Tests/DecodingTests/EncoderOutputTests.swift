#if X264
  import Adaptors
  import Decoding
  import Media
  import Platform
  import TestSupport
  import Testing
  import X264

  /// An encoder's output as streams for tasks.
  @Suite struct EncoderOutputTests {
    private static let size = PictureSize(width: 320, height: 192)

    private static func encode(_ sink: EncodedPictureSink, frames: Int, slices: Int = 1, streams: Bool = false) throws {
      let encoder = try X264Encoder(
        EncoderConfiguration(
          size: size, frameRate: .thirty, bitrate: 800_000, color: .bt709, slices: slices, streamsSlices: streams))
      let pool = try FramePool(size: size)
      for index in 0..<frames {
        let frame = try pool.frame(at: Instant.zero + FrameRate.thirty.time(ofFrame: Int64(index)))
        for row in 0..<size.height {
          for column in 0..<size.width {
            frame.planes.luma[row * frame.planes.lumaStride + column] = UInt8((row + column + index * 7) & 0xff)
          }
        }
        try encoder.encode(frame, keyFrame: index.isMultiple(of: 5), to: sink)
      }
      sink.finish()
    }

    @Test func `each subscriber has its own pictures, the newest or all`() async throws {
      let sink = EncodedPictureSink()
      let (all, newest) = (sink.encodedPictures(.all), sink.encodedPictures(.newest(2)))
      try Self.encode(sink, frames: 12)
      var units: [EncodedPicture] = []
      for await unit in all { units.append(unit) }
      var last: [EncodedPicture] = []
      for await unit in newest { last.append(unit) }
      #expect(units.count == 12 && last == units.suffix(2))
      #expect(sink.dropped == 10)
      #expect(units.map(\.isKeyFrame) == (0..<12).map { $0.isMultiple(of: 5) })
      #expect(units[0].parameterSets != nil)
      // A decoder sees by the numbers what a slow subscriber has lost.
      let first = try #require(units[0].number)
      #expect(units.map(\.number) == (0..<12).map { first + $0 })
      for unit in units {
        let again = try unit.avcc.withUnsafeBytes {
          try EncodedPicture(avcc: $0, timestamp: unit.timestamp, captured: unit.captured, number: unit.number)
        }
        #expect(again == unit)
      }
    }

    @Test func `parts of a picture come as one access unit, which decodes`() async throws {
      let sink = EncodedPictureSink()
      let stream = sink.encodedPictures(.all)
      try Self.encode(sink, frames: 8, slices: 4, streams: true)
      let decoder = try VideoDecoder(configuration: .init(acceleration: .software))
      var count = 0
      for await unit in stream {
        #expect(nalUnits(unit.annexB).filter { [1, 5].contains($0[0] & 0x1f) }.count == 4)
        let pictures = try decoder.decode(unit)
        #expect(pictures.map(\.timestamp) == [unit.timestamp] && pictures.first?.color == .bt709)
        count += 1
      }
      #expect(count == 8)
    }
  }
#endif
