import Adaptors
import Decoding
import Media
import Platform
import TestSupport
import Testing

/// Whole streams, beside ffmpeg's own decoding of them.
@Suite struct StreamDecodingTests {
  private static let size = PictureSize(width: 336, height: 188)

  @Test(arguments: clipVariants)
  func `pictures are ffmpeg's, bit by bit`(arguments: [String]) throws {
    let clip = try ClipStream(size: Self.size, frames: 24, arguments)
    let units = accessUnits(of: clip.stream)
    #expect(units.count == 24)
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 32))
    var pictures: [DecodedPicture] = []
    var bytes: [UInt8] = []
    for unit in units {
      for picture in try decoder.decode(unit) {
        pictures.append(picture)
        bytes += picture.bytes
      }
    }
    for picture in try decoder.flush() {
      pictures.append(picture)
      bytes += picture.bytes
    }
    #expect(pictures.count == 24)
    #expect(bytes.elementsEqual(clip.pictures) as Bool)
    // Every picture has the times of its own access unit, in the order of decoding; output is in the order of display.
    #expect(Set(pictures.map(\.timestamp)) == Set(units.map(\.timestamp)))
    #expect(decoder.counts == counts(24))
  }

  private func counts(_ count: UInt64) -> VideoDecoder.Counts {
    var counts = VideoDecoder.Counts()
    (counts.accessUnits, counts.pictures) = (count, count)
    return counts
  }

  @Test func `a picture comes out with its own access unit where none is reordered`() throws {
    for arguments in [["-tune", "zerolatency"], ["-x264-params", "bframes=0:slices=3"]] {
      let clip = try ClipStream(size: Self.size, frames: 10, arguments)
      for threads in [1, 4] {
        let decoder = try VideoDecoder(configuration: .init(acceleration: .software, threads: threads))
        for unit in accessUnits(of: clip.stream) {
          #expect(try decoder.decode(unit).map(\.timestamp) == [unit.timestamp])
        }
      }
    }
  }

  @Test func `lengths instead of start codes, and parameter sets beside the stream, give the same`() throws {
    let clip = try ClipStream(size: Self.size, frames: 6, ["-tune", "zerolatency"])
    let units = accessUnits(of: clip.stream)
    let sets = try #require(units[0].parameterSets)
    for way in 0..<2 {
      let decoder = try VideoDecoder(configuration: .init(acceleration: .software))
      var bytes: [UInt8] = []
      if way == 0 {
        try decoder.setParameterSets(sets)
      } else {
        try decoder.setParameterSets(try DecoderConfiguration(sets))
      }
      for unit in units {
        let bare = nalUnits(unit.annexB).filter { ![7, 8].contains($0[0] & 0x1f) }
        let lengths = bare.flatMap { [0, 0, UInt8($0.count >> 8), UInt8($0.count & 0xff)] + $0 as [UInt8] }
        for picture in try lengths.withUnsafeBytes({
          try decoder.decode(avcc: $0, timestamp: unit.timestamp)
        }) {
          bytes += picture.bytes
        }
      }
      #expect(bytes.elementsEqual(clip.pictures) as Bool)
    }
  }

  @Test func `size and parameter sets may change in mid-stream`() throws {
    let first = try ClipStream(size: Self.size, frames: 5, ["-tune", "zerolatency", "-x264-params", "keyint=3"])
    let second = try ClipStream(
      size: PictureSize(width: 64, height: 96), frames: 5, ["-profile:v", "baseline", "-tune", "zerolatency"])
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 2))
    for _ in 0..<3 {
      for clip in [first, second] {
        var bytes: [UInt8] = []
        for unit in accessUnits(of: clip.stream) { for picture in try decoder.decode(unit) { bytes += picture.bytes } }
        #expect(bytes.elementsEqual(clip.pictures) as Bool)
      }
    }
  }

  @Test func `pictures that are complete before an error are returned, and the next call throws it`() throws {
    let first = try ClipStream(size: Self.size, frames: 8, ["-x264-params", "bframes=3"])
    let second = accessUnits(
      of: try ClipStream(
        size: PictureSize(width: 64, height: 96), frames: 4,
        ["-tune", "zerolatency", "-x264-params", "slices=2:sliced-threads=0"]
      ).stream)
    let broken = EncodedPicture(
      annexB: nalUnits(second[0].annexB).dropLast().flatMap { AnnexB.startCode + $0 }, timestamp: .zero)
    for flushes in [false, true] {
      let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 32))
      var bytes: [UInt8] = []
      var count = 0
      func take(_ pictures: [DecodedPicture]) {
        count += pictures.count
        for picture in pictures { bytes += picture.bytes }
      }
      for unit in accessUnits(of: first.stream) { take(try decoder.decode(unit)) }
      #expect(count < 8)
      // A new sequence, whose first picture lost a slice.
      take(try decoder.decode(broken))
      #expect(count == 8 && bytes.elementsEqual(first.pictures) as Bool)
      #expect(decoder.counts.pictures == 8 && decoder.counts.refused == 1 && decoder.needsKeyFrame)
      let late = failure { flushes ? try decoder.flush() : try decoder.decode(second[1]) }
      guard case .damaged? = late, case .awaitsKeyFrame? = failure({ try decoder.decode(second[2]) }) else {
        Issue.record("\(late.map { "\($0)" } ?? "shown")")
        return
      }
      #expect(try decoder.decode(second[0]).count == 1)
    }
  }

  @Test func `a new configuration begins anew at the next key frame`() throws {
    let clip = try ClipStream(size: Self.size, frames: 8, ["-tune", "zerolatency", "-x264-params", "keyint=4"])
    let units = accessUnits(of: clip.stream)
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software))
    for unit in units[..<2] { #expect(try decoder.decode(unit).count == 1) }
    decoder.configuration.threads = 2
    #expect(decoder.configuration.threads == 2 && decoder.needsKeyFrame)
    for unit in units[2..<4] { #expect(failure { try decoder.decode(unit) }?.needsKeyFrame == true) }
    // The parameter sets are kept: the next key frame needs none of its own.
    let bare = nalUnits(units[4].annexB).filter { ![7, 8].contains($0[0] & 0x1f) }
    let key = EncodedPicture(annexB: bare.flatMap { AnnexB.startCode + $0 }, timestamp: units[4].timestamp)
    #expect(try decoder.decode(key).count == 1)
    for unit in units[5...] { #expect(try decoder.decode(unit).count == 1) }
    #expect(decoder.selection.name.hasSuffix("2 threads"))
    decoder.configuration.threads = 99
    let refusal = failure { try decoder.decode(units[0]) }
    guard case .configuration("a number of decoder threads of 99: choose 1 to 16")? = refusal else {
      Issue.record("\(refusal.map { "\($0)" } ?? "shown")")
      return
    }
    decoder.configuration.threads = 1
    #expect(try decoder.decode(units[0]).count == 1)
  }

  @Test func `each subscriber has the newest pictures, and a slow one delays nobody`() async throws {
    let clip = try ClipStream(size: Self.size, frames: 12, ["-tune", "zerolatency"])
    let units = accessUnits(of: clip.stream)
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 16))
    let (one, three, all) = (decoder.decodedFrames, decoder.decodedFrames(.newest(3)), decoder.decodedFrames(.all))
    for unit in units { _ = try decoder.decode(unit) }
    let late = decoder.decodedFrames
    decoder.invalidate()
    decoder.invalidate()
    func times(_ stream: AsyncStream<DecodedPicture>) async -> [Instant] {
      var times: [Instant] = []
      for await picture in stream { times.append(picture.timestamp) }
      return times
    }
    let expected = units.map(\.timestamp)
    #expect(await times(one) == expected.suffix(1))
    #expect(await times(three) == expected.suffix(3))
    #expect(await times(all) == expected)
    #expect(await times(late) == [])
    #expect(await times(decoder.decodedFrames) == [])
    if case .invalidated = failure({ try decoder.decode(units[0]) }) {} else { Issue.record("it decodes") }
  }

  @Test func `pictures that subscribers hold limit how many there are`() throws {
    let clip = try ClipStream(size: Self.size, frames: 9, ["-tune", "zerolatency"])
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 4))
    var held: [DecodedPicture] = []
    var copies: [[UInt8]] = []
    for unit in accessUnits(of: clip.stream) {
      for picture in try decoder.decode(unit) {
        held.append(picture)
        copies.append(picture.bytes)
      }
    }
    #expect(held.count == 4 && decoder.counts.dropped == 5)
    // Nobody writes into a picture that is held.
    #expect(held.map(\.bytes) == copies)
    held.removeAll()
    #expect(try decoder.decode(accessUnits(of: clip.stream)[0]).count == 1)
  }

  @Test func `the choice is told with its reason`() throws {
    let software = try VideoDecoder(configuration: .init(acceleration: .software)).selection
    #expect(!software.isHardware && software.name.hasPrefix("libavcodec "))
    #expect(software.reason == "software was asked for")
    #expect(try !VideoDecoder().selection.reason.isEmpty)
    let error = failure { try VideoDecoder(configuration: .init(acceleration: .renderNode("/nowhere/renderD128"))) }
    #expect("\(error.map { "\($0)" } ?? "")".hasPrefix("/nowhere/renderD128 has no VA-API driver that opens: "))
    #expect(error?.kind == .unavailable)
  }

  @Test func `a picture of software has no DMA-BUF, and says why`() throws {
    let clip = try ClipStream(size: Self.size, frames: 2, ["-tune", "zerolatency"])
    for keepsSurfaces in [false, true] {
      let decoder = try VideoDecoder(configuration: .init(acceleration: .software, keepsSurfaces: keepsSurfaces))
      let pictures = try accessUnits(of: clip.stream).flatMap { try decoder.decode($0) }
      let picture = try #require(pictures.first)
      let error = #expect(throws: DecoderError.self) { _ = try picture.exportedSurface() }
      guard case .notExported("it was decoded in software, or its surface was not kept")? = error else {
        Issue.record("\(error.map { "\($0)" } ?? "exported")")
        continue
      }
      #expect(error?.needsKeyFrame == false)
    }
  }
}

/// The access units of a stream, each a millisecond after the one before.
func accessUnits(of stream: [UInt8]) -> [EncodedPicture] {
  var reader = AnnexBReader()
  var units = reader.append(stream)
  if let last = reader.finish() { units.append(last) }
  return units.enumerated().map { index, unit in
    EncodedPicture(
      annexB: unit.annexB, timestamp: .zero + Duration.milliseconds(Int64(index)),
      captured: .zero + Duration.milliseconds(Int64(index + 1000)), isDamaged: unit.isDamaged)
  }
}

/// The decoder's error of a call; nil where it throws none.
func failure<Result>(_ call: () throws -> Result) -> DecoderError? {
  do {
    _ = try call()
  } catch let error as DecoderError {
    return error
  } catch {
    Issue.record("\(error)")
  }
  return nil
}
