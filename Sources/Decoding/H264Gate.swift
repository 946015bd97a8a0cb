import Adaptors
import Media

/// The check of access units of H.264.
///
/// libavcodec conceals lost slices and references, mostly without a word. The gate accounts for the slices by their first
/// macroblocks, and follows `frame_num` (ITU-T H.264 clause 7.4.3), so that a picture of which something has never come is not
/// shown.
struct H264Gate {
  private var sets = SyntaxTable()
  /// The reasons why the last SPS and PPS of a number were refused: at most 32 of one kind and 256 of the other.
  private var (refusedSequences, refusedPictures): ([Int: DecoderError], [Int: DecoderError]) = ([:], [:])
  /// The parameter sets as they came, for a decoder that begins anew.
  private(set) var stored = StoredParameterSets()
  /// The `frame_num` of the last reference picture; nil before a key frame.
  private var formerReference: Int?
  /// The first field of a frame that waits for the second one.
  private var openField: SliceSyntax?

  /// `true` if a frame has its first field only.
  var awaitsField: Bool { openField != nil }

  /// Forgets the references: a key frame must come.
  mutating func restart() { (formerReference, openField) = (nil, nil) }

  /// Forgets a PPS, which another one replaces, or which libavcodec refuses.
  mutating func forget(picture identifier: Int) {
    refusedPictures[identifier] = nil
    sets.forget(picture: identifier)
    stored.forget(picture: identifier)
  }

  /// Forgets an SPS and its PPS.
  mutating func forget(sequence identifier: Int) {
    refusedSequences[identifier] = nil
    sets.forget(sequence: identifier)
    stored.forget(sequence: identifier)
  }

  /// Returns the SPS of the PPS of this number; nil where either is missing.
  func sequence(ofPicture identifier: Int) -> Int? { sets.picture(identifier)?.sequence }

  /// Checks the NAL units of an access unit.
  ///
  /// A parameter set that is refused is forgotten, and so is the former one of its number, which later pictures no longer mean.
  ///
  /// - Throws: ``DecoderError``; of a set that is refused only where a slice names it. The sets that passed are known.
  mutating func check(
    _ bytes: UnsafeRawBufferPointer, _ configuration: VideoDecoder.Configuration
  ) throws(DecoderError) -> StreamGate.Passed {
    var passed = StreamGate.Passed()
    var units = 0
    var former: SliceSyntax?
    try AnnexB.forEachNALUnit(in: bytes) { unit throws(DecoderError) in
      units += 1
      guard units <= AccessUnit.nalUnitLimit else { throw .nalUnits(units, limit: AccessUnit.nalUnitLimit) }
      switch unit.type {
      case .sequenceParameterSet:
        guard !stored.holds(unit) else { break }
        do throws(DecoderError) {
          try take(sequence: unit, configuration)
          passed.hasNewSequence = true
        } catch {
          passed.refusal = passed.refusal ?? error
        }
      case .pictureParameterSet:
        do throws(DecoderError) { try take(picture: unit) } catch { passed.refusal = passed.refusal ?? error }
      case .supplementalEnhancementInformation:
        if passed.recoveryPoint == nil { passed.recoveryPoint = RecoveryPoint(unit) }
      case .nonIDRSlice, .idrSlice: try take(unit, after: &former, &passed)
      case _ where (2...4).contains(unit.type.rawValue): throw .samples("a stream with data partitions")
      default: break
      }
    }
    return passed
  }

  // MARK: Parameter sets

  private mutating func take(
    sequence unit: NALUnit, _ configuration: VideoDecoder.Configuration
  ) throws(DecoderError) {
    guard let identifier = SequenceSyntax.identifier(of: unit) else { throw .parameterSet(.notSequenceParameterSet) }
    forget(sequence: identifier)
    do throws(DecoderError) {
      try Self.check(sequence: unit, configuration)
    } catch {
      refusedSequences[identifier] = error
      throw error
    }
    sets.learn(unit)
    stored.store(unit)
  }

  private mutating func take(picture unit: NALUnit) throws(DecoderError) {
    guard let identifier = PictureSyntax.identifier(of: unit) else { throw .parameterSet(.notPictureParameterSet) }
    forget(picture: identifier)
    guard unit.bytes.count <= ParameterSets.lengthLimit, PictureSyntax(unit) != nil else {
      refusedPictures[identifier] = .parameterSet(.notPictureParameterSet)
      throw .parameterSet(.notPictureParameterSet)
    }
    sets.learn(unit)
    stored.store(unit)
  }

  private static func check(
    sequence unit: NALUnit, _ configuration: VideoDecoder.Configuration
  ) throws(DecoderError) {
    guard SequenceSyntax(unit) != nil else { throw .parameterSet(.notSequenceParameterSet) }
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
  }

  /// Returns the reason why a slice has no parameter sets.
  private func absence(of slice: NALUnit) -> DecoderError {
    guard let picture = SliceSyntax.pictureParameterSet(of: slice) else { return .missingParameterSets }
    let refusal = refusedPictures[picture] ?? sets.picture(picture).flatMap { refusedSequences[$0.sequence] }
    return refusal ?? .missingParameterSets
  }

  // MARK: Slices

  private mutating func take(
    _ unit: NALUnit, after former: inout SliceSyntax?, _ passed: inout StreamGate.Passed
  ) throws(DecoderError) {
    guard let slice = SliceSyntax(unit, sets),
      let sequence = sets.picture(slice.pictureParameterSet).flatMap({ sets.sequence($0.sequence) })
    else { throw absence(of: unit) }
    guard !slice.isRedundant else { return }
    if let former, !slice.beginsPicture(after: former) {
      guard slice.firstMacroblock > former.firstMacroblock,
        passed.ends[passed.ends.count - 1].add(slice.firstMacroblock)
      else { throw .damaged("its slices are not in order") }
    } else {
      guard slice.firstMacroblock == 0 else { throw .damaged("its first slice is missing") }
      let isSecondField = try pair(slice, &passed)
      guard former == nil || isSecondField else { throw .damaged("another picture is in its access unit") }
      if !isSecondField { try follow(slice, sequence) }
      if slice.isReference { formerReference = slice.frameNumber }
      if former == nil { (passed.first, passed.isSecondField) = ((slice, sequence), isSecondField) }
      passed.ends.append(SliceEnds(slice, sequence))
    }
    if slice.isIDR { passed.isKeyFrame = true }
    passed.units.append(unit.bytes)
    passed.pictureParameterSets.insert(slice.pictureParameterSet)
    former = slice
  }

  /// Finds the other field of the frame. Returns `true` if `slice` begins the second field of one.
  private mutating func pair(_ slice: SliceSyntax, _ passed: inout StreamGate.Passed) throws(DecoderError) -> Bool {
    if let first = openField {
      openField = nil
      if slice.isSecondField(of: first) { return true }
      // With a key frame, what is missing matters no more.
      guard slice.isIDR else { throw .damaged("a field is missing") }
      passed.leavesField = true
    }
    openField = slice.isField ? slice : nil
    return false
  }

  /// Follows `frame_num` by the first slice of a frame.
  private func follow(_ slice: SliceSyntax, _ sequence: SequenceSyntax) throws(DecoderError) {
    guard !slice.isIDR, let formerReference else { return }
    let next = (formerReference + 1) % (1 << sequence.frameNumberBits)
    // The second field of a frame has the first one's number.
    guard slice.frameNumber == next || sequence.allowsGaps else { throw .missingReference }
  }
}
