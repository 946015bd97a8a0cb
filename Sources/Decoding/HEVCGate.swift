import Adaptors
import Media

/// The check of access units of HEVC.
///
/// The gate accounts for the slice segments by their addresses, and for the references by the reference picture sets, so that
/// a picture of which something has never come is not shown. NAL units of further layers are left out. Where decoding starts at a
/// CRA picture, its RASL pictures are left out too: they refer to pictures that never came.
struct HEVCGate {
  /// The parameter sets that passed.
  private(set) var sets = HEVCStoredParameterSets()
  /// The reasons why the last SPS and PPS of a number were refused: at most 16 of one kind and 64 of the other.
  private var (refusedSequences, refusedPictures): ([Int: DecoderError], [Int: DecoderError]) = ([:], [:])
  private var references = HEVCReferences()
  /// `true` until a picture comes at which a decoder can start.
  private var awaitsEntry = true
  /// `true` if the next picture follows an end of sequence or of bitstream.
  private var hasEnded = false
  /// `true` if the RASL pictures of the last IRAP picture are left out.
  private var skipsLeading = false
  /// The SPS that the last IRAP picture named; nil before the first one.
  private var activeSequence: Int?
  /// The numbers of the SPS that have come since an IRAP picture named them, at most 16.
  private var newSequences: Set<Int> = []

  /// Forgets the references: an IRAP picture must come.
  mutating func restart() { (awaitsEntry, hasEnded) = (true, false) }

  /// Notes that the decoder begins anew at the IRAP picture that was checked last: it has none of the pictures before it.
  mutating func noteEntry() {
    skipsLeading = true
    references.forgetFormer()
  }

  /// Forgets a PPS.
  mutating func forget(picture identifier: Int) {
    refusedPictures[identifier] = nil
    sets.forget(picture: identifier)
  }

  /// Forgets an SPS and its PPS.
  mutating func forget(sequence identifier: Int) {
    refusedSequences[identifier] = nil
    sets.forget(sequence: identifier)
  }

  /// Checks the NAL units of an access unit; see ``StreamGate/check(_:_:)``.
  mutating func check(
    _ bytes: UnsafeRawBufferPointer, _ configuration: VideoDecoder.Configuration
  ) throws(DecoderError) -> StreamGate.Passed {
    var passed = StreamGate.Passed()
    var units = 0
    var former: HEVCSliceHeader?
    var isSkipped = false
    try AnnexB.forEachNALUnit(in: bytes) { unit throws(DecoderError) in
      units += 1
      guard units <= AccessUnit.nalUnitLimit else { throw .nalUnits(units, limit: AccessUnit.nalUnitLimit) }
      guard let header = HEVCNALUnitHeader(unit), header.layerID == 0 else { return }
      switch header.type {
      case .videoParameterSet, .sequenceParameterSet, .pictureParameterSet:
        guard !sets.holds(unit) else { break }
        do throws(DecoderError) { try take(set: unit, configuration) } catch {
          passed.refusal = passed.refusal ?? error
        }
      case .endOfSequence, .endOfBitstream: hasEnded = true
      case _ where header.type.isSlice:
        guard !isSkipped else { break }
        isSkipped = skipsLeading && header.type.isRASL && !awaitsEntry
        guard !isSkipped else { break }
        try take(unit, header, after: &former, &passed)
      default: break
      }
    }
    if passed.isKeyFrame, let picture = passed.pictureParameterSets.first.flatMap({ sets.picture($0) }) {
      let number = Int(picture.sequenceParameterSet)
      // An SPS that no picture names begins no sequence.
      passed.hasNewSequence = newSequences.remove(number) != nil || activeSequence != number
      activeSequence = number
    }
    return passed
  }

  // MARK: Parameter sets

