public import Media
public import Platform

/// An error of a decoder. After each of them the decoder goes on: the next clean key frame plays.
public enum DecoderError: Failure {
  /// A value of the configuration is impossible.
  case configuration(String)
  /// No decoder opens, or the one that was asked for does not.
  case unavailable(String)
  /// The stream announces pictures that exceed the limits. No memory was taken for them.
  case pictureSize(PictureSize, limit: String)
  /// The access unit is larger than the limit. It was not read.
  case accessUnitSize(Int, limit: Int)
  /// The access unit has more NAL units than the limit.
  case nalUnits(Int, limit: Int)
  /// The lengths of NAL units do not fit the access unit.
  case format(NALUnitFormatError)
  /// A parameter set is invalid.
  case parameterSet(ParameterSetError)
  /// The pictures have samples that this decoder does not deliver: other than 8-bit 4:2:0 or grey.
  case samples(String)
  /// The picture refers to parameter sets that have not come.
  case missingParameterSets
  /// The picture refers to one that has not come, or whose data are damaged. It was not shown.
  case missingReference
  /// The decoder waits for a key frame. The picture was not decoded.
  case awaitsKeyFrame
  /// The access unit is damaged, as its sender or the decoder says. It was not shown.
  case damaged(String)
  /// The hardware failed. Software decodes from the next key frame on.
  case hardware(String)
  /// The picture's memory cannot be given to another device, for this reason.
  case notExported(String)
  /// The system has no memory for the picture.
  case memory
  /// The decoder was invalidated.
  case invalidated

  /// A one-line message for the terminal.
  public var description: String {
    switch self {
    case .configuration(let reason), .unavailable(let reason): reason
    case .pictureSize(let size, let limit): "pictures of \(size): \(limit)"
    case .accessUnitSize(let count, let limit): "an access unit of \(count) bytes: at most \(limit) are decoded"
    case .nalUnits(let count, let limit): "an access unit of \(count) NAL units: at most \(limit) are decoded"
    case .format(let error): error.description
    case .parameterSet(let error): error.description
    case .samples(let reason): "\(reason): 8-bit 4:2:0 and grey are decoded"
    case .missingParameterSets: "a picture whose parameter sets have not come: wait for a key frame"
    case .missingReference: "a picture whose reference is missing: wait for a key frame"
    case .awaitsKeyFrame: "a picture before the first key frame: wait for a key frame"
    case .damaged(let reason): "a damaged picture (\(reason)): wait for a key frame"
    case .hardware(let reason): "the hardware decoder failed (\(reason)); software goes on at the next key frame"
    case .notExported(let reason): "the picture has no DMA-BUF: \(reason)"
    case .memory: "no memory for a picture: choose lower limits"
    case .invalidated: "the decoder was invalidated"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind {
    switch self {
    case .configuration: .usage
    case .unavailable, .hardware, .notExported: .unavailable
    case .pictureSize, .accessUnitSize, .nalUnits, .format, .parameterSet, .samples, .missingParameterSets,
      .missingReference, .awaitsKeyFrame, .damaged:
      .data
    case .memory: .system
    case .invalidated: .software
    }
  }

  /// `true` if a key frame of the sender helps: a receiver asks for one (PLI).
  public var needsKeyFrame: Bool {
    switch self {
    case .parameterSet, .missingParameterSets, .missingReference, .awaitsKeyFrame, .damaged, .hardware,
      .accessUnitSize, .nalUnits, .format:
      true
    default: false
    }
  }
}
