/// `nal_unit_type`, ITU-T H.264 table 7-1: the ones this program meets.
public struct NALUnitType: RawRepresentable, Hashable, Sendable {
  /// The five bits of the NAL unit header.
  public let rawValue: UInt8

  /// A type from its five bits.
  public init(rawValue: UInt8) {
    self.rawValue = rawValue & 0x1f
  }

  /// Coded slice of a non-IDR picture.
  public static let nonIDRSlice = NALUnitType(rawValue: 1)
  /// Coded slice of an IDR picture.
  public static let idrSlice = NALUnitType(rawValue: 5)
  /// Supplemental enhancement information.
  public static let supplementalEnhancementInformation = NALUnitType(rawValue: 6)
  /// Sequence parameter set.
  public static let sequenceParameterSet = NALUnitType(rawValue: 7)
  /// Picture parameter set.
  public static let pictureParameterSet = NALUnitType(rawValue: 8)
  /// Access unit delimiter.
  public static let accessUnitDelimiter = NALUnitType(rawValue: 9)
  /// STAP-A, RFC 6184 section 5.7.1.
  public static let singleTimeAggregationA = NALUnitType(rawValue: 24)
  /// FU-A, RFC 6184 section 5.8.
  public static let fragmentationUnitA = NALUnitType(rawValue: 28)
}

/// One NAL unit, its bytes lent: header byte first, without start code or length, emulation prevention in place.
public struct NALUnit {
  /// The bytes, header included; never empty.
  public let bytes: UnsafeRawBufferPointer

  /// The NAL unit in `bytes`, which the caller keeps for as long as this value is used; nil where there is none.
  @inlinable
  public init?(_ bytes: UnsafeRawBufferPointer) {
    guard !bytes.isEmpty else { return nil }
    self.bytes = bytes
  }

  /// What it holds.
  @inlinable
  public var type: NALUnitType { NALUnitType(rawValue: bytes[0]) }

  /// `nal_ref_idc`, 0…3.
  @inlinable
  public var referenceIDC: UInt8 { (bytes[0] >> 5) & 3 }
}

/// The byte stream format of ITU-T H.264 Annex B.
public enum AnnexB {
  /// The start code that is written before every NAL unit.
  public static let startCode: [UInt8] = [0, 0, 0, 1]

  /// Calls `body` with each NAL unit of a byte stream, in order; leading and trailing zero bytes are not part of it.
  public static func forEachNALUnit<E: Error>(
    in stream: UnsafeRawBufferPointer, _ body: (NALUnit) throws(E) -> Void
  ) throws(E) {
    var start = nextStartCode(in: stream, from: 0)?.end
    while let begin = start {
      let next = nextStartCode(in: stream, from: begin)
      var end = next?.begin ?? stream.count
      while end > begin, stream[end - 1] == 0 { end -= 1 }
      if let unit = NALUnit(UnsafeRawBufferPointer(rebasing: stream[begin..<end])) { try body(unit) }
      start = next?.end
    }
  }

  /// Where the next `00 00 01` begins and ends.
  private static func nextStartCode(in stream: UnsafeRawBufferPointer, from: Int) -> (begin: Int, end: Int)? {
    var index = from
    while index + 3 <= stream.count {
      // A byte above 1 in third place cannot be part of a start code: step over all three.
      if stream[index + 2] > 1 {
        index += 3
      } else if stream[index] == 0, stream[index + 1] == 0, stream[index + 2] == 1 {
        return (index, index + 3)
      } else {
        index += 1
      }
    }
    return nil
  }
}
