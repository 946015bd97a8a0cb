/// `nal_unit_type` of HEVC: ITU-T H.265 table 7-1, the types that this program uses. RFC 7798 adds two.
public struct HEVCNALUnitType: RawRepresentable, Hashable, Sendable {
  /// The six bits of the NAL unit header.
  public let rawValue: UInt8

  /// Creates a type from its six bits.
  public init(rawValue: UInt8) {
    self.rawValue = rawValue & 0x3f
  }

  /// Coded slice segment of a trailing picture that no picture of its sub-layer refers to.
  public static let trailN = HEVCNALUnitType(rawValue: 0)
  /// Coded slice segment of a trailing picture that others may refer to.
  public static let trailR = HEVCNALUnitType(rawValue: 1)
  /// Coded slice segment of a RADL picture without references to it: a leading picture that decodes after its IRAP picture.
  public static let radlN = HEVCNALUnitType(rawValue: 6)
  /// Coded slice segment of a RADL picture that others may refer to.
  public static let radlR = HEVCNALUnitType(rawValue: 7)
  /// Coded slice segment of a RASL picture without references to it: a leading picture that refers to pictures before its
  /// CRA picture.
  public static let raslN = HEVCNALUnitType(rawValue: 8)
  /// Coded slice segment of a RASL picture that others may refer to.
  public static let raslR = HEVCNALUnitType(rawValue: 9)
  /// Coded slice segment of a BLA picture that may have leading pictures: the first of the IRAP types.
  public static let blaWLP = HEVCNALUnitType(rawValue: 16)
  /// Coded slice segment of a BLA picture that may have RADL pictures.
  public static let blaWRADL = HEVCNALUnitType(rawValue: 17)
  /// Coded slice segment of a BLA picture without leading pictures.
  public static let blaNLP = HEVCNALUnitType(rawValue: 18)
  /// Coded slice segment of an IDR picture that may have RADL pictures.
  public static let idrWRADL = HEVCNALUnitType(rawValue: 19)
  /// Coded slice segment of an IDR picture without leading pictures.
  public static let idrNLP = HEVCNALUnitType(rawValue: 20)
  /// Coded slice segment of a CRA picture.
  public static let cra = HEVCNALUnitType(rawValue: 21)
  /// Video parameter set.
  public static let videoParameterSet = HEVCNALUnitType(rawValue: 32)
  /// Sequence parameter set.
  public static let sequenceParameterSet = HEVCNALUnitType(rawValue: 33)
  /// Picture parameter set.
  public static let pictureParameterSet = HEVCNALUnitType(rawValue: 34)
  /// Access unit delimiter.
  public static let accessUnitDelimiter = HEVCNALUnitType(rawValue: 35)
  /// End of sequence: the next picture is an IRAP picture that refers to none before.
  public static let endOfSequence = HEVCNALUnitType(rawValue: 36)
  /// End of bitstream.
  public static let endOfBitstream = HEVCNALUnitType(rawValue: 37)
  /// Filler data.
  public static let fillerData = HEVCNALUnitType(rawValue: 38)
  /// Supplemental enhancement information before a picture's slices.
  public static let prefixSupplementalEnhancementInformation = HEVCNALUnitType(rawValue: 39)
  /// Supplemental enhancement information behind a picture's first slice.
  public static let suffixSupplementalEnhancementInformation = HEVCNALUnitType(rawValue: 40)
  /// Aggregation packet, RFC 7798 section 4.4.2.
  public static let aggregationPacket = HEVCNALUnitType(rawValue: 48)
  /// Fragmentation unit, RFC 7798 section 4.4.3.
  public static let fragmentationUnit = HEVCNALUnitType(rawValue: 49)

  /// `true` for the types of coded slice segments, 0…9 and 16…21. Decoders ignore the reserved ones (clause 7.4.2.2).
  public var isSlice: Bool { rawValue < 10 || isKeyFrame }

  /// `true` for an IRAP picture (16…21): a decoder can start there.
  public var isKeyFrame: Bool { (16...21).contains(rawValue) }

  /// `true` for an IDR picture.
  public var isIDR: Bool { self == .idrWRADL || self == .idrNLP }

  /// `true` for a RASL picture, which does not decode if decoding starts at its CRA picture.
  public var isRASL: Bool { self == .raslN || self == .raslR }

  /// `true` for a picture that no other picture of its sub-layer refers to: the even types up to 14.
  public var isSubLayerNonReference: Bool { rawValue < 16 && rawValue.isMultiple(of: 2) }
}

/// The two bytes at the beginning of a NAL unit of HEVC, ITU-T H.265 clause 7.3.1.2.
public struct HEVCNALUnitHeader: Hashable, Sendable {
  /// The size of the header in bytes.
  public static let byteCount = 2

  /// `nal_unit_type`.
  public var type: HEVCNALUnitType
  /// `nuh_layer_id`, 0…63; 0 is the base layer.
  public var layerID: UInt8
  /// `nuh_temporal_id_plus1` − 1, 0…6.
  public var temporalID: UInt8

  /// Creates a header of these values.
  public init(type: HEVCNALUnitType, layerID: UInt8 = 0, temporalID: UInt8 = 0) {
    self.type = type
    self.layerID = layerID & 0x3f
    self.temporalID = min(temporalID, 6)
  }

  /// Reads the header of `unit`. Nil where the NAL unit is shorter, `forbidden_zero_bit` is set, or
  /// `nuh_temporal_id_plus1` is zero. Allocates nothing.
  @inlinable
  public init?(_ unit: NALUnit) { self.init(unit.bytes) }

  /// Reads the header at the start of `bytes`, as ``init(_:)-(NALUnit)``.
  @inlinable
  public init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= 2, bytes[0] & 0x80 == 0, bytes[1] & 7 != 0 else { return nil }
    self.init(
      type: HEVCNALUnitType(rawValue: bytes[0] >> 1), layerID: (bytes[0] & 1) << 5 | bytes[1] >> 3,
      temporalID: (bytes[1] & 7) - 1)
  }

  /// The header's first and second byte.
  public var bytes: (UInt8, UInt8) { (type.rawValue << 1 | layerID >> 5, layerID << 3 | (temporalID + 1)) }
}
