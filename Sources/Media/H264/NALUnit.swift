import Glibc

/// `nal_unit_type`, ITU-T H.264 table 7-1: the types that this program uses.
public struct NALUnitType: RawRepresentable, Hashable, Sendable {
  /// The five bits of the NAL unit header.
  public let rawValue: UInt8

  /// Creates a type from its five bits.
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

/// A NAL unit with lent bytes: header first, without start code or length, with emulation prevention. ``type`` and
/// ``referenceIDC`` read the header of H.264; ``HEVCNALUnitHeader`` reads that of HEVC.
public struct NALUnit {
  /// The bytes, header included; never empty.
  public let bytes: UnsafeRawBufferPointer

  /// Creates a NAL unit from `bytes`, which the caller keeps for as long as this value is used; nil where `bytes` is
  /// empty.
  @inlinable
  public init?(_ bytes: UnsafeRawBufferPointer) {
    guard !bytes.isEmpty else { return nil }
    self.bytes = bytes
  }

  /// The NAL unit's type in H.264.
  @inlinable
  public var type: NALUnitType { NALUnitType(rawValue: bytes[0]) }

  /// `nal_ref_idc` of H.264, 0…3.
  @inlinable
  public var referenceIDC: UInt8 { (bytes[0] >> 5) & 3 }
}

/// The byte stream format of ITU-T H.264 and H.265, Annex B of both.
public enum AnnexB {
  /// The start code written before every NAL unit.
  public static let startCode: [UInt8] = [0, 0, 0, 1]

  /// Calls `body` with each NAL unit of a byte stream, in order, without leading and trailing zero bytes.
  ///
  /// - Throws: Any error of `body`; the later NAL units are not visited.
  @inlinable
  public static func forEachNALUnit<E: Error>(
    in stream: UnsafeRawBufferPointer, _ body: (NALUnit) throws(E) -> Void
  ) throws(E) {
    var start = startCode(in: stream, from: 0)
    while let code = start {
      let begin = code + 3
      start = startCode(in: stream, from: begin)
      var end = start ?? stream.count
      while end > begin, stream[end - 1] == 0 { end -= 1 }
      if let unit = NALUnit(UnsafeRawBufferPointer(rebasing: stream[begin..<end])) { try body(unit) }
    }
  }

  /// Returns the position of the next `00 00 01`. `memchr` finds the zeros, because a picture has tens of kilobytes.
  @usableFromInline
  static func startCode(in stream: UnsafeRawBufferPointer, from: Int) -> Int? {
    guard let base = stream.baseAddress else { return nil }
    var position = from
    while position + 3 <= stream.count {
      guard let zero = memchr(base + position, 0, stream.count - position - 2) else { return nil }
      position = UnsafeRawPointer(zero) - base
      if base.load(fromByteOffset: position + 1, as: UInt8.self) == 0,
        base.load(fromByteOffset: position + 2, as: UInt8.self) == 1
      {
        return position
      }
      position += 1
    }
    return nil
  }
}
