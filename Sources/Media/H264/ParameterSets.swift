/// A stream's sequence and picture parameter set, which a decoder needs before the first picture.
public struct ParameterSets: Hashable, Sendable {
  /// The SPS as a NAL unit: header byte first, no start code.
  public let sequence: [UInt8]
  /// The PPS as a NAL unit: header byte first, no start code.
  public let picture: [UInt8]

  /// The size limit of a parameter set in bytes; real ones have about forty.
  public static let lengthLimit = 1024

  /// Creates a pair of parameter sets; nil where either is no SPS or PPS, or longer than ``lengthLimit``.
  public init?(sequence: [UInt8], picture: [UInt8]) {
    guard (4...Self.lengthLimit).contains(sequence.count), sequence[0] & 0x1f == 7,
      (2...Self.lengthLimit).contains(picture.count), picture[0] & 0x1f == 8
    else { return nil }
    self.sequence = sequence
    self.picture = picture
  }

  /// `profile_idc`, the constraint flags and `level_idc` as six hexadecimal digits: RFC 6184 `profile-level-id`.
  public var profileLevelID: String { Self.hexadecimal(sequence[1...3]) }

  /// Returns ``profileLevelID`` for a decoder that must support `profile` too, with the level of these sets. A stream whose
  /// later sets have that profile is then described truthfully: the decoders of a greater profile decode the lesser ones.
  /// Nil, and a profile that these sets have or exceed, give their own.
  public func profileLevelID(of profile: H264Profile?) -> String {
    guard let profile, profile.indication > sequence[1] else { return profileLevelID }
    return Self.hexadecimal([profile.indication, 0, sequence[3]])
  }

  private static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789ABCDEF")
    return String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
  }
}
