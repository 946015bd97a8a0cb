import Adaptors
import Decoding
import Media
import Platform
import TestSupport
import Testing

/// Streams that are damaged, or made to harm.
@Suite struct HostileStreamTests {
  private static let size = PictureSize(width: 320, height: 192)

  private static func clip(_ parameters: String = "keyint=6:min-keyint=6:scenecut=0") throws -> (
    units: [EncodedPicture], pictures: [[UInt8]]
  ) {
    let clip = try ClipStream(size: size, frames: 18, ["-tune", "zerolatency", "-x264-params", parameters])
    let bytes = size.pixels * 3 / 2
    return (accessUnits(of: clip.stream), (0..<18).map { Array(clip.pictures[($0 * bytes)..<($0 + 1) * bytes]) })
  }

  private static func decoder() throws -> VideoDecoder {
    try VideoDecoder(configuration: .init(acceleration: .software))
  }

  private static func sequence(_ size: PictureSize) -> [UInt8] {
    var writer = BitWriter()
    SequenceParameters(profile: .high, levelIDC: 62, size: size, color: .bt709, frameRate: .thirty).write(to: &writer)
    return writer.bytes
  }

  /// `true` if the access unit gives this picture and no other. (A failed comparison of whole pictures takes long to print.)
  private func shows(_ unit: EncodedPicture, _ picture: [UInt8], _ decoder: VideoDecoder) throws -> Bool {
    try decoder.decode(unit).map(\.bytes) == [picture]
  }

