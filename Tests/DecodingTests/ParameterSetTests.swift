import Adaptors
import Decoding
import Media
import Platform
import TestSupport
import Testing

/// Parameter sets and messages that are wrong, beside pictures that are right.
@Suite struct ParameterSetTests {
  private static let size = PictureSize(width: 320, height: 192)
  /// A PPS with groups of slices, which libavcodec does not decode, of number 0 and of number 7.
  private static let refused: [UInt8] = [0x68, 0b1_1_00_010_1, 0x80]
  private static let unused: [UInt8] = [0x68, 0b0001_0001, 0b00_010_1_00, 0x80]

  private static func clip(_ parameters: String = "keyint=4:min-keyint=4:scenecut=0") throws -> (
    units: [EncodedPicture], pictures: [Instant: [UInt8]]
  ) {
    let clip = try ClipStream(size: size, frames: 12, ["-tune", "zerolatency", "-x264-params", parameters])
    return (accessUnits(of: clip.stream), try clip.picturesByTime())
  }

  private static func decoder() throws -> VideoDecoder {
    try VideoDecoder(configuration: .init(acceleration: .software))
  }

  private static func unit(_ nalUnits: [[UInt8]], like unit: EncodedPicture) -> EncodedPicture {
    EncodedPicture(annexB: nalUnits.flatMap { AnnexB.startCode + $0 }, timestamp: unit.timestamp)
  }

  private static func isPPS(_ unit: [UInt8]) -> Bool { unit[0] & 0x1f == 8 }

  @Test func `a set that no picture names disturbs nothing, in the stream or beside it`() throws {
    let (units, pictures) = try Self.clip()
    // Groups of slices; a sequence that never comes; nothing after the numbers.
    for set in [Self.unused, [0x68, 0b0001_0000, 0b0100_00_1_1, 0x80], [0x68, 0b0001_0001, 0x20]] as [[UInt8]] {
      let decoder = try Self.decoder()
      for (index, unit) in units.enumerated() {
        let parts = index % 3 == 1 ? [set] + nalUnits(unit.annexB) : nalUnits(unit.annexB)
        let shown = try decoder.decode(Self.unit(parts, like: unit)).map(\.bytes)
        #expect((shown == [pictures[unit.timestamp]]) as Bool, "\(index) with \(set)")
      }
    }
  }

  @Test func `a set that libavcodec refuses stops its own pictures, and the next right one plays`() throws {
    let (units, pictures) = try Self.clip()
    let decoder = try Self.decoder()
    for (index, unit) in units.enumerated() {
      var parts = nalUnits(unit.annexB)
      if index == 4 { parts = parts.map { Self.isPPS($0) ? Self.refused : $0 } }
      // The pictures behind name the set that was refused, and the key frame after them has a right one.
      if (4..<8).contains(index) {
        let error = failure { try decoder.decode(Self.unit(parts, like: unit)) }
        #expect(error != nil, "\(index)")
        if index == 4 {
          guard case .parameterSet? = error else {
            Issue.record("\(error.map { "\($0)" } ?? "shown")")
            continue
          }
        }
      } else {
        let shown = try decoder.decode(Self.unit(parts, like: unit)).map(\.bytes)
        #expect((shown == [pictures[unit.timestamp]]) as Bool, "\(index)")
      }
    }
    // The sets of a key frame without any are still those.
    let bare = nalUnits(units[8].annexB).filter { [1, 5].contains($0[0] & 0x1f) }
    #expect(try decoder.decode(Self.unit(bare, like: units[8])).count == 1)
  }

  /// An SPS of this number that announces pictures of 16384x16384.
  private static func huge(_ identifier: UInt32) -> [UInt8] {
    var writer = BitWriter()
    writer.begin(header: 0x67)
    for byte in [66, 0, 52] as [UInt32] { writer.bits(byte, 8) }
    for value in [identifier, 0, 2, 1] { writer.unsigned(value) }
    writer.flag(false)
    for value in [1023, 1023] as [UInt32] { writer.unsigned(value) }
    writer.bits(0b1100, 4)
    writer.trailingBits()
    return Array(writer.bytes.dropFirst(4))
  }

  @Test func `a set that is refused disturbs nothing that does not name it`() throws {
    let (units, pictures) = try Self.clip()
    // Too large; no fields at all; no fields behind the numbers 1.
    let refused: [[UInt8]] = [Self.huge(1), [0x67], [0x67, 66, 0, 52, 0b010_00000], [0x68], [0x68, 0b010_00110]]
    for set in refused {
      let decoder = try Self.decoder()
      for (index, unit) in units.enumerated() {
        let parts = index % 3 == 1 ? [set] + nalUnits(unit.annexB) : nalUnits(unit.annexB)
        let shown = try decoder.decode(Self.unit(parts, like: unit)).map(\.bytes)
        #expect((shown == [pictures[unit.timestamp]]) as Bool, "\(index) with \(set)")
      }
    }
  }

  @Test func `pictures that name a set that was refused tell why, and the next right one plays`() throws {
    let (units, pictures) = try Self.clip()
    let reasons: [(set: [UInt8], reason: String)] = [
      (Self.huge(0), "pictures of 16384x16384"), ([0x68, 0b1_0000101], "parameter set"),
    ]
    for (set, reason) in reasons {
      let decoder = try Self.decoder()
      for (index, unit) in units.enumerated() {
        var parts = nalUnits(unit.annexB)
        if index == 4 { parts = parts.map { $0[0] & 0x1f == set[0] & 0x1f ? set : $0 } }
        if (4..<8).contains(index) {
          let error = failure { try decoder.decode(Self.unit(parts, like: unit)) }
          #expect(error.map { "\($0)" }?.contains(reason) == true, "\(index): \(error.map { "\($0)" } ?? "shown")")
        } else {
          let shown = try decoder.decode(Self.unit(parts, like: unit)).map(\.bytes)
          #expect((shown == [pictures[unit.timestamp]]) as Bool, "\(index)")
        }
      }
    }
  }

  @Test func `sets go with their sequence when another takes its number`() throws {
    let (units, _) = try Self.clip()
    let other = try ClipStream(
      size: PictureSize(width: 128, height: 64), frames: 1, ["-tune", "zerolatency", "-profile:v", "baseline"])
    let decoder = try Self.decoder()
    #expect(try decoder.decode(units[0]).count == 1)
    let sequence = try #require(nalUnits(other.stream).first { $0[0] & 0x1f == 7 })
    let slices = nalUnits(units[4].annexB).filter { [1, 5].contains($0[0] & 0x1f) }
    guard case .missingParameterSets? = failure({ try decoder.decode(Self.unit([sequence] + slices, like: units[4])) })
    else {
      Issue.record("the former PPS is taken for the new SPS")
      return
    }
    #expect(try decoder.decode(units[8]).count == 1)
  }

  @Test func `what is no slice and no set in use does not come to libavcodec`() throws {
    let (units, pictures) = try Self.clip()
    let decoder = try Self.decoder()
    var random = SeededGenerator(seed: 14)
    for unit in units {
      // SEI that ends within a message, filler, ends of sequences, extensions, and types without a meaning.
      let noise = [6, 6, 9, 10, 11, 12, 13, 14, 15, 19, 20, 21, 24, 28, 31].map { type in
        [UInt8(type)] + random.bytes(Int.random(in: 0...40, using: &random)).map { $0 | 4 }
      }
      let parts = noise + nalUnits(unit.annexB) + noise
      let shown = try decoder.decode(Self.unit(parts, like: unit)).map(\.bytes)
      #expect((shown == [pictures[unit.timestamp]]) as Bool)
    }
  }
}
