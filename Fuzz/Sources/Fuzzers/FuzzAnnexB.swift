import Adaptors
import Media
import Platform

/// Any bytes as a byte stream, in chunks whose size is the first byte: the NAL units that come out are those that go in, and
/// memory is bounded.
enum FuzzAnnexB {
  static func take(_ input: UnsafeRawBufferPointer) {
    for codec in VideoCodec.allCases { take(input, codec) }
  }

  static func take(_ input: UnsafeRawBufferPointer, _ codec: VideoCodec) {
    guard let first = input.first else { return }
    let stream = UnsafeRawBufferPointer(rebasing: input.dropFirst())
    var expected: [[UInt8]] = []
    AnnexB.forEachNALUnit(in: stream) { expected.append(Array($0.bytes)) }
    var found: [[UInt8]] = []
    var reader = AnnexBReader(codec: codec, limits: .init(unitBytes: 4096))
    func note(_ unit: EncodedPicture) {
      precondition(unit.annexB.count <= 4096 + 128)
      unit.annexB.withUnsafeBytes { bytes in AnnexB.forEachNALUnit(in: bytes) { found.append(Array($0.bytes)) } }
    }
    var rest = stream[...]
    while !rest.isEmpty {
      let part = rest.prefix(Int(first) + 1)
      reader.append(UnsafeRawBufferPointer(rebasing: part), timestamp: .zero) { note($0) }
      rest = rest.dropFirst(part.count)
    }
    reader.finish { note($0) }
    precondition(reader.memoryBytes < 65_536)
    precondition(reader.counts.nalUnitsRefused > 0 || found == expected, "NAL units came out otherwise")
  }
}