  private mutating func take(
    set unit: NALUnit, _ configuration: VideoDecoder.Configuration
  ) throws(DecoderError) {
    let bytes = Array(unit.bytes)
    let sequence = HEVCSequenceParameterSet.identifier(nalUnit: bytes)
    let picture = HEVCPictureParameterSet.identifier(nalUnit: bytes)
    if let sequence { forget(sequence: sequence) }
    if let picture { forget(picture: picture) }
    do throws(DecoderError) {
      do throws(ParameterSetError) { try sets.store(unit) } catch { throw .parameterSet(error) }
      if let sequence, let set = sets.sequence(sequence) {
        try Self.check(set, configuration)
        newSequences.insert(sequence)
      }
    } catch {
      if let sequence {
        sets.forget(sequence: sequence)
        refusedSequences[sequence] = error
      }
      if let picture { refusedPictures[picture] = error }
      throw error
    }
  }

  private static func check(
    _ set: HEVCSequenceParameterSet, _ configuration: VideoDecoder.Configuration
  ) throws(DecoderError) {
    try configuration.check(set.codedSize)
    guard set.lumaBitDepth == 8, set.chromaBitDepth == 8 || set.chromaFormatIDC == 0 else {
      throw .samples("samples of \(max(set.lumaBitDepth, set.chromaBitDepth)) bits")
    }
    guard set.chromaFormatIDC <= 1 else { throw .samples("chroma of 4:\(set.chromaFormatIDC == 2 ? "2:2" : "4:4")") }
    guard set.size.isEncodable else {
      throw .pictureSize(set.size, limit: "even sizes of at least 16x16 are decoded")
    }
  }

  /// Returns the reason why a slice has no parameter sets.
  private func absence(of picture: Int?) -> DecoderError {
    guard let picture else { return .missingParameterSets }
    let refusal =
      refusedPictures[picture]
      ?? sets.picture(picture).flatMap { refusedSequences[Int($0.sequenceParameterSet)] }
    return refusal ?? .missingParameterSets
  }

  // MARK: Slices

  private mutating func take(
    _ unit: NALUnit, _ header: HEVCNALUnitHeader, after former: inout HEVCSliceHeader?,
    _ passed: inout StreamGate.Passed
  ) throws(DecoderError) {
    let identifier = HEVCSliceHeader.pictureParameterSet(of: unit)
    guard let identifier, let picture = sets.picture(identifier),
      let sequence = sets.sequence(Int(picture.sequenceParameterSet))
    else { throw absence(of: identifier) }
    let slice: HEVCSliceHeader
    do throws(ParameterSetError) {
      slice = try HEVCSliceHeader(unit, picture: picture, sequence: sequence)
    } catch {
      throw .damaged("its slice header cannot be read: \(error)")
    }
    if let former {
      guard !slice.isFirst else { throw .damaged("another picture is in its access unit") }
      guard slice.header.type == former.header.type, slice.address > former.address,
        passed.ends[passed.ends.count - 1].add(slice.address)
      else { throw .damaged("its slices are not in order") }
    } else {
      guard slice.isFirst else { throw .damaged("its first slice is missing") }
      try begin(slice, sequence, &passed)
      passed.ends.append(SliceEnds(sequence, hasTiles: picture.hasTiles))
    }
    passed.units.append(unit.bytes)
    passed.pictureParameterSets.insert(identifier)
    former = slice
  }

  /// Follows the picture that begins with `slice`.
  private mutating func begin(
    _ slice: HEVCSliceHeader, _ sequence: HEVCSequenceParameterSet, _ passed: inout StreamGate.Passed
  ) throws(DecoderError) {
    let type = slice.header.type
    passed.isKeyFrame = type.isKeyFrame
    passed.followsEnd = hasEnded && type.isKeyFrame
    // Before an entry nothing is decoded: the caller refuses the picture.
    guard !awaitsEntry || type.isKeyFrame else { return }
    let starts = type.isKeyFrame && (awaitsEntry || hasEnded || type != .cra)
    try references.follow(slice, bits: sequence.orderCountBits, startsSequence: starts)
    (awaitsEntry, hasEnded) = (false, false)
    if type.isKeyFrame { skipsLeading = starts }
  }
}
