import Adaptors
import Decoding
import Media
import Platform
import TestSupport
import Testing

/// Streams without key frames: intra refresh, and open groups of pictures.
@Suite struct RecoveryTests {
  private static let size = PictureSize(width: 320, height: 192)

  private static func decode(_ units: some Sequence<EncodedPicture>) throws -> (
    pictures: [(timestamp: Instant, bytes: [UInt8])], decoder: VideoDecoder
  ) {
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 64))
    var pictures: [(timestamp: Instant, bytes: [UInt8])] = []
    func take(_ shown: [DecodedPicture]?) { pictures += (shown ?? []).map { ($0.timestamp, $0.bytes) } }
    for unit in units { take(try? decoder.decode(unit)) }
    take(try? decoder.flush())
    return (pictures, decoder)
  }

  @Test(
    arguments: [
      "intra-refresh=1:keyint=10:bframes=0", "intra-refresh=1:keyint=10:bframes=0:ref=4:slices=3:sliced-threads=0",
      "intra-refresh=1:keyint=12:bframes=2", "open-gop=1:keyint=8:bframes=3:b-pyramid=strict",
      "open-gop=1:keyint=8:bframes=3:b-pyramid=normal:ref=4", "open-gop=1:keyint=6:bframes=2:b-pyramid=none:ref=1",
    ])
  func `a stream plays from each place on, and every picture that is shown is ffmpeg's`(tools: String) throws {
    let clip = try ClipStream(size: Self.size, frames: 60, ["-x264-params", tools])
    let (units, right) = (accessUnits(of: clip.stream), try clip.picturesByTime())
    let entries = units.indices.filter { units[$0].isEntry }
    #expect(entries.count > 3 && units.filter(\.isKeyFrame).count == 1)
    // Before and behind the first entries, each place. Later ones are like these: those at an entry are enough here.
    for start in 1..<40 where runsLong || start < 14 || units[start].isEntry || units[start - 1].isEntry {
      let (pictures, decoder) = try Self.decode(units[start...])
      let wrong = pictures.filter { right[$0.timestamp] != $0.bytes }.map(\.timestamp.nanoseconds)
      #expect(wrong.isEmpty, "from \(start): \(wrong)")
      // Nothing comes twice, or in another order than that of display.
      let entry = try #require(entries.first { $0 >= start })
      let shown = Set(pictures.map { Int($0.timestamp.nanoseconds / 1_000_000) })
      #expect(shown.count == pictures.count)
      // An intra refresh goes through the picture once; after that everything is shown. With B pictures, x264 states more
      // reference pictures than that takes.
      let last = !tools.hasPrefix("intra") ? entry + 8 : tools.contains("bframes=2") ? entry + 24 : entry + 13
      #expect(Set(min(last, 60)..<60).isSubset(of: shown), "from \(start): \(shown.sorted())")
      #expect(shown.allSatisfy { $0 >= entry } && (shown.contains(entry) || tools.hasPrefix("intra")))
      #expect(decoder.counts.pictures == UInt64(pictures.count))
      // ffmpeg shows no right picture more than we do.
      guard start == entry else { continue }
      let own = Set(try ClipStream.pictures(of: units[start...].flatMap(\.annexB), size: Self.size))
      let rightOnes = own.intersection(right.values).count
      #expect(rightOnes <= pictures.count, "from \(start): \(rightOnes) and \(pictures.count) pictures")
    }
  }

  @Test func `pictures before the recovery are counted, and are no errors`() throws {
    let clip = try ClipStream(size: Self.size, frames: 30, ["-x264-params", "intra-refresh=1:keyint=10:bframes=0"])
    let units = accessUnits(of: clip.stream)
    let entry = try #require(units.indices.dropFirst().first { units[$0].isEntry })
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software))
    #expect(failure { try decoder.decode(units[entry - 1]) }?.needsKeyFrame == true)
    // x264 states that it takes nine more pictures.
    for unit in units[entry..<entry + 9] {
      #expect(try decoder.decode(unit).isEmpty)
      #expect(!decoder.needsKeyFrame)
    }
    #expect(decoder.counts.refused == 10 && decoder.counts.pictures == 0)
    #expect(try decoder.decode(units[entry + 9]).count == 1)
  }

  @Test func `an entry whose frame number is always 0 plays too`() throws {
    // Numbers of frames of 5 bits: 32 frames later it is the same number again.
    let clip = try ClipStream(
      size: Self.size, frames: 120, ["-x264-params", "intra-refresh=1:keyint=32:bframes=0:ref=1"])
    let (units, right) = (accessUnits(of: clip.stream), try clip.picturesByTime())
    let (pictures, _) = try Self.decode(units[20...])
    #expect(pictures.allSatisfy { right[$0.timestamp] == $0.bytes } as Bool)
    let shown = Set(pictures.map { Int($0.timestamp.nanoseconds / 1_000_000) })
    #expect(Set(100..<120).isSubset(of: shown), "\(shown.sorted())")
  }

  @Test(arguments: ["intra-refresh=1:keyint=10:bframes=0", "open-gop=1:keyint=8:bframes=3:b-pyramid=strict"])
  func `after a loss nothing wrong is shown, and the next recovery point plays`(tools: String) throws {
    let clip = try ClipStream(size: Self.size, frames: 60, ["-x264-params", tools])
    let (units, right) = (accessUnits(of: clip.stream), try clip.picturesByTime())
    for lost in 1..<(runsLong ? 30 : 16) {
      var rest = units
      let gone = rest.remove(at: lost)
      // Nobody needs a picture that no other one refers to.
      let isReference = nalUnits(gone.annexB).contains { $0[0] & 0x1f == 1 && $0[0] & 0x60 != 0 }
      let (pictures, _) = try Self.decode(rest)
      let wrong = pictures.filter { right[$0.timestamp] != $0.bytes }.map(\.timestamp.nanoseconds)
      #expect(wrong.isEmpty, "without \(lost): \(wrong)")
      let shown = Set(pictures.map { Int($0.timestamp.nanoseconds / 1_000_000) })
      #expect(Set(50..<60).isSubset(of: shown), "without \(lost): \(shown.sorted())")
      if isReference { #expect(shown.count < 59, "without \(lost)") }
    }
  }

  @Test(
    arguments: [
      "open-gop=1:keyint=8:bframes=3:b-pyramid=strict", "open-gop=1:keyint=8:bframes=3:b-pyramid=normal:ref=4",
      "intra-refresh=1:keyint=12:bframes=2", "intra-refresh=1:keyint=10:bframes=0",
    ])
  func `a key frame before the recovery ends takes nothing away, and adds nothing wrong`(tools: String) throws {
    let clip = try ClipStream(size: Self.size, frames: 40, ["-x264-params", tools])
    let (units, right) = (accessUnits(of: clip.stream), try clip.picturesByTime())
    let entry = try #require(units.indices.dropFirst().first { units[$0].isEntry })
    func later(_ time: Instant) -> Instant { time + .milliseconds(1000) }
    func numbered(_ unit: EncodedPicture, _ number: Int, at time: Instant) -> EncodedPicture {
      EncodedPicture(annexB: unit.annexB, timestamp: time, number: UInt64(number))
    }
    let all = right.merging(right.map { (later($0), $1) }) { first, _ in first }
    for count in 1...20 {
      // Two pictures from the first key frame on, a loss, and a recovery point, whose SPS is known.
      let parts = units[..<2] + units[entry..<entry + count]
      let first = parts.enumerated().map { numbered($1, $0 < 2 ? $0 : $0 + 1, at: $1.timestamp) }
      let again = units[..<12].enumerated().map { numbered($1, count + 3 + $0, at: later($1.timestamp)) }
      let (pictures, _) = try Self.decode(first + again)
      let wrong = pictures.filter { all[$0.timestamp] != $0.bytes }.map(\.timestamp.nanoseconds)
      #expect(wrong.isEmpty, "after \(count): \(wrong)")
      // The pictures that the end of the stream would bring, and all of the other one.
      let expected = try Self.decode(first).pictures.map(\.timestamp) + again.map(\.timestamp)
      #expect(Set(pictures.map(\.timestamp)) == Set(expected) && pictures.count == expected.count, "after \(count)")
    }
  }

  @Test(arguments: ["intra-refresh=1:keyint=10:bframes=0", "open-gop=1:keyint=8:bframes=3:b-pyramid=strict"])
  func `after a flush the next recovery point plays`(tools: String) throws {
    let clip = try ClipStream(size: Self.size, frames: 60, ["-x264-params", tools])
    let (units, right) = (accessUnits(of: clip.stream), try clip.picturesByTime())
    let entries = units.indices.filter { $0 > 0 && units[$0].isEntry }
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 64))
    var shown: Set<Int> = []
    func take(_ pictures: [DecodedPicture]) {
      #expect(pictures.allSatisfy { right[$0.timestamp] == $0.bytes } as Bool)
      for picture in pictures { shown.insert(Int(picture.timestamp.nanoseconds / 1_000_000)) }
    }
    for unit in units[entries[0]..<entries[1]] { take(try decoder.decode(unit)) }
    take(try decoder.flush())
    #expect(decoder.needsKeyFrame)
    for unit in units[entries[1]...] { take(try decoder.decode(unit)) }
    take(try decoder.flush())
    #expect(Set(entries[1] + 13..<60).isSubset(of: shown), "\(shown.sorted())")
  }

  @Test func `a message of any length is read up to a limit`() throws {
    for byte in [255, 0] as [UInt8] {
      let long = [6] + [UInt8](repeating: byte, count: 16 << 20)
      let begin = Instant.now()
      let point = try long.withUnsafeBytes { RecoveryPoint(try #require(NALUnit($0))) }
      #expect(point == nil && Instant.now() - begin < .milliseconds(500))
    }
  }

  @Test func `a message of any form is read without a trap`() throws {
    let clip = try ClipStream(size: Self.size, frames: 2, ["-tune", "zerolatency"])
    let units = accessUnits(of: clip.stream)
    let wrong: [[UInt8]] = [
      [6], [6, 6], [6, 6, 0, 0x80], [6, 255, 255, 255], [6, 5, 200, 1, 2, 0x80], [6, 6, 1, 0, 0x80],
      [6, 6, 9, 0, 0, 3, 0, 0, 3, 0, 0, 3, 0], [6, 0, 1, 0, 6, 1, 0xc4, 0x80],
    ]
    for message in wrong {
      let decoder = try VideoDecoder(configuration: .init(acceleration: .software))
      for unit in units {
        let bytes = AnnexB.startCode + message + unit.annexB
        #expect(try decoder.decode(EncodedPicture(annexB: bytes, timestamp: .zero)).count == 1, "\(message)")
      }
    }
    // Behind another message it is found.
    let entry = EncodedPicture(annexB: AnnexB.startCode + (wrong.last ?? []), timestamp: .zero)
    #expect(entry.isEntry && !entry.isKeyFrame)
  }
}
