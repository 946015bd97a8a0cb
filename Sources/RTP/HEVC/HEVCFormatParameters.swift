public import Media

/// The media configuration of HEVC in a session description: the parameters of `a=fmtp` that tell what a decoder must support
/// (RFC 7798 section 7.1).
public struct HEVCFormatParameters: Hashable, Sendable {
  /// `profile-space`, 0…3.
  public var profileSpace: UInt8
  /// `profile-id`, 0…31; 1 is Main.
  public var profileIDC: UInt8
  /// `tier-flag`: `true` for the High tier.
  public var isHighTier: Bool
  /// `level-id`: thirty times the level.
  public var levelIDC: UInt8
  /// `interop-constraints`: 48 bits; nil where they are not given.
  public var constraintFlags: UInt64?
  /// `profile-compatibility-indicator`: 32 bits, that of profile 0 the highest; nil where they are not given.
  public var compatibilityFlags: UInt32?
  /// `max-recv-level-id`: the highest level that can be received; nil for that of `level-id`.
  public var maximumLevelIDC: UInt8?
  /// `tx-mode`: `false` for several RTP streams of one bitstream, which nobody here sends or receives.
  public var isSingleStream: Bool
  /// `sprop-max-don-diff`: 0 where packets come in the order of decoding; others have decoding order numbers.
  public var maximumOrderDifference: Int

  /// Creates the configuration of a stream.
  public init(_ profile: HEVCProfileTierLevel) {
    profileSpace = profile.profileSpace
    profileIDC = profile.profileIDC
    isHighTier = profile.isHighTier
    levelIDC = profile.levelIDC
    constraintFlags = profile.constraintFlags
    compatibilityFlags = profile.compatibilityFlags
    maximumLevelIDC = nil
    isSingleStream = true
    maximumOrderDifference = 0
  }

  /// Reads a configuration; nil for an impossible value. What is missing has the defaults of section 7.1: Main profile, Main tier,
  /// level 3.1.
  ///
  /// - Parameter parameters: The values by their names in lower case.
  public init?(_ parameters: [String: String]) {
    func number(_ name: String, _ missing: Int, to limit: Int) -> Int? {
      guard let text = parameters[name] else { return missing }
      guard (1...5).contains(text.utf8.count), let value = Int(text), (0...limit).contains(value) else { return nil }
      return value
    }
    /// Returns bits of base16 digits; nil for an impossible value.
    func bits(_ name: String, digits: Int) -> UInt64?? {
      guard let text = parameters[name] else { return .some(nil) }
      guard (1...digits).contains(text.utf8.count), let value = UInt64(text, radix: 16), text.first != "+" else {
        return nil
      }
      // Zeros at the end may be left out.
      return value << UInt64(4 * (digits - text.utf8.count))
    }
    guard let space = number("profile-space", 0, to: 3), let profile = number("profile-id", 1, to: 31),
      let tier = number("tier-flag", 0, to: 1), let level = number("level-id", 93, to: 255),
      let highest = number("max-recv-level-id", 0, to: 255),
      let difference = number("sprop-max-don-diff", 0, to: 32767),
      let constraints = bits("interop-constraints", digits: 12),
      let compatibility = bits("profile-compatibility-indicator", digits: 8)
    else { return nil }
    (profileSpace, profileIDC, isHighTier, levelIDC) = (UInt8(space), UInt8(profile), tier == 1, UInt8(level))
    (constraintFlags, compatibilityFlags) = (constraints, compatibility.map { UInt32(truncatingIfNeeded: $0) })
    maximumLevelIDC = highest > level ? UInt8(highest) : nil
    isSingleStream = (parameters["tx-mode"] ?? "SRST").uppercased() == "SRST"
    maximumOrderDifference = difference
  }

  /// Returns `true` if a receiver of this configuration decodes `stream`: its profile is the same or one with which the stream is
  /// compatible, its tier and level are as high.
  public func decodes(_ stream: HEVCProfileTierLevel) -> Bool {
    let isCompatible = profileIDC == stream.profileIDC || stream.compatibilityFlags << UInt32(profileIDC) & 1 << 31 != 0
    return isSingleStream && profileSpace == stream.profileSpace && isCompatible
      && (isHighTier || !stream.isHighTier) && stream.levelIDC <= max(levelIDC, maximumLevelIDC ?? 0)
  }

  /// Returns the configuration of the answer to this offer, for a sender of `stream`: everything as offered, except for the level,
  /// which may be lower (RFC 7798 section 7.2.2).
  public func answer(for stream: HEVCProfileTierLevel) -> HEVCFormatParameters {
    var answer = self
    answer.levelIDC = min(levelIDC, stream.levelIDC)
    answer.maximumLevelIDC = nil
    return answer
  }

  /// The text for `a=fmtp`, without what is not given.
  public var text: String {
    var parts = [
      "profile-space=\(profileSpace)", "profile-id=\(profileIDC)", "tier-flag=\(isHighTier ? 1 : 0)",
      "level-id=\(levelIDC)",
    ]
    func hexadecimal(_ value: UInt64, digits: Int) -> String {
      let text = String(value, radix: 16, uppercase: true)
      return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }
    if let constraintFlags { parts.append("interop-constraints=\(hexadecimal(constraintFlags, digits: 12))") }
    if let compatibilityFlags {
      parts.append("profile-compatibility-indicator=\(hexadecimal(UInt64(compatibilityFlags), digits: 8))")
    }
    return parts.joined(separator: ";")
  }
}
