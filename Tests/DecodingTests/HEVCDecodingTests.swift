import Adaptors
import Decoding
import Foundation
import Media
import Platform
import TestSupport
import Testing

/// Streams of HEVC, beside ffmpeg's own decoding of them.
@Suite struct HEVCDecodingTests {
  /// Every tool of x265 that the pictures of a stream depend on, and how a picture is cut into NAL units.
  private static let variants: [(parameters: String, arguments: [String])] = [
    ("bframes=0", ["-pix_fmt", "yuv420p", "-tune", "zerolatency"]),
    ("bframes=4:ref=5:b-pyramid=1:weightb=1", ["-pix_fmt", "yuv420p", "-preset", "medium"]),
    ("slices=4:keyint=5:aud=1:bframes=0", ["-pix_fmt", "yuv420p"]),
    ("open-gop=1:keyint=8:min-keyint=8:bframes=3", ["-pix_fmt", "yuv420p"]),
    ("temporal-layers=3:bframes=3", ["-pix_fmt", "yuv420p"]),
    ("wpp=1:ctu=16:no-sao=1:no-deblock=1", ["-pix_fmt", "yuv420p"]),
    ("lossless=1:ctu=32", ["-pix_fmt", "yuv420p"]),
    ("intra-refresh=1:keyint=10:bframes=0", ["-pix_fmt", "yuv420p"]),
    ("colormatrix=bt709:sao=1", ["-pix_fmt", "yuv420p"]),
  ]

  private static func units(of stream: [UInt8]) -> [EncodedPicture] {
    var reader = AnnexBReader(codec: .hevc)
    var units = reader.append(stream)
    if let last = reader.finish() { units.append(last) }
    return units.enumerated().map { index, unit in
      EncodedPicture(
        annexB: unit.annexB, codec: .hevc, timestamp: .zero + Duration.milliseconds(Int64(index)),
        captured: .zero + Duration.milliseconds(Int64(index + 1000)), isDamaged: unit.isDamaged)
    }
  }

  /// The same units with other NAL units.
  private static func changed(_ unit: EncodedPicture, _ change: ([[UInt8]]) -> [[UInt8]]) -> EncodedPicture {
    EncodedPicture(
      annexB: change(nalUnits(unit.annexB)).flatMap { AnnexB.startCode + $0 }, codec: .hevc,
      timestamp: unit.timestamp, captured: unit.captured)
  }

  /// The checksums of pictures, as ffmpeg makes them of the same samples.
  private static func checksums(_ pictures: [[UInt8]], _ size: String) throws -> [String] {
    let directory = try TemporaryDirectory()
    let path = try directory.write(pictures.flatMap(\.self), as: "pictures.raw")
    let result = try Subprocess.run(
      [
        "ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "nv12", "-s", size, "-i", path, "-f", "framemd5", "-",
      ], in: directory)
    return HEVCClip.checksums(result.outputText)
  }

  private static func type(_ unit: EncodedPicture) -> UInt8? {
    nalUnits(unit.annexB).map(HEVCClip.type).first { $0 < 32 }
  }

