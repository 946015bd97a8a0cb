/// A stream's parameter sets, which a decoder needs before the first picture: SPS and PPS of H.264; VPS, SPS and PPS of
/// HEVC.
public struct ParameterSets: Hashable, Sendable {
  /// The codec of the stream.
  public let codec: VideoCodec
  /// The VPS as a NAL unit: header first, no start code. Empty for H.264.
  public let video: [UInt8]
  /// The SPS as a NAL unit: header first, no start code.
  public let sequence: [UInt8]
  /// The PPS as a NAL unit: header first, no start code.
  public let picture: [UInt8]

  /// The size limit of a parameter set in bytes; real ones have about forty.
  public static let lengthLimit = 1024

  /// Creates the parameter sets of H.264; nil where either is no SPS or PPS, or longer than ``lengthLimit``.
  public init?(sequence: [UInt8], picture: [UInt8]) {
    guard (4...Self.lengthLimit).contains(sequence.count), sequence[0] & 0x1f == 7,
      (2...Self.lengthLimit).contains(picture.count), picture[0] & 0x1f == 8
    else { return nil }
    codec = .h264
    video = []
    self.sequence = sequence
    self.picture = picture
  }

  /// Creates the parameter sets of HEVC; nil where one of them is no VPS, SPS or PPS of the base layer, or longer than
  /// ``lengthLimit``.
  public init?(video: [UInt8], sequence: [UInt8], picture: [UInt8]) {
    func isKind(_ kind: ParameterSetKind, _ unit: [UInt8]) -> Bool {
      (3...Self.lengthLimit).contains(unit.count)
        && unit.withUnsafeBytes { NALUnit($0).map { VideoCodec.hevc.role(of: $0) == .parameterSet(kind) } ?? false }
    }
    guard isKind(.video, video), isKind(.sequence, sequence), isKind(.picture, picture) else { return nil }
    codec = .hevc
    self.video = video
    self.sequence = sequence
    self.picture = picture
  }

  /// Creates the parameter sets of `codec`, which has a VPS or none, as the initializer of that codec.
  package init?(_ codec: VideoCodec, video: [UInt8], sequence: [UInt8], picture: [UInt8]) {
    switch codec {
    case .h264: self.init(sequence: sequence, picture: picture)
    case .hevc: self.init(video: video, sequence: sequence, picture: picture)
    }
  }

  /// Creates the first parameter sets in a byte stream, one of each kind; nil where one is missing.
  package init?(_ codec: VideoCodec, firstIn stream: UnsafeRawBufferPointer) {
    var sets: [ParameterSetKind: [UInt8]] = [:]
    AnnexB.forEachNALUnit(in: stream) { unit in
      guard case .parameterSet(let kind) = codec.role(of: unit), sets[kind] == nil else { return }
      sets[kind] = Array(unit.bytes)
    }
    self.init(codec, video: sets[.video] ?? [], sequence: sets[.sequence] ?? [], picture: sets[.picture] ?? [])
  }

  /// The parameter sets in the order in which a decoder needs them: two of H.264, three of HEVC.
  public var nalUnits: [[UInt8]] { codec == .hevc ? [video, sequence, picture] : [sequence, picture] }

  /// Of H.264, `profile_idc`, the constraint flags and `level_idc` as six hexadecimal digits: RFC 6184 `profile-level-id`.
  /// Without a meaning for HEVC.
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
