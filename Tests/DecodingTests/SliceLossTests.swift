import Adaptors
import Decoding
import Media
import Platform
import TestSupport
import Testing

/// Pictures of which a slice is missing, and nobody says so.
@Suite struct SliceLossTests {
  private static let size = PictureSize(width: 128, height: 128)

  private static func isSlice(_ unit: [UInt8]) -> Bool { [1, 5].contains(unit[0] & 0x1f) }

  /// The access unit without one of its slices.
  private static func unit(_ unit: EncodedPicture, without lost: Int) -> EncodedPicture {
    var slice = -1
    let rest = nalUnits(unit.annexB).filter {
      if isSlice($0) { slice += 1 }
      return !isSlice($0) || slice != lost
    }
    return EncodedPicture(annexB: rest.flatMap { AnnexB.startCode + $0 }, timestamp: unit.timestamp)
  }

  private static func decoder(_ threads: Int) throws -> VideoDecoder {
    try VideoDecoder(configuration: .init(acceleration: .software, threads: threads, poolCapacity: 32))
  }

  @Test(
    arguments: [1, 4],
    ["slices=4", "slices=4:cabac=0:bframes=2", "slices=4:interlaced=1", "slices=4:no-deblock=1:interlaced=1:cabac=0"])
  func `a picture without one of its slices is never shown`(threads: Int, tools: String) throws {
    let clip = try ClipStream(
      size: Self.size, frames: 9, ["-x264-params", "keyint=5:min-keyint=5:scenecut=0:sliced-threads=0:" + tools])
    let (units, pictures) = (accessUnits(of: clip.stream), try clip.picturesByTime())
    for unit in units { #expect(nalUnits(unit.annexB).filter(Self.isSlice).count == 4) }
    for (victim, unit) in units.enumerated() {
      for slice in 0..<4 {
        let decoder = try Self.decoder(threads)
        var (shown, wrong): (Set<Instant>, [Instant]) = ([], [])
        for (index, next) in units.enumerated() {
          for picture in (try? decoder.decode(index == victim ? Self.unit(unit, without: slice) : next)) ?? [] {
            shown.insert(picture.timestamp)
            if pictures[picture.timestamp] != picture.bytes { wrong.append(picture.timestamp) }
          }
        }
        for picture in (try? decoder.flush()) ?? [] {
          shown.insert(picture.timestamp)
          if pictures[picture.timestamp] != picture.bytes { wrong.append(picture.timestamp) }
        }
        #expect(wrong.isEmpty && !shown.contains(unit.timestamp), "slice \(slice) of picture \(victim): \(wrong)")
        #expect(decoder.counts.refused > 0)
        // The other sequence is shown, up to what was still held back for reordering.
        let rest = (victim < 5 ? units[5...] : units[..<5]).filter { shown.contains($0.timestamp) }
        #expect(victim < 5 ? rest.count == 4 : rest.count >= 3, "slice \(slice) of picture \(victim)")
      }
    }
  }

  @Test(arguments: [1, 4], [false, true])
  func `fields are decoded, and a frame without a slice of a field is never shown`(threads: Int, isField: Bool) throws {
    let stream = PCMStream(frames: 6, slices: 4, isField: isField)
    func decode(_ units: [EncodedPicture]) throws -> [Int: [UInt8]] {
      let decoder = try Self.decoder(threads)
      var pictures: [DecodedPicture] = []
      for unit in units { pictures += (try? decoder.decode(unit)) ?? [] }
      pictures += (try? decoder.flush()) ?? []
      return Dictionary(uniqueKeysWithValues: pictures.map { (Int($0.timestamp.nanoseconds), $0.bytes) })
    }
    for joined in [false, true] {
      let all = try decode(stream.units(joined: joined))
      #expect(all.keys.sorted() == [0, 1, 2, 3, 4, 5])
      for (frame, bytes) in all { #expect(bytes == stream.picture(frame), "\(frame)") }
      for victim in stream.pictures.indices {
        let frame = victim / (isField ? 2 : 1)
        for slice in 0..<4 {
          let shown = try decode(stream.units(without: slice, of: victim, joined: joined))
          // What comes before, and what comes from the next key frame on.
          let whole = Array(frame / 3 * 3..<frame) + (frame < 3 ? [3, 4, 5] : [0, 1, 2])
          #expect(shown.keys.sorted() == whole.sorted(), "slice \(slice) of \(victim)")
          for (frame, bytes) in shown { #expect(bytes == stream.picture(frame), "\(frame)") }
        }
      }
    }
  }

  @Test func `a frame without its second field is not shown, and the next key frame plays`() throws {
    let stream = PCMStream(frames: 6, slices: 1, isField: true)
    for lost in 0..<6 {
      var units = stream.units()
      units.remove(at: lost)
      let decoder = try Self.decoder(1)
      var shown: [Int] = []
      for unit in units { shown += ((try? decoder.decode(unit)) ?? []).map { Int($0.timestamp.nanoseconds) } }
      #expect(shown == Array(0..<lost / 2) + [3, 4, 5], "without field \(lost)")
    }
  }

  /// A picture of a single macroblock, or of a single pair of them, which is an own stream: x264 makes none.
  private enum Single: CaseIterable {
    case frame
    case field
    case pair

    /// The parameter sets, and two slices, the second of which has no macroblock to begin with.
    var stream: [UInt8] {
      var writer = BitWriter()
      writer.begin(header: 0x67)
      for byte in [77, 0, 30] as [UInt32] { writer.bits(byte, 8) }
      // Numbers of frames of 4 bits, and orders of 8; one reference; one macroblock in width and height.
      for value in [0, 0, 0, 4, 1] as [UInt32] { writer.unsigned(value) }
      writer.flag(false)
      for value in [0, 0] as [UInt32] { writer.unsigned(value) }
      writer.flag(self == .frame)
      if self != .frame { writer.flag(self == .pair) }
      writer.bits(0b100, 3)
      writer.trailingBits()
      writer.begin(header: 0x68)
      writer.bits(0b11_00_111_0, 8)
      writer.bits(0b00_111_100, 8)
      writer.trailingBits()
      for first in 0..<2 as Range<UInt32> {
        writer.begin(header: 0x65)
        for value in [first, 7, 0] { writer.unsigned(value) }
        writer.bits(0, 4)
        if self != .frame { writer.flag(self == .field) }
        if self == .field { writer.flag(false) }
        writer.unsigned(0)
        writer.bits(0, 8)
        writer.bits(0, 2)
        writer.signed(0)
        writer.trailingBits()
      }
      return writer.bytes
    }
  }

  @Test(arguments: Single.allCases)
  private func `a picture of one macroblock has one slice`(picture: Single) throws {
    let units = accessUnits(of: picture.stream)
    #expect(units.count == 1)
    guard case .damaged? = failure({ try Self.decoder(1).decode(try #require(units.first)) }) else {
      Issue.record("it is taken")
      return
    }
  }

  @Test func `slices out of order, and two pictures in one access unit, are refused`() throws {
    let clip = try ClipStream(size: Self.size, frames: 3, ["-x264-params", "slices=4:sliced-threads=0:bframes=0"])
    let units = accessUnits(of: clip.stream)
    let parts = nalUnits(units[1].annexB)
    let orders = [[0, 2, 1, 3], [1, 0, 2, 3], [0, 1, 1, 2, 3], [3, 2, 1, 0]]
    var wrong = orders.map { order in order.flatMap { AnnexB.startCode + parts[$0] } }
    wrong.append(units[1].annexB + units[2].annexB)
    for bytes in wrong {
      let decoder = try Self.decoder(1)
      #expect(try decoder.decode(units[0]).count == 1)
      let error = failure { try decoder.decode(EncodedPicture(annexB: bytes, timestamp: .zero)) }
      guard case .damaged? = error else {
        Issue.record("\(error.map { "\($0)" } ?? "shown")")
        continue
      }
      #expect(error?.needsKeyFrame == true)
    }
  }
}

extension ClipStream {
  /// ffmpeg's pictures by the times of ``accessUnits(of:)``: ours come in the same order, that of display.
  func picturesByTime() throws -> [Instant: [UInt8]] {
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 64))
    var times: [Instant] = []
    for unit in accessUnits(of: stream) { times += try decoder.decode(unit).map(\.timestamp) }
    times += try decoder.flush().map(\.timestamp)
    let bytes = pictures.count / max(1, times.count)
    return Dictionary(
      uniqueKeysWithValues: times.enumerated().map { ($1, Array(pictures[($0 * bytes)..<($0 + 1) * bytes])) })
  }
}
