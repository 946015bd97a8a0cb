/// A video codec of a coded stream.
public enum VideoCodec: String, CaseIterable, Sendable {
  /// ITU-T H.264, ISO/IEC 14496-10 (AVC).
  case h264
  /// ITU-T H.265, ISO/IEC 23008-2 (HEVC).
  case hevc

  /// The name for people: `H.264`, `HEVC`.
  public var title: String {
    switch self {
    case .h264: "H.264"
    case .hevc: "HEVC"
    }
  }
}

/// The part that a NAL unit plays in an access unit, whatever the codec.
public enum NALUnitRole: Hashable, Sendable {
  /// An access unit delimiter, which precedes all other NAL units of a picture.
  case accessUnitDelimiter
  /// A parameter set of the stream.
  case parameterSet(ParameterSetKind)
  /// A slice of a picture at which a decoder can start: IDR in H.264, IRAP in HEVC.
  case keyFrameSlice
  /// A slice of another picture.
  case slice
  /// Any other NAL unit, and one with a broken header.
  case other
}

/// A kind of parameter set, in the order in which a decoder needs them.
public enum ParameterSetKind: Int, CaseIterable, Sendable {
  /// The video parameter set (VPS), which only HEVC has.
  case video
  /// The sequence parameter set (SPS).
  case sequence
  /// The picture parameter set (PPS).
  case picture
}

extension VideoCodec {
  /// Returns the part that `unit` plays in a stream of this codec. Of HEVC, NAL units of further layers are ``NALUnitRole/other``.
  public func role(of unit: NALUnit) -> NALUnitRole {
    switch self {
    case .h264:
      switch unit.type {
      case .sequenceParameterSet: .parameterSet(.sequence)
      case .pictureParameterSet: .parameterSet(.picture)
      case .accessUnitDelimiter: .accessUnitDelimiter
      case .idrSlice: .keyFrameSlice
      case .nonIDRSlice: .slice
      default: .other
      }
    case .hevc:
      HEVCNALUnitHeader(unit).map(Self.role) ?? .other
    }
  }

  private static func role(of header: HEVCNALUnitHeader) -> NALUnitRole {
    guard header.layerID == 0 else { return .other }
    switch header.type {
    case .videoParameterSet: return .parameterSet(.video)
    case .sequenceParameterSet: return .parameterSet(.sequence)
    case .pictureParameterSet: return .parameterSet(.picture)
    case .accessUnitDelimiter: return .accessUnitDelimiter
    default: return header.type.isKeyFrame ? .keyFrameSlice : header.type.isSlice ? .slice : .other
    }
  }

  /// Returns `true` if a decoder can start at the picture of `unit`: the NAL unit is a slice of an IDR picture in H.264, of
  /// an IRAP picture in HEVC.
  public func isKeyFrame(_ unit: NALUnit) -> Bool { role(of: unit) == .keyFrameSlice }

  /// `true` if a stream of this codec has video parameter sets.
  public var hasVideoParameterSet: Bool { self == .hevc }
}
