import Adaptors
import Media
import Platform

/// A stream of macroblocks that state their samples (`I_PCM`), in frames or in pairs of fields, which x264 does not make. What a
/// decoder must show is known without one.
struct PCMStream {
  /// Macroblocks of a picture or of a field: two in a row.
  static let macroblocks = 8

  /// The size of the pictures.
  let size: PictureSize
  /// The NAL units of the slices of each frame, or of each field.
  private(set) var pictures: [[[UInt8]]] = []
  /// The parameter sets, as a byte stream.
  let sets: [UInt8]
  private let isField: Bool
  private let slices: Int

  /// Writes `frames` frames. Every third one is a key frame.
  init(frames: Int, slices: Int, isField: Bool) {
    (self.isField, self.slices) = (isField, slices)
    let rows = Self.macroblocks / 2
    size = PictureSize(width: 32, height: rows * 16 * (isField ? 2 : 1))
    var writer = BitWriter()
    writer.begin(header: 0x67)
    writer.bits(77, 8)
    writer.bits(0, 8)
    writer.bits(30, 8)
    // Numbers of frames of 4 bits, and orders of 8.
    for value in [0, 0, 0, 4, 1] as [UInt32] { writer.unsigned(value) }
    writer.flag(false)
    writer.unsigned(1)
    writer.unsigned(UInt32(rows - 1))
    writer.flag(!isField)
    if isField { writer.flag(false) }
    writer.bits(0b100, 3)
    writer.trailingBits()
    writer.begin(header: 0x68)
    writer.bits(0b11_00_111_0, 8)
    writer.bits(0b00_111_100, 8)
    writer.trailingBits()
    sets = writer.bytes
    for frame in 0..<frames {
      for field in 0..<(isField ? 2 : 1) { pictures.append(Self.slices(frame, field, slices, isField)) }
    }
  }

  private static func slices(_ frame: Int, _ field: Int, _ slices: Int, _ isField: Bool) -> [[UInt8]] {
    let count = macroblocks / slices
    return (0..<slices).map { slice in
      var writer = BitWriter()
      let isIDR = frame % 3 == 0 && field == 0
      writer.begin(header: isIDR ? 0x65 : 0x41)
      for value in [slice * count, 7, 0] { writer.unsigned(UInt32(value)) }
      writer.bits(UInt32(frame % 3), 4)
      if isField {
        writer.flag(true)
        writer.flag(field == 1)
      }
      if isIDR { writer.unsigned(UInt32(frame / 3 % 2)) }
      writer.bits(UInt32(frame % 3 * 2 + field), 8)
      writer.bits(0, isIDR ? 2 : 1)
      writer.signed(0)
      // No deblocking.
      writer.unsigned(1)
      for macroblock in slice * count..<(slice + 1) * count {
        writer.unsigned(25)
        while writer.bitCount % 8 != 0 { writer.flag(false) }
        let value = sample(frame, field, macroblock)
        for index in 0..<384 { writer.bits(UInt32(index < 256 ? value : value / 2), 8) }
      }
      writer.trailingBits()
      return Array(writer.bytes.dropFirst(4))
    }
  }

  private static func sample(_ frame: Int, _ field: Int, _ macroblock: Int) -> Int {
    40 + frame * 16 + field * 8 + macroblock
  }

  /// The samples of a frame in NV12.
  func picture(_ frame: Int) -> [UInt8] {
    func value(_ x: Int, _ y: Int) -> Int {
      let (line, field) = isField ? (y / 2, y % 2) : (y, 0)
      return Self.sample(frame, field, line / 16 * 2 + x / 16)
    }
    let luma = (0..<size.height).flatMap { y in (0..<size.width).map { UInt8(value($0, y)) } }
    let chroma = (0..<size.height / 2).flatMap { row in
      // A line of chroma belongs to the field of its own number.
      (0..<size.width).map { x in
        let y = isField ? row / 2 * 4 + row % 2 : row * 2
        return UInt8(value(x / 2 * 2, y) / 2)
      }
    }
    return luma + chroma
  }

  /// The access units, one for each frame or field, of which slice `lost` of picture `of` is missing. With `joined` both fields
  /// of a frame are one access unit.
  func units(without lost: Int? = nil, of picture: Int = 0, joined: Bool = false) -> [EncodedPicture] {
    let parts = pictures.enumerated().map { index, slices in
      slices.enumerated().filter { index != picture || $0.offset != lost }.flatMap { AnnexB.startCode + $0.element }
    }
    let count = joined && isField ? 2 : 1
    return stride(from: 0, to: parts.count, by: count).map { index in
      let frame = index / (isField ? 2 : 1)
      let isKey = index % (isField ? 6 : 3) == 0
      return EncodedPicture(
        annexB: (isKey ? sets : []) + parts[index..<index + count].flatMap(\.self),
        timestamp: Instant(nanoseconds: Int64(frame)))
    }
  }
}