  @Test func `an announced size beyond the limits is refused, and the stream before goes on`() throws {
    let (units, pictures) = try Self.clip()
    let decoder = try Self.decoder()
    #expect(try shows(units[0], pictures[0], decoder))
    let before = try Footprint.residentBytes()
    for size in [PictureSize(width: 16_384, height: 16_384), PictureSize(width: 16_384, height: 16)] {
      for _ in 0..<100 {
        let rest = nalUnits(units[6].annexB).filter { $0[0] & 0x1f != 7 }.flatMap { AnnexB.startCode + $0 }
        let hostile = EncodedPicture(annexB: Self.sequence(size) + rest, timestamp: .zero)
        guard case .pictureSize(let found, _)? = failure({ try decoder.decode(hostile) }) else {
          Issue.record("\(size) is not refused")
          return
        }
        #expect(found == size)
      }
    }
    #expect(try Footprint.residentBytes() - before < 64 << 20)
    for unit in units[1..<6] { #expect(failure { try decoder.decode(unit) } != nil) }
    for index in 6..<18 { #expect(try shows(units[index], pictures[index], decoder)) }
    #expect(failure { try decoder.setParameterSets(Self.sets(PictureSize(width: 8200, height: 64))) } != nil)
    #expect(failure { try decoder.setParameterSets(Self.sets(PictureSize(width: 4096, height: 2304))) } == nil)
  }

  private static func sets(_ size: PictureSize) throws -> ParameterSets {
    try #require(ParameterSets(sequence: Array(sequence(size)[4...]), picture: [0x68, 0xee, 0x3c, 0x80]))
  }

  @Test func `sizes that change with each picture take no more memory than one`() throws {
    let decoder = try Self.decoder()
    var units: [EncodedPicture] = []
    for width in stride(from: 64, through: 256, by: 64) {
      let clip = try ClipStream(size: PictureSize(width: width, height: 400 - width), frames: 1, [])
      units += accessUnits(of: clip.stream)
    }
    for unit in units { _ = try decoder.decode(unit) }
    let before = try Footprint.residentBytes()
    for _ in 0..<100 { for unit in units { #expect(try decoder.decode(unit).count <= 2) } }
    #expect(try Footprint.residentBytes() - before < 32 << 20)
  }

  @Test func `pictures of all sizes together count against the limit, and their memory is bounded`() throws {
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software, poolCapacity: 8))
    let units = try [(1920, 1088), (1904, 1072)].flatMap { size in
      accessUnits(
        of: try ClipStream(
          size: PictureSize(width: size.0, height: size.1), frames: 1, ["-preset", "ultrafast", "-tune", "zerolatency"]
        ).stream)
    }
    for unit in units { #expect(try decoder.decode(unit).count == 1) }
    let before = try Footprint.residentBytes()
    var held: [DecodedPicture] = []
    for _ in 0..<20 { for unit in units { held += try decoder.decode(unit) } }
    #expect(held.count == 8 && decoder.counts.dropped == 32)
    // Twice eight pictures have 50 MB; a pool for each change of size would have a gigabyte.
    #expect(try Footprint.residentBytes() - before < 256 << 20)
    #expect(Set(held.map(\.size)).count == 2)
    held.removeFirst(3)
    for unit in units { held += try decoder.decode(unit) }
    #expect(held.count == 7)
  }

  @Test(arguments: [1, 3, 8])
  func `after a lost picture nothing is shown until the next key frame`(lost: Int) throws {
    let (units, pictures) = try Self.clip()
    let decoder = try Self.decoder()
    var errors: [DecoderError] = []
    for (index, unit) in units.enumerated() where index != lost {
      if index > lost, index < (lost / 6 + 1) * 6 {
        if let error = failure({ try decoder.decode(unit) }) { errors.append(error) }
      } else {
        #expect(try shows(unit, pictures[index], decoder))
      }
    }
    #expect(errors.count == 5 - lost % 6)
    guard case .missingReference? = errors.first else {
      Issue.record("\(errors)")
      return
    }
    #expect(errors.allSatisfy { $0.needsKeyFrame })
  }

  @Test func `what the network damaged is not shown`() throws {
    let (units, pictures) = try Self.clip("keyint=6:min-keyint=6:scenecut=0:slices=4")
    let decoder = try Self.decoder()
    for (index, unit) in units.enumerated() {
      // A slice is missing, and the receiver knows it, or it does not.
      let isHit = index == 2 || index == 8
      let parts = nalUnits(unit.annexB).dropLast(isHit ? 1 : 0)
      let bytes = parts.flatMap { AnnexB.startCode + $0 }
      let picture = EncodedPicture(annexB: bytes, timestamp: unit.timestamp, isDamaged: index == 2)
      if isHit || (3..<6).contains(index) || (9..<12).contains(index) {
        let error = failure { try decoder.decode(picture) }
        #expect(error?.needsKeyFrame == true, "\(index): \(error.map { "\($0)" } ?? "shown")")
      } else {
        #expect(try shows(picture, pictures[index], decoder))
      }
    }
  }

  @Test func `truncated and bit-flipped pictures trap nowhere, and the next clean key frame plays`() throws {
    let (units, pictures) = try Self.clip("keyint=6:min-keyint=6:scenecut=0:slices=2:cabac=0")
    var random = SeededGenerator(seed: 2025)
    let decoder = try Self.decoder()
    for _ in 0..<60 {
      for unit in units[..<6] {
        var bytes = unit.annexB
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes.removeLast(Int.random(in: 0...bytes.count, using: &random))
        case 1:
          for _ in 0..<8 {
            bytes[Int.random(in: bytes.indices, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
          }
        default: bytes.shuffle(using: &random)
        }
        _ = failure { try decoder.decode(EncodedPicture(annexB: bytes, timestamp: unit.timestamp)) }
      }
      // With parameter sets: a bit in them may have been hit.
      let isLastRight = try decoder.decode(units[12]).last?.bytes == pictures[12]
      #expect(isLastRight)
    }
    for index in 13..<18 { #expect(try shows(units[index], pictures[index], decoder)) }
  }

  @Test func `reordered pictures are shown right or not at all`() throws {
    let (units, pictures) = try Self.clip()
    var random = SeededGenerator(seed: 7)
    let decoder = try Self.decoder()
    for _ in 0..<20 {
      var order = Array(units.indices)
      // Within a sequence: an IDR picture of another one would pass for the right one, whoever looks.
      let first = 6 * Int.random(in: 0..<3, using: &random)
      order.swapAt(first + .random(in: 0..<6, using: &random), first + .random(in: 0..<6, using: &random))
      for index in order {
        do throws(DecoderError) {
          for picture in try decoder.decode(units[index]) {
            let number = Int(picture.timestamp.nanoseconds / 1_000_000)
            let isRight = picture.bytes == pictures[number]
            #expect(isRight, "\(number) in \(order)")
          }
        } catch {
          #expect(error.needsKeyFrame)
        }
      }
    }
  }

  @Test func `an access unit of any size is refused before it is read`() throws {
    let decoder = try Self.decoder()
    let large = EncodedPicture(annexB: [0, 0, 0, 1, 0x65] + [UInt8](repeating: 1, count: 17 << 20), timestamp: .zero)
    guard case .accessUnitSize? = failure({ try decoder.decode(large) }) else {
      Issue.record("it is taken")
      return
    }
    let many = EncodedPicture(annexB: (0..<2000).flatMap { _ in [0, 0, 1, 6, 5] as [UInt8] }, timestamp: .zero)
    guard case .nalUnits? = failure({ try decoder.decode(many) }) else {
      Issue.record("it is taken")
      return
    }
    let lengths: [UInt8] = [0, 0, 0, 9, 0x65]
    let refusal = failure { try lengths.withUnsafeBytes { try decoder.decode(avcc: $0, timestamp: .zero) } }
    guard case .format? = refusal else {
      Issue.record("it is taken")
      return
    }
    #expect(decoder.counts.accessUnits == 3 && decoder.counts.refused == 3)
  }

  @Test func `an access unit that is refused before it is read is a loss like any other`() throws {
    let (units, _) = try Self.clip()
    for bytes in [[UInt8](repeating: 0, count: 17 << 20), [0, 0, 0, 9, 0x65]] {
      let decoder = try Self.decoder()
      #expect(try decoder.decode(units[0]).count == 1)
      #expect(failure { try bytes.withUnsafeBytes { try decoder.decode(avcc: $0, timestamp: .zero) } } != nil)
      #expect(decoder.needsKeyFrame && decoder.counts.refused == 1 && decoder.counts.accessUnits == 2)
      guard case .awaitsKeyFrame? = failure({ try decoder.decode(units[1]) }) else {
        Issue.record("the loss is not known")
        return
      }
    }
  }

  @Test(
    arguments: [
      ["-pix_fmt", "yuv422p", "-profile:v", "high422"], ["-pix_fmt", "yuv420p10le", "-profile:v", "high10"],
      ["-pix_fmt", "yuv444p", "-profile:v", "high444"],
    ])
  func `samples that are not delivered are refused by name`(arguments: [String]) throws {
    let clip = try ClipStream(size: Self.size, frames: 1, arguments)
    let decoder = try Self.decoder()
    let unit = try #require(accessUnits(of: clip.stream).first)
    guard case .samples? = failure({ try decoder.decode(unit) }) else {
      Issue.record("they are taken")
      return
    }
  }
}
