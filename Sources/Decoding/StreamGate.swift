import Adaptors
import Media

/// The check of every access unit before libavcodec reads it: sizes, announced picture sizes, kinds of samples, slices and
/// references that are missing.
///
/// Of all NAL units it passes on slices alone; the caller adds the parameter sets that they name.
enum StreamGate {
  case h264(H264Gate)
  case hevc(HEVCGate)

  /// The properties of a checked access unit.
  struct Passed {
    /// `true` for an IDR picture (H.264) or an IRAP picture (HEVC), at which a decoder can start.
    var isKeyFrame = false
    /// The recovery point, at which a decoder can start too; nil where there is none.
    var recoveryPoint: RecoveryPoint?
    /// The first slice of H.264, with its sequence; nil without slices, and for HEVC.
    var first: (slice: SliceSyntax, sequence: SequenceSyntax)?
    /// `true` if the first slice is of the second field of the frame whose first field came before.
    var isSecondField = false
    /// `true` if it has an SPS that is new (H.264), or is a key frame that names a new one (HEVC).
    var hasNewSequence = false
    /// `true` if the key frame follows an end of sequence: pictures that are held back belong to what has ended.
    var followsEnd = false
    /// The reason why a parameter set of it was refused; nil where none was.
    var refusal: DecoderError?
    /// `true` if a field came before whose frame stays without the other one.
    var leavesField = false
    /// The NAL units of the slices, in the memory of the access unit.
    var units: [UnsafeRawBufferPointer] = []
    /// The numbers of the PPS that the slices name.
    var pictureParameterSets: Set<Int> = []
    /// The last macroblocks, or coding tree blocks, of the slices, of each field.
    var ends: [SliceEnds] = []

    /// `true` if a picture has more than one slice.
    var isSliced: Bool { ends.contains(where: \.isSliced) }
  }

  /// Creates the gate of a stream that begins.
  init(_ codec: VideoCodec) {
    switch codec {
    case .h264: self = .h264(H264Gate())
    case .hevc: self = .hevc(HEVCGate())
    }
  }

  /// The codec of the stream.
  var codec: VideoCodec {
    switch self {
    case .h264: .h264
    case .hevc: .hevc
    }
  }

  /// `true` if a frame has its first field only.
  var awaitsField: Bool {
    switch self {
    case .h264(let gate): gate.awaitsField
    case .hevc: false
    }
  }

  /// Checks the NAL units of an access unit.
  ///
  /// A parameter set that is refused is forgotten, and so is the former one of its number, which later pictures no longer mean.
  ///
  /// - Throws: ``DecoderError``; of a set that is refused only where a slice names it. The sets that passed are known.
  mutating func check(
    _ bytes: UnsafeRawBufferPointer, _ configuration: VideoDecoder.Configuration
  ) throws(DecoderError) -> Passed {
    guard bytes.count <= configuration.maximumAccessUnitBytes else {
      throw .accessUnitSize(bytes.count, limit: configuration.maximumAccessUnitBytes)
    }
    switch self {
    case .h264(var gate):
      // The tables have one owner meanwhile, so that none is copied.
      self = .h264(H264Gate())
      defer { self = .h264(gate) }
      return try gate.check(bytes, configuration)
    case .hevc(var gate):
      self = .hevc(HEVCGate())
      defer { self = .hevc(gate) }
      return try gate.check(bytes, configuration)
    }
  }

  /// Forgets the references: a picture at which a decoder can start must come.
  mutating func restart() {
    switch self {
    case .h264(var gate):
      gate.restart()
      self = .h264(gate)
    case .hevc(var gate):
      gate.restart()
      self = .hevc(gate)
    }
  }

  /// Notes that the decoder begins anew at the key frame that was checked last. Pictures of HEVC that come after it and refer to
  /// pictures before it are left out.
  mutating func noteEntry() {
    switch self {
    case .h264: break
    case .hevc(var gate):
      gate.noteEntry()
      self = .hevc(gate)
    }
  }

  /// Returns the PPS of these numbers as a byte stream, with the sets that they name before them; nil where one is missing.
  func annexB(pictures: some Sequence<Int>) -> [UInt8]? {
    switch self {
    case .h264(let gate): gate.stored.annexB(pictures: pictures)
    case .hevc(let gate): gate.sets.annexB(pictures: pictures)
    }
  }

  /// Returns the SPS of this number as a byte stream, with its VPS; nil where one is missing.
  func annexB(sequence: Int) -> [UInt8]? {
    switch self {
    case .h264(let gate): gate.stored.annexB(sequence: sequence)
    case .hevc(let gate): gate.sets.annexB(sequence: sequence)
    }
  }

  /// Returns the SPS of the PPS of this number; nil where either is missing.
  func sequence(ofPicture identifier: Int) -> Int? {
    switch self {
    case .h264(let gate): gate.sequence(ofPicture: identifier)
    case .hevc(let gate): gate.sets.picture(identifier).map { Int($0.sequenceParameterSet) }
    }
  }

  /// Forgets a PPS, which libavcodec refuses.
  mutating func forget(picture identifier: Int) {
    switch self {
    case .h264(var gate):
      gate.forget(picture: identifier)
      self = .h264(gate)
    case .hevc(var gate):
      gate.forget(picture: identifier)
      self = .hevc(gate)
    }
  }

  /// Forgets an SPS and its PPS, which libavcodec refuses.
  mutating func forget(sequence identifier: Int) {
    switch self {
    case .h264(var gate):
      gate.forget(sequence: identifier)
      self = .h264(gate)
    case .hevc(var gate):
      gate.forget(sequence: identifier)
      self = .hevc(gate)
    }
  }
}
