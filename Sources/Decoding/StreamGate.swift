import Adaptors
import Media

/// The check of every access unit before libavcodec reads it: sizes, announced picture sizes, kinds of samples, slices and
/// references that are missing.
///
/// Of all NAL units it passes on slices alone; the caller adds the parameter sets that they name.
struct StreamGate {
  /// The codec of the stream.
  let codec: VideoCodec
  // One of both is used. They stand side by side and in no enum, so that each changes in place.
  private var h264 = H264Gate()
  private var hevc = HEVCGate()

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
  init(_ codec: VideoCodec) { self.codec = codec }

  /// `true` if a frame has its first field only.
  var awaitsField: Bool { h264.awaitsField }

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
    switch codec {
    case .h264: return try h264.check(bytes, configuration)
    case .hevc: return try hevc.check(bytes, configuration)
    }
  }

  /// Forgets the references: a picture at which a decoder can start must come.
  mutating func restart() {
    switch codec {
    case .h264: h264.restart()
    case .hevc: hevc.restart()
    }
  }

  /// Notes that the decoder begins anew at the key frame that was checked last. Pictures of HEVC that come after it and refer to
  /// pictures before it are left out.
  mutating func noteEntry() {
    if codec == .hevc { hevc.noteEntry() }
  }

  /// Returns the PPS of these numbers as a byte stream, with the sets that they name before them; nil where one is missing.
  func annexB(pictures: some Sequence<Int>) -> [UInt8]? {
    switch codec {
    case .h264: h264.stored.annexB(pictures: pictures)
    case .hevc: hevc.sets.annexB(pictures: pictures)
    }
  }

  /// Returns the SPS of this number as a byte stream, with its VPS; nil where one is missing.
  func annexB(sequence: Int) -> [UInt8]? {
    switch codec {
    case .h264: h264.stored.annexB(sequence: sequence)
    case .hevc: hevc.sets.annexB(sequence: sequence)
    }
  }

  /// Returns the SPS of the PPS of this number; nil where either is missing.
  func sequence(ofPicture identifier: Int) -> Int? {
    switch codec {
    case .h264: h264.sequence(ofPicture: identifier)
    case .hevc: hevc.sets.picture(identifier).map { Int($0.sequenceParameterSet) }
    }
  }

  /// Forgets a PPS, which libavcodec refuses.
  mutating func forget(picture identifier: Int) {
    switch codec {
    case .h264: h264.forget(picture: identifier)
    case .hevc: hevc.forget(picture: identifier)
    }
  }

  /// Forgets an SPS and its PPS, which libavcodec refuses.
  mutating func forget(sequence identifier: Int) {
    switch codec {
    case .h264: h264.forget(sequence: identifier)
    case .hevc: hevc.forget(sequence: identifier)
    }
  }
}
