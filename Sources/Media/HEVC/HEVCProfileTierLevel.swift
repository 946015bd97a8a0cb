/// The profile, tier and level of a stream or of its sub-layers: `profile_tier_level()`, ITU-T H.265 clause 7.3.3.
public struct HEVCProfileTierLevel: Hashable, Sendable {
  /// `general_profile_space`, 0…3; decoders ignore streams of another one than 0.
  public var profileSpace: UInt8
  /// `general_tier_flag`: `true` for the High tier, `false` for the Main tier.
  public var isHighTier: Bool
  /// `general_profile_idc`, 0…31: 1 is Main, 2 is Main 10.
  public var profileIDC: UInt8
  /// `general_profile_compatibility_flag[0]` (highest bit) to `[31]`.
  public var compatibilityFlags: UInt32
  /// The 48 bits from `general_progressive_source_flag` to `general_reserved_zero_bit`, in the lower bits.
  public var constraintFlags: UInt64
  /// `general_level_idc`: thirty times the level.
  public var levelIDC: UInt8

  /// Creates a value of these fields.
  public init(
    profileSpace: UInt8 = 0, isHighTier: Bool, profileIDC: UInt8, compatibilityFlags: UInt32, constraintFlags: UInt64,
    levelIDC: UInt8
  ) {
    self.profileSpace = profileSpace & 3
    self.isHighTier = isHighTier
    self.profileIDC = profileIDC & 0x1f
    self.compatibilityFlags = compatibilityFlags
    self.constraintFlags = constraintFlags & 0xffff_ffff_ffff
    self.levelIDC = levelIDC
  }

  /// Returns the Main profile for progressive frames: its decoders decode Main 10 as well, so both flags are set.
  public static func main(levelIDC: UInt8, isHighTier: Bool = false) -> HEVCProfileTierLevel {
    // Progressive source, and frames only.
    HEVCProfileTierLevel(
      isHighTier: isHighTier, profileIDC: 1, compatibilityFlags: 0x6000_0000, constraintFlags: 0x9000_0000_0000,
      levelIDC: levelIDC)
  }

  /// The number of bits of the general part.
  static let bitCount = 96

  /// Reads the general part, and skips the sub-layers' parts of `subLayers` temporal sub-layers, 1…7.
  init(_ reader: inout BitReader, subLayers: Int) throws(ParameterSetError) {
    profileSpace = UInt8(try reader.bits(2))
    isHighTier = try reader.flag()
    profileIDC = UInt8(try reader.bits(5))
    compatibilityFlags = try reader.bits(32)
    let upper = UInt64(try reader.bits(24))
    constraintFlags = upper << 24 | UInt64(try reader.bits(24))
    levelIDC = UInt8(try reader.bits(8))
    guard subLayers > 1 else { return }
    var present: [(profile: Bool, level: Bool)] = []
    for _ in 0..<subLayers - 1 { present.append((try reader.flag(), try reader.flag())) }
    for _ in subLayers - 1..<8 { _ = try reader.bits(2) }
    for part in present {
      if part.profile { for _ in 0..<11 { _ = try reader.bits(8) } }
      if part.level { _ = try reader.bits(8) }
    }
  }

  /// Writes `profile_tier_level()` of a stream with one temporal sub-layer.
  func write(to writer: inout BitWriter) {
    for byte in bytes { writer.bits(UInt32(byte), 8) }
  }

  /// The twelve bytes of the general part, as a parameter set and a decoder configuration have them.
  public var bytes: [UInt8] {
    [profileSpace << 6 | (isHighTier ? 0x20 : 0) | profileIDC]
      + (0..<4).map { UInt8(truncatingIfNeeded: compatibilityFlags >> UInt32(24 - 8 * $0)) }
      + (0..<6).map { UInt8(truncatingIfNeeded: constraintFlags >> UInt64(40 - 8 * $0)) } + [levelIDC]
  }

  /// Returns a VPS or SPS with another level and tier in its general part: an encoder that knows its bitrate only later writes
  /// a wrong one.
  ///
  /// - Parameters:
  ///   - nalUnit: The NAL unit, header first.
  ///   - levelIDC: The new `general_level_idc`.
  ///   - isHighTier: The new `general_tier_flag`.
  /// - Throws: ``ParameterSetError`` where `nalUnit` is neither VPS nor SPS, or too short.
  public static func replacingLevel(
    in nalUnit: [UInt8], levelIDC: UInt8, isHighTier: Bool
  ) throws(ParameterSetError) -> [UInt8] {
    // A VPS has 32 bits before the structure, an SPS 8.
    let start =
      switch HEVCParameterSetReading.kind(of: nalUnit) {
      case .video?: 4
      case .sequence?: 1
      default: throw ParameterSetError.notSequenceParameterSet
      }
    var payload = RawByteSequencePayload.removingEmulationPrevention(nalUnit.dropFirst(HEVCNALUnitHeader.byteCount))
    guard payload.count > start + bitCount / 8 else { throw .truncated }
    payload[start] = payload[start] & ~0x20 | (isHighTier ? 0x20 : 0)
    payload[start + bitCount / 8 - 1] = levelIDC
    return nalUnit.prefix(HEVCNALUnitHeader.byteCount) + RawByteSequencePayload.addingEmulationPrevention(payload)
  }

  /// The level as text: `3.1`.
  public var level: String {
    let (whole, rest) = (levelIDC / 30, levelIDC % 30)
    return rest.isMultiple(of: 3) ? (rest == 0 ? "\(whole)" : "\(whole).\(rest / 3)") : "\(levelIDC)/30"
  }
}

/// The reading that the parameter sets of HEVC have in common.
enum HEVCParameterSetReading {
  /// Returns the kind of a parameter set of the base layer; nil for any other NAL unit.
  static func kind(of nalUnit: [UInt8]) -> ParameterSetKind? {
    nalUnit.withUnsafeBytes { bytes in
      guard let unit = NALUnit(bytes), case .parameterSet(let kind) = VideoCodec.hevc.role(of: unit) else { return nil }
      return kind
    }
  }

  /// Returns a reader behind the header of a parameter set of this kind.
  static func reader(_ nalUnit: [UInt8], _ kind: ParameterSetKind) throws(ParameterSetError) -> BitReader {
    guard Self.kind(of: nalUnit) == kind, nalUnit.count <= ParameterSets.lengthLimit else {
      switch kind {
      case .video: throw .notVideoParameterSet
      case .sequence: throw .notSequenceParameterSet
      case .picture: throw .notPictureParameterSet
      }
    }
    return BitReader(
      RawByteSequencePayload.removingEmulationPrevention(nalUnit.dropFirst(HEVCNALUnitHeader.byteCount)))
  }
}

extension BitReader {
  /// Skips `count` bits.
  mutating func skip(_ count: Int) throws(ParameterSetError) {
    var rest = count
    while rest > 0 {
      _ = try bits(min(rest, 32))
      rest -= 32
    }
  }
}