  @Test(arguments: variants.indices)
  func `pictures are ffmpeg's, bit by bit`(index: Int) throws {
    let variant = Self.variants[index]
    let clip = try HEVCClip(frames: 24, variant.parameters, arguments: variant.arguments)
    let units = Self.units(of: clip.stream)
    #expect(units.map { nalUnits($0.annexB) } == (try clip.packets()))
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 32))
    var pictures: [DecodedPicture] = []
    for unit in units { pictures += try decoder.decode(unit) }
    pictures += try decoder.flush()
    let found = try Self.checksums(pictures.map(\.bytes), "336x188")
    #expect(found.count == 24)
    #expect(found == (try HEVCClip.checksums(of: clip.stream)))
    #expect(Set(pictures.map(\.timestamp)) == Set(units.map(\.timestamp)))
    #expect(decoder.counts.pictures == 24 && decoder.counts.refused == 0)
    #expect(decoder.selection.name.contains("libavcodec"))
  }

  @Test(arguments: [
    ("range=full:colorprim=bt709:transfer=iec61966-2-1:colormatrix=smpte170m", "yuv420p"), ("range=full", "gray"),
  ])
  func `full range and grey come out as they are`(parameters: String, format: String) throws {
    let clip = try HEVCClip(frames: 2, "bframes=0:" + parameters, arguments: ["-pix_fmt", format])
    let raw = clip.directory.path("s.raw")
    let made = try Subprocess.run(
      [
        "ffmpeg", "-v", "error", "-nostdin", "-flags", "unaligned", "-i", clip.path, "-frames:v", "1", "-f",
        "rawvideo", raw,
      ], in: clip.directory)
    #expect(made.status == 0, "\(made.error)")
    let luma = [UInt8](try Data(contentsOf: URL(fileURLWithPath: raw)).prefix(336 * 188))
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software))
    let picture = try #require(try Self.units(of: clip.stream).first.flatMap { try decoder.decode($0).first })
    #expect(picture.bytes.prefix(336 * 188).elementsEqual(luma) as Bool)
    #expect(picture.color.isFullRange)
    guard format != "gray" else { return }
    #expect(picture.color == ColorDescription(primaries: 1, transfer: 13, matrix: 6, isFullRange: true))
  }

  @Test(arguments: [[1], [2, 3], [7, 1, 500], [4096]])
  func `access units are found in chunks of any size`(chunks: [Int]) throws {
    let clip = try HEVCClip(frames: 8, "slices=3:aud=1:bframes=2:keyint=4")
    var reader = AnnexBReader(codec: .hevc)
    var units: [EncodedPicture] = []
    var (position, turn) = (0, 0)
    while position < clip.stream.count {
      let end = min(clip.stream.count, position + chunks[turn % chunks.count])
      units += reader.append(clip.stream[position..<end])
      (position, turn) = (end, turn + 1)
    }
    if let last = reader.finish() { units.append(last) }
    #expect(units.map { nalUnits($0.annexB) } == (try clip.packets()))
    #expect(units.map(\.isKeyFrame) == units.map { (16...23).contains(Self.type($0) ?? 0) })
    #expect(units.filter(\.isKeyFrame).allSatisfy { $0.parameterSets == clip.parameterSets })
  }

  @Test func `a picture comes out with its own access unit where none is reordered`() throws {
    let clip = try HEVCClip(frames: 10, "bframes=0:slices=3")
    for threads in [1, 4] {
      let decoder = try VideoDecoder(configuration: .init(acceleration: .software, threads: threads))
      for unit in Self.units(of: clip.stream) {
        #expect(try decoder.decode(unit).map(\.timestamp) == [unit.timestamp])
      }
    }
  }

  @Test func `lengths instead of start codes, and parameter sets beside the stream, give the same`() throws {
    let clip = try HEVCClip(frames: 6, "bframes=0")
    let sets = try #require(clip.parameterSets)
    for way in 0..<2 {
      let decoder = try VideoDecoder(configuration: .init(acceleration: .software))
      if way == 0 {
        try decoder.setParameterSets(sets)
      } else {
        try decoder.setParameterSets(try HEVCDecoderConfiguration(sets))
      }
      var pictures: [[UInt8]] = []
      for unit in Self.units(of: clip.stream) {
        let bare = nalUnits(unit.annexB).filter { HEVCClip.type($0) < 32 }
        let lengths = bare.flatMap { [0, 0, UInt8($0.count >> 8), UInt8($0.count & 0xff)] + $0 as [UInt8] }
        let shown = try lengths.withUnsafeBytes {
          try decoder.decode(avcc: $0, codec: .hevc, timestamp: unit.timestamp)
        }
        pictures += shown.map(\.bytes)
      }
      #expect(try Self.checksums(pictures, "336x188") == HEVCClip.checksums(of: clip.stream))
    }
  }

  @Test func `the codec may change in mid-stream`() throws {
    let first = try ClipStream(size: PictureSize(width: 336, height: 188), frames: 4, ["-tune", "zerolatency"])
    let second = try HEVCClip(frames: 4, "bframes=0")
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 16))
    for _ in 0..<2 {
      #expect(try accessUnits(of: first.stream).flatMap { try decoder.decode($0) }.count == 4)
      let pictures = try Self.units(of: second.stream).flatMap { try decoder.decode($0) }
      #expect(try Self.checksums(pictures.map(\.bytes), "336x188") == HEVCClip.checksums(of: second.stream))
    }
    #expect(decoder.counts.refused == 0 && decoder.counts.pictures == 16)
  }

  @Test func `where decoding starts at a CRA picture, its RASL pictures are left out, which is no error`() throws {
    let clip = try HEVCClip(frames: 30, "open-gop=1:keyint=10:min-keyint=10:bframes=3")
    let units = Self.units(of: clip.stream)
    let entry = try #require(units.firstIndex { Self.type($0) == 21 })
    let leading = units[entry...].dropFirst().prefix { [8, 9].contains(Self.type($0) ?? 0) }.count
    #expect(leading > 0)
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 32))
    var pictures: [DecodedPicture] = []
    for unit in units[entry...] { pictures += try decoder.decode(unit) }
    pictures += try decoder.flush()
    // All pictures but the leading ones, and those as they are in the whole stream.
    let whole = try HEVCClip.checksums(of: clip.stream)
    #expect(pictures.count == units.count - entry - leading)
    #expect(try Self.checksums(pictures.map(\.bytes), "336x188") == Array(whole.suffix(pictures.count)))
    #expect(decoder.counts.refused == 0)
  }

  /// An SPS with the number 1, which was 0, as an encoder writes it that has another stream in mind.
  private static func renumbered(_ set: [UInt8]) throws -> [UInt8] {
    let payload = RawByteSequencePayload.removingEmulationPrevention(set.dropFirst(2))
    var bits = payload.flatMap { byte in (0..<8).map { byte >> (7 - $0) & 1 } }
    // Behind 8 bits and profile, tier and level of one sub-layer: a one becomes 010, clause 9.2.
    try #require(payload[0] & 0x0e == 0 && bits[104] == 1)
    bits.replaceSubrange(104...104, with: [0, 1, 0])
    while bits.last == 0 { bits.removeLast() }
    while !bits.count.isMultiple(of: 8) { bits.append(0) }
    let bytes = stride(from: 0, to: bits.count, by: 8).map { bits[$0..<$0 + 8].reduce(0) { $0 << 1 | $1 } }
    return set.prefix(2) + RawByteSequencePayload.addingEmulationPrevention(bytes)
  }

  @Test(arguments: [true, false])
  func `an SPS that no picture names begins no sequence, and loses no RASL picture`(isInStream: Bool) throws {
    let clip = try HEVCClip(frames: 30, "open-gop=1:keyint=10:min-keyint=10:bframes=3")
    var units = Self.units(of: clip.stream)
    let entry = try #require(units.lastIndex { Self.type($0) == 21 })
    let sets = try #require(clip.parameterSets)
    let other = try Self.renumbered(sets.sequence)
    if isInStream {
      units[entry] = Self.changed(units[entry]) { [other] + $0 }
      // ffmpeg reads it so, too.
      let changed = units.flatMap(\.annexB)
      #expect(try HEVCClip.checksums(of: changed) == HEVCClip.checksums(of: clip.stream))
    }
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 64))
    var pictures: [DecodedPicture] = []
    for (index, unit) in units.enumerated() {
      if index == entry, !isInStream {
        try decoder.setParameterSets(
          try #require(ParameterSets(video: sets.video, sequence: other, picture: sets.picture)))
      }
      pictures += try decoder.decode(unit)
    }
    pictures += try decoder.flush()
    #expect(try Self.checksums(pictures.map(\.bytes), "336x188") == HEVCClip.checksums(of: clip.stream))
    #expect(decoder.counts.refused == 0)
  }

  @Test func `where the decoder begins anew at a CRA picture in mid-stream, only its RASL pictures are left out`()
    throws
  {
    let clip = try HEVCClip(frames: 30, "open-gop=1:keyint=10:min-keyint=10:bframes=3")
    var units = Self.units(of: clip.stream)
    let entry = try #require(units.firstIndex { Self.type($0) == 21 })
    let leading = units[entry...].dropFirst().prefix { [8, 9].contains(Self.type($0) ?? 0) }.count
    #expect(leading > 0)
    // From here on the SPS has another level, which no picture depends on.
    for index in units[entry...].indices {
      units[index] = Self.changed(units[index]) { units in
        units.map { unit in
          HEVCClip.type(unit) != 33
            ? unit : (try? HEVCProfileTierLevel.replacingLevel(in: unit, levelIDC: 186, isHighTier: false)) ?? []
        }
      }
    }
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 64))
    var pictures: [DecodedPicture] = []
    for unit in units { pictures += try decoder.decode(unit) }
    pictures += try decoder.flush()
    let whole = try HEVCClip.checksums(of: clip.stream)
    let found = try Self.checksums(pictures.map(\.bytes), "336x188")
    #expect(found == whole.prefix(entry) + whole.suffix(units.count - entry - leading))
    #expect(decoder.counts.refused == 0)
  }

  @Test func `an end of sequence before a CRA picture loses no picture before it`() throws {
    let clip = try HEVCClip(frames: 30, "open-gop=1:keyint=10:min-keyint=10:bframes=3")
    var units = Self.units(of: clip.stream)
    let entry = try #require(units.firstIndex { Self.type($0) == 21 })
    let leading = units[entry...].dropFirst().prefix { [8, 9].contains(Self.type($0) ?? 0) }.count
    for place in [entry - 1, entry] {
      let former = units[place]
      // At the end of the access unit before, as the standard has it, or before the CRA picture.
      units[place] = Self.changed(former) { place == entry ? [[0x48, 1]] + $0 : $0 + [[0x48, 1]] }
      let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 64))
      var pictures: [DecodedPicture] = []
      for unit in units { pictures += try decoder.decode(unit) }
      pictures += try decoder.flush()
      let whole = try HEVCClip.checksums(of: clip.stream)
      let found = try Self.checksums(pictures.map(\.bytes), "336x188")
      #expect(found == whole.prefix(entry) + whole.suffix(units.count - entry - leading))
      #expect(decoder.counts.refused == 0)
      units[place] = former
    }
  }

  @Test func `after a picture that is missing nothing is shown up to the next IRAP picture`() throws {
    let clip = try HEVCClip(frames: 24, "bframes=0:keyint=12:min-keyint=12:open-gop=0:ref=1")
    let units = Self.units(of: clip.stream)
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 32))
    var shown: [Int] = []
    var errors: [DecoderError] = []
    // Nobody says that a picture is missing: only the reference picture sets tell.
    for (index, unit) in units.enumerated() where index != 5 {
      do throws(DecoderError) {
        if try !decoder.decode(unit).isEmpty { shown.append(index) }
      } catch {
        errors.append(error)
      }
    }
    #expect(shown == Array(0..<5) + Array(12..<24))
    guard case .missingReference? = errors.first else {
      Issue.record("\(errors)")
      return
    }
    #expect(errors.count == 6 && errors.allSatisfy { $0.needsKeyFrame })
  }

  @Test(arguments: ["ctu=16", "ctu=64:sao=1", "ctu=32:wpp=1"])
  func `a slice that is missing is found, whichever it is`(parameters: String) throws {
    let clip = try HEVCClip(size: "344x200", frames: 6, "slices=3:bframes=0:keyint=6:" + parameters)
    let units = Self.units(of: clip.stream)
    for (picture, missing) in [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (2, 2)] {
      let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 32))
      for (index, unit) in units[...picture].enumerated() {
        guard index == picture else {
          #expect(try decoder.decode(unit).count == 1)
          continue
        }
        let broken = Self.changed(unit) { units in
          let slices = units.indices.filter { HEVCClip.type(units[$0]) < 32 }
          #expect(slices.count == 3)
          return units.enumerated().filter { $0.offset != slices[missing] }.map(\.element)
        }
        let error = failure { try decoder.decode(broken) }
        guard case .damaged? = error else {
          Issue.record("picture \(picture), slice \(missing): \(error.map { "\($0)" } ?? "shown")")
          continue
        }
        #expect(decoder.needsKeyFrame)
      }
    }
  }

  @Test func `NAL units of further layers, of reserved types and with a broken header change nothing`() throws {
    let clip = try HEVCClip(frames: 6, "bframes=0:slices=2")
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 16))
    var pictures: [DecodedPicture] = []
    for unit in Self.units(of: clip.stream) {
      let other = Self.changed(unit) { units in
        units.flatMap { unit -> [[UInt8]] in
          var (layered, broken) = (unit, unit)
          layered[1] |= 8
          broken[1] &= 0xf8
          // Reserved types of slices, clause 7.4.2.2.
          let reserved = [10, 15, 22, 23, 31].map { (type: UInt8) in [type << 1] + unit.dropFirst() }
          return reserved + [unit, layered, broken, [0x02]] + reserved
        }
      }
      pictures += try decoder.decode(other)
    }
    #expect(try Self.checksums(pictures.map(\.bytes), "336x188") == HEVCClip.checksums(of: clip.stream))
  }

  @Test func `sizes, samples and sets that are refused are named`() throws {
    let sets: [(String, [String], (DecoderError?) -> Bool)] = [
      ("336x188", ["-pix_fmt", "yuv420p10le"], { if case .samples? = $0 { true } else { false } }),
      ("336x188", ["-pix_fmt", "yuv444p"], { if case .samples? = $0 { true } else { false } }),
      ("1280x720", ["-pix_fmt", "yuv420p"], { if case .pictureSize? = $0 { true } else { false } }),
    ]
    for (size, arguments, isExpected) in sets {
      let clip = try HEVCClip(size: size, frames: 1, arguments: arguments)
      let decoder = try VideoDecoder(configuration: .init(acceleration: .software, maximumPixels: 400_000))
      let unit = try #require(Self.units(of: clip.stream).first)
      #expect(isExpected(failure { try decoder.decode(unit) }), "\(size) \(arguments)")
      let sets = try #require(clip.parameterSets)
      #expect(isExpected(failure { try decoder.setParameterSets(sets) }), "\(size) \(arguments)")
    }
    let clip = try HEVCClip(frames: 1)
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software))
    let bare = Self.changed(try #require(Self.units(of: clip.stream).first)) { $0.filter { HEVCClip.type($0) < 32 } }
    guard case .missingParameterSets? = failure({ try decoder.decode(bare) }) else {
      Issue.record("a picture without parameter sets is decoded")
      return
    }
  }

  @Test func `bits that flip do no harm, and the next key frame plays`() throws {
    let clip = try HEVCClip(frames: 12, "bframes=1:keyint=4:min-keyint=4:slices=2:open-gop=0")
    let units = Self.units(of: clip.stream)
    var random = SeededGenerator(seed: 265)
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 16))
    for _ in 0..<60 {
      for unit in units {
        var bytes = unit.annexB
        for _ in 0..<Int.random(in: 0...4, using: &random) {
          bytes[Int.random(in: 0..<bytes.count, using: &random)] ^= 1 << UInt8.random(in: 0...7, using: &random)
        }
        _ = try? decoder.decode(EncodedPicture(annexB: bytes, codec: .hevc, timestamp: unit.timestamp))
      }
    }
    // The whole stream, after all that: its sets, too.
    var pictures = 0
    for unit in units { pictures += (try? decoder.decode(unit).count) ?? 0 }
    pictures += (try? decoder.flush().count) ?? 0
    #expect(pictures >= 12)
  }
}
