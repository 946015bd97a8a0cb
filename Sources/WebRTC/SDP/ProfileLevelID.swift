/// The profile that a `profile-level-id` names, RFC 6184 section 8.1.
package enum ProfileLevelID: Hashable, Sendable {
  case constrainedBaseline, baseline, main, extended, constrainedHigh, high, highPredictive444

  /// Reads a `profile-level-id`: three bytes in hexadecimal digits. `nil` for another text, and for profiles that no
  /// browser has.
  package init?(_ text: some StringProtocol) {
    guard text.utf8.count == 6, let value = UInt32(text, radix: 16) else { return nil }
    let flags = UInt8(truncatingIfNeeded: value >> 8)
    // The first constraint flag is the highest bit (H.264 clause 7.4.2.1.1, RFC 6184 table 5).
    switch value >> 16 {
    case 0x42: self = flags & 0x40 != 0 ? .constrainedBaseline : .baseline
    case 0x4d: self = flags & 0x80 != 0 ? .constrainedBaseline : .main
    case 0x58: self = flags & 0xc0 == 0xc0 ? .constrainedBaseline : .extended
    case 0x64: self = flags & 0x0c == 0x0c ? .constrainedHigh : .high
    case 0xf4: self = .highPredictive444
    default: return nil
    }
  }

  /// Returns `true` if a decoder of this profile decodes a stream of `other` (H.264 annex A.2). A High stream of ours
  /// has neither fields nor B slices, and so is what a decoder of Constrained High takes.
  package func decodes(_ other: ProfileLevelID) -> Bool {
    if self == other { return true }
    return switch other {
    case .constrainedBaseline: true
    case .baseline: self == .extended
    case .main: self == .high || self == .highPredictive444
    case .constrainedHigh, .high: self == .constrainedHigh || self == .high || self == .highPredictive444
    case .extended, .highPredictive444: false
    }
  }
}
