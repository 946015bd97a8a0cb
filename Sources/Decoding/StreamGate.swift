import Adaptors
import Media

/// The check of every access unit before libavcodec reads it: sizes, announced picture sizes, kinds of samples, and references
/// that are missing.
///
/// libavcodec conceals lost references without a word. The gate follows `frame_num` (ITU-T H.264 clause 7.4.3), so that a
/// picture whose reference has never come is not shown.
struct StreamGate {
  /// The properties of a checked access unit.
  struct Passed {
    /// `true` if a decoder can start here: an IDR picture.
    var isKeyFrame = false
    /// `true` if the access unit has slices.
    var hasPicture = false
    /// `true` if it has an SPS that is new.
    var hasNewSequence = false
  }

  private var sets = SyntaxTable()
  /// The parameter sets as they came, for a decoder that begins anew.
  private(set) var stored = StoredParameterSets()
  /// The `frame_num` of the last reference picture; nil before a key frame.
  private var formerReference: Int?

  /// Forgets the references: a key frame must come.
  mutating func restart() { formerReference = nil }

  /// Checks the NAL units of an access unit.
  ///
  /// - Throws: ``DecoderError``. The parameter sets that passed are known.
  mutating func check(
    _ bytes: UnsafeRawBufferPointer, _ configuration: VideoDecoder.Configuration
  ) throws(DecoderError) -> Passed {
    guard bytes.count <= configuration.maximumAccessUnitBytes else {
      throw .accessUnitSize(bytes.count, limit: configuration.maximumAccessUnitBytes)
    }
    var passed = Passed()
    var (units, isFollowed) = (0, false)
    try AnnexB.forEachNALUnit(in: bytes) { unit throws(DecoderError) in
      units += 1
      guard units <= AccessUnit.nalUnitLimit else { throw .nalUnits(units, limit: AccessUnit.nalUnitLimit) }
      switch unit.type {
      case .sequenceParameterSet:
        guard !stored.holds(unit) else { break }
        try check(sequence: unit, configuration)
        stored.store(unit)
        passed.hasNewSequence = true
      case .pictureParameterSet:
        guard unit.bytes.count <= ParameterSets.lengthLimit, PictureSyntax(unit) != nil else {
          throw .parameterSet(.notPictureParameterSet)
        }
        stored.store(unit)
        sets.learn(unit)
      case .nonIDRSlice, .idrSlice:
        passed.hasPicture = true
        if unit.type == .idrSlice { passed.isKeyFrame = true }
        guard !isFollowed else { return }
        isFollowed = true
        try follow(unit)
      case _ where (2...4).contains(unit.type.rawValue): throw .samples("a stream with data partitions")
      default: break
      }
    }
    return passed
  }

  private mutating func check(
    sequence unit: NALUnit, _ configuration: VideoDecoder.Configuration
  ) throws(DecoderError) {
    guard let syntax = SequenceSyntax(unit) else { throw .parameterSet(.notSequenceParameterSet) }
    // A set that is refused replaces the former one of its number all the same: later pictures mean it.
    sets.forget(sequence: syntax.identifier)
    stored.forget(sequence: syntax.identifier)
    let set: SequenceParameterSet
    do { set = try SequenceParameterSet(nalUnit: Array(unit.bytes)) } catch { throw .parameterSet(error) }
    try configuration.check(set.codedSize)
    guard set.lumaBitDepth == 8, set.chromaBitDepth == 8 || set.chromaFormatIDC == 0 else {
      throw .samples("samples of \(set.lumaBitDepth) bits")
    }
    guard set.chromaFormatIDC <= 1 else { throw .samples("chroma of 4:\(set.chromaFormatIDC == 2 ? "2:2" : "4:4")") }
    guard set.size.isEncodable else {
      throw .pictureSize(set.size, limit: "even sizes of at least 16x16 are decoded")
    }
    sets.learn(unit)
  }

  /// Follows `frame_num` by the first slice of a picture.
  private mutating func follow(_ unit: NALUnit) throws(DecoderError) {
    guard let slice = SliceSyntax(unit, sets),
      let sequence = sets.picture(slice.pictureParameterSet).flatMap({ sets.sequence($0.sequence) })
    else { throw .missingParameterSets }
    defer { if slice.isReference { formerReference = slice.frameNumber } }
    guard !slice.isIDR, let formerReference else { return }
    let next = (formerReference + 1) % (1 << sequence.frameNumberBits)
    // The second field of a frame has the first one's number.
    guard slice.frameNumber == next || slice.isField && slice.frameNumber == formerReference || sequence.allowsGaps
    else { throw .missingReference }
  }
}

/// The parameter sets of a stream as they came, the last of each number: at most 32 SPS and 256 PPS of 1024 bytes.
struct StoredParameterSets {
  private var sequences: [Int: [UInt8]] = [:]
  private var pictures: [Int: [UInt8]] = [:]

  /// `true` if there is none.
  var isEmpty: Bool { sequences.isEmpty && pictures.isEmpty }

  /// Returns `true` if `unit` is an SPS that is stored.
  func holds(_ unit: NALUnit) -> Bool { sequences.values.contains { $0.elementsEqual(unit.bytes) } }

  /// Stores a set that was checked, in place of the former one of its number.
  mutating func store(_ unit: NALUnit) {
    if let sequence = SequenceSyntax(unit) {
      sequences[sequence.identifier] = Array(unit.bytes)
    } else if let picture = PictureSyntax(unit) {
      pictures[picture.identifier] = Array(unit.bytes)
    }
  }

  /// Forgets the SPS of this number.
  mutating func forget(sequence identifier: Int) { sequences[identifier] = nil }

  /// All sets as a byte stream, the SPS first.
  var annexB: [UInt8] {
    (sequences.values.map(\.self) + pictures.values).reduce(into: []) { $0 += AnnexB.startCode + $1 }
  }
}
