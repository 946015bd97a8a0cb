import Adaptors
import Decoding
import Media
import Platform
import TestSupport
import Testing

/// Streams of which pictures are missing without a trace in the stream itself.
@Suite struct DiscontinuityTests {
  private static let size = PictureSize(width: 320, height: 192)

  private static func clip(_ source: String, _ parameters: String = "keyint=6:min-keyint=6:scenecut=0") throws -> (
    units: [EncodedPicture], pictures: [Instant: [UInt8]]
  ) {
    let clip = try ClipStream(
      size: size, frames: 12, ["-vf", source, "-tune", "zerolatency", "-x264-params", parameters])
    return (accessUnits(of: clip.stream), try clip.picturesByTime())
  }

  private static func numbered(_ unit: EncodedPicture, _ number: UInt64) -> EncodedPicture {
    EncodedPicture(annexB: unit.annexB, timestamp: unit.timestamp, captured: unit.captured, number: number)
  }

  @Test func `a source that begins anew is entered at a key frame, whatever its frame numbers`() throws {
    let (first, second) = (try Self.clip("null"), try Self.clip("negate"))
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software))
    for index in 0..<3 { #expect(try decoder.decode(Self.numbered(first.units[index], UInt64(index))).count == 1) }
    // The frame numbers go on: without the gap in the sequence nothing would tell.
    for index in 3..<6 {
      let error = failure { try decoder.decode(Self.numbered(second.units[index], UInt64(index + 1))) }
      guard case .awaitsKeyFrame? = error else {
        Issue.record("\(error.map { "\($0)" } ?? "shown")")
        return
      }
    }
    for index in 6..<12 {
      let shown = try decoder.decode(Self.numbered(second.units[index], UInt64(index + 1)))
      #expect((shown.map(\.bytes) == [second.pictures[second.units[index].timestamp]]) as Bool)
    }
  }

  @Test func `what a slow subscriber loses is a gap for its decoder`() async throws {
    // Pictures that differ by 16 in their frame numbers, which have four bits, look like neighbours.
    let clip = try ClipStream(
      size: Self.size, frames: 40, ["-tune", "zerolatency", "-x264-params", "keyint=30:min-keyint=30:scenecut=0:ref=1"])
    let (units, right) = (accessUnits(of: clip.stream), try clip.picturesByTime())
    let broadcast = Broadcast<EncodedPicture>()
    let stream = broadcast.stream(.newest(2))
    var iterator = stream.makeAsyncIterator()
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 64))
    var pictures: [DecodedPicture] = []
    for (index, unit) in units.enumerated() {
      broadcast.send(Self.numbered(unit, UInt64(index)))
      guard !(5..<22).contains(index), let next = await iterator.next() else { continue }
      pictures += (try? decoder.decode(next)) ?? []
    }
    #expect(broadcast.dropped > 10)
    #expect(pictures.allSatisfy { right[$0.timestamp] == $0.bytes } as Bool)
    let shown = Set(pictures.map { Int($0.timestamp.nanoseconds / 1_000_000) })
    #expect(shown.isSuperset(of: 0..<5) && shown.isSuperset(of: 31..<38), "\(shown.sorted())")
    #expect(shown.isDisjoint(with: 6..<30), "\(shown.sorted())")
  }
}
