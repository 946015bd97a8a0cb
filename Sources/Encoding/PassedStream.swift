package import Media

/// The reader of a camera's own H.264. It checks every NAL unit before a viewer gets one, keeps the parameter sets, and
/// completes what they leave out.
///
/// Slices and parameter sets pass; everything else (SEI, delimiters, filler, layers of scalable streams) is left out.
/// Parameter sets behind the slices of a buffer are kept: they belong to the next picture. A stream passes if every
/// viewer can show it without delay: progressive 8-bit 4:2:0 of the expected size, no B pictures, and a profile that the
/// viewers have. Its memory is allocated at the start; a picture costs no allocation.
package final class PassedStream {
  /// The reason why a picture does not pass.
  package enum Fault: Error, Equatable {
    /// The picture is damaged, or its parameter sets are missing: a later key frame may pass.
    case damaged
    /// No picture of this stream can pass.
    case unusable(String)
  }

  /// The properties that a stream must have.
  package struct Expectation {
    /// The picture's size after cropping.
    var size: PictureSize
    /// The greatest profile that every viewer has.
    var profile: H264Profile
    /// The nominal frame rate, for a VUI without a timing.
    var frameRate: FrameRate

    /// Creates an expectation.
    package init(size: PictureSize, profile: H264Profile, frameRate: FrameRate) {
      (self.size, self.profile, self.frameRate) = (size, profile, frameRate)
    }
  }

  /// A picture that passes.
  package struct Picture {
    /// The NAL units; those of a key frame begin with the SPS and PPS.
    package let nalUnits: UnsafeBufferPointer<NALUnit>
    /// `true` for an IDR picture.
    let isKeyFrame: Bool
  }

  private let expectation: Expectation
  private let nalUnits: UnsafeMutableBufferPointer<NALUnit>
  private var sequence = StoredSet()
  private var picture = StoredSet()
  private var pictureIdentifier = 0
  private var sequenceIdentifier = 0
  private var isUnconstrainedBaseline = false
  /// `true` until an IDR picture comes after new parameter sets.
  private var awaitsKeyFrame = true

  // The present picture.
  private var count = 0
  private var isIDR = false
  /// `true` if the buffer had a slice, whether it passes or not.
  private var hadSlice = false
  private var fault: Fault?
  private var lastMacroblock = -1

  /// The places before the slices, for the parameter sets of a key frame.
  private static let setCount = 2

  package init(_ expectation: Expectation) {
    self.expectation = expectation
    nalUnits = .allocate(capacity: AccessUnit.nalUnitLimit)
  }

  deinit {
    nalUnits.deallocate()
    sequence.deallocate()
    picture.deallocate()
  }

  /// The parameter sets as they are passed on; nil until both are known. Allocates.
  var parameterSets: ParameterSets? {
    guard let sequence = sequence.passed, let picture = picture.passed else { return nil }
    return ParameterSets(sequence: Array(sequence), picture: Array(picture))
  }

  /// Reads the picture in `bytes`, which the caller keeps while the result is used. Returns nil where `bytes` have
  /// parameter sets alone. `color` describes the samples if the stream does not.
  package func read(_ bytes: UnsafeRawBufferPointer, color: ColorDescription) throws(Fault) -> Picture? {
    (count, isIDR, lastMacroblock, hadSlice, fault) = (Self.setCount, false, -1, false, nil)
    AnnexB.forEachNALUnit(in: bytes) { unit in note(unit, color) }
    if let fault { throw fault }
    guard count > Self.setCount else { return nil }
    if isIDR { awaitsKeyFrame = false }
    guard !awaitsKeyFrame else { throw .damaged }
    guard isIDR, let first = sequence.passed.flatMap(NALUnit.init), let second = picture.passed.flatMap(NALUnit.init)
    else { return Picture(nalUnits: UnsafeBufferPointer(rebasing: nalUnits[Self.setCount..<count]), isKeyFrame: false) }
    nalUnits.initializeElement(at: 0, to: first)
    nalUnits.initializeElement(at: 1, to: second)
    return Picture(nalUnits: UnsafeBufferPointer(rebasing: nalUnits[..<count]), isKeyFrame: true)
  }

  /// Takes a NAL unit, and notes the first fault. Parameter sets behind a fault are taken too: the next picture may need
  /// them.
  private func note(_ unit: NALUnit, _ color: ColorDescription) {
    do throws(Fault) {
      try take(unit, color)
    } catch {
      if fault == nil { fault = error }
    }
  }

  private func take(_ unit: NALUnit, _ color: ColorDescription) throws(Fault) {
    // forbidden_zero_bit
    guard unit.bytes[0] & 0x80 == 0 else { throw .damaged }
    switch unit.type {
    case .nonIDRSlice, .idrSlice:
      if !hadSlice {
        hadSlice = true
        try adoptKept(color)
      }
      if fault == nil { try takeSlice(unit) }
    case .sequenceParameterSet:
      try requireLength(of: unit, "SPS")
      guard !hadSlice else { return keepSequence(unit.bytes) }
      _ = sequence.takeKept()
      try takeSequence(unit.bytes, color)
    case .pictureParameterSet:
      try requireLength(of: unit, "PPS")
      guard !hadSlice else { return keepPicture(unit.bytes) }
      _ = picture.takeKept()
      if let kept = sequence.takeKept() { try takeSequence(kept, color) }
      try takePicture(unit)
    default:
      if (2...4).contains(unit.type.rawValue) { throw .unusable("it has data partitions") }
    }
  }

  private func takeSlice(_ unit: NALUnit) throws(Fault) {
    // Parameter sets within a picture begin another one (clause 7.4.1.2.3).
    guard !hasKept else { throw .damaged }
    // Room for two sets, which the send stage may add to a picture that is no key frame.
    guard count < AccessUnit.nalUnitLimit - Self.setCount, sequence.passed != nil, picture.passed != nil,
      let slice = unit.sliceBeginning, slice.type <= 9, slice.pictureParameterSet == pictureIdentifier
    else { throw .damaged }
    let isFirst = count == Self.setCount
    let isOfIDR = unit.type == .idrSlice
    switch slice.type % 5 {
    case 0: guard !isOfIDR else { throw .damaged }
    case 1: throw .unusable("it has B pictures, which delay the picture")
    case 2: break
    default: throw .unusable("it has switching slices")
    }
    // A picture begins with its first macroblock, and its slices are of one kind and in order. Otherwise a slice is
    // missing, or the buffer has two pictures.
    guard isFirst ? slice.firstMacroblock == 0 : isOfIDR == isIDR && slice.firstMacroblock > lastMacroblock else {
      throw .damaged
    }
    isIDR = isOfIDR
    lastMacroblock = slice.firstMacroblock
    nalUnits.initializeElement(at: count, to: unit)
    count += 1
  }

  // MARK: Parameter sets

  private func requireLength(of set: NALUnit, _ name: String) throws(Fault) {
    guard set.bytes.count <= ParameterSets.lengthLimit else {
      throw .unusable("its \(name) has \(set.bytes.count) bytes; the limit is \(ParameterSets.lengthLimit)")
    }
  }

  /// `true` if parameter sets wait for the next picture.
  private var hasKept: Bool { sequence.hasKept || picture.hasKept }

  /// Keeps an SPS that stands behind slices. The present one once more is no new one, unless another comes before it.
  private func keepSequence(_ bytes: UnsafeRawBufferPointer) {
    if hasKept || !sequence.came(elementsEqual: bytes) { sequence.keep(bytes) }
  }

  /// Keeps a PPS that stands behind slices, as ``keepSequence(_:)`` does.
  private func keepPicture(_ bytes: UnsafeRawBufferPointer) {
    if hasKept || !picture.came(elementsEqual: bytes) { picture.keep(bytes) }
  }

  /// Adopts the sets that stood behind the slices of the buffer before, where no others have come instead.
  private func adoptKept(_ color: ColorDescription) throws(Fault) {
    let (first, second) = (sequence.takeKept(), picture.takeKept())
    if let first { try takeSequence(first, color) }
    if let second = second.flatMap(NALUnit.init) { try takePicture(second) }
  }

  private func takeSequence(_ bytes: UnsafeRawBufferPointer, _ color: ColorDescription) throws(Fault) {
    if !sequence.came(elementsEqual: bytes) { try adoptSequence(bytes, color) }
  }

  private func takePicture(_ unit: NALUnit) throws(Fault) {
    if !picture.came(elementsEqual: unit.bytes) { try adoptPicture(unit) }
  }

  private func adoptSequence(_ bytes: UnsafeRawBufferPointer, _ color: ColorDescription) throws(Fault) {
    sequence.forget()
    awaitsKeyFrame = true
    var passed = Array(bytes)
    let set: SequenceParameterSet
    do { set = try SequenceParameterSet(nalUnit: passed) } catch { throw .damaged }
    // There is no level 0. Without it, the constraint flags below change no emulation prevention.
    guard set.levelIDC > 0 else { throw .damaged }
    guard set.isProgressive else { throw .unusable("its pictures are interlaced") }
    guard set.chromaFormatIDC == 1, set.lumaBitDepth == 8, set.chromaBitDepth == 8 else {
      throw .unusable("its samples are not 8-bit 4:2:0")
    }
    guard set.size == expectation.size else {
      throw .unusable("its pictures have \(set.size), and the stream has \(expectation.size)")
    }
    isUnconstrainedBaseline = set.profileIDC == 66 && set.profile == nil
    guard let profile = isUnconstrainedBaseline ? .baseline : set.profile else {
      throw .unusable("its profile is \(set.profileIDC) (profile_idc); viewers have baseline, main and high")
    }
    guard profile.indication <= expectation.profile.indication else {
      throw .unusable(
        "its profile is \(profile.rawValue), and viewers may have \(expectation.profile.rawValue) only: "
          + "choose --profile \(profile.rawValue) if all of yours have it")
    }
    // constraint_set0_flag and constraint_set1_flag; the pictures are checked for what Constrained Baseline forbids.
    if isUnconstrainedBaseline { passed[2] |= 0xc0 }
    do { passed = try Self.completed(passed, set, color, expectation.frameRate) } catch { throw .damaged }
    guard passed.count <= ParameterSets.lengthLimit else { throw .damaged }
    // The PPS that is known belongs to another SPS.
    if Int(set.identifier) != sequenceIdentifier { picture.forget() }
    sequenceIdentifier = Int(set.identifier)
    sequence.store(came: bytes, passed: passed)
  }

  /// Returns the SPS with a VUI that says what players need: no reordering, colours, and the frame rate.
  private static func completed(
    _ bytes: [UInt8], _ set: SequenceParameterSet, _ color: ColorDescription, _ frameRate: FrameRate
  ) throws(ParameterSetError) -> [UInt8] {
    let hasColor = set.color.matrix != ColorDescription.unspecified.matrix
    // A camera that counts in ticks of 90 kHz states "90000 fps".
    let stated = set.frameRate.flatMap { (0.5...240).contains($0.framesPerSecond) ? $0 : nil }
    guard set.reorderFrames != 0 || !hasColor || stated == nil else { return bytes }
    return try SequenceParameterSet.replacingVUI(
      in: bytes, color: hasColor ? set.color : color, frameRate: stated ?? frameRate)
  }

  private func adoptPicture(_ unit: NALUnit) throws(Fault) {
    picture.forget()
    awaitsKeyFrame = true
    let bytes = Array(unit.bytes)
    do { _ = try PictureParameterSet(nalUnit: bytes) } catch { throw .damaged }
    guard let beginning = unit.pictureParameterSetBeginning, sequence.passed != nil,
      beginning.sequence == sequenceIdentifier
    else { throw .damaged }
    guard beginning.sliceGroups == 1 else { throw .unusable("it has \(beginning.sliceGroups) slice groups") }
    pictureIdentifier = beginning.identifier
    picture.store(came: unit.bytes, passed: bytes)
  }
}

/// A parameter set as it came and as it is passed on, and one that waits for the next picture, in memory of their own.
private struct StoredSet {
  private let memory = UnsafeMutableRawBufferPointer.allocate(
    byteCount: 3 * ParameterSets.lengthLimit, alignment: 1)
  private var cameBytes = 0
  private var passedBytes = 0
  private var keptBytes = 0

  func deallocate() { memory.deallocate() }

  func came(elementsEqual bytes: UnsafeRawBufferPointer) -> Bool {
    cameBytes > 0 && memory[..<cameBytes].elementsEqual(bytes)
  }

  var passed: UnsafeRawBufferPointer? {
    guard passedBytes > 0 else { return nil }
    let start = ParameterSets.lengthLimit
    return UnsafeRawBufferPointer(rebasing: memory[start..<(start + passedBytes)])
  }

  /// Stores both; neither is longer than ``/Media/ParameterSets/lengthLimit``.
  mutating func store(came: UnsafeRawBufferPointer, passed: [UInt8]) {
    memory.copyMemory(from: came)
    UnsafeMutableRawBufferPointer(rebasing: memory[ParameterSets.lengthLimit...]).copyBytes(from: passed)
    (cameBytes, passedBytes) = (came.count, passed.count)
  }

  /// `true` if a set waits for the next picture.
  var hasKept: Bool { keptBytes > 0 }

  /// Keeps a set for the next picture, instead of one that is kept already; it is no longer than
  /// ``/Media/ParameterSets/lengthLimit``.
  mutating func keep(_ bytes: UnsafeRawBufferPointer) {
    UnsafeMutableRawBufferPointer(rebasing: memory[(2 * ParameterSets.lengthLimit)...]).copyMemory(from: bytes)
    keptBytes = bytes.count
  }

  /// Returns the kept set, which is kept no longer. Its bytes stay until the next ``keep(_:)``.
  mutating func takeKept() -> UnsafeRawBufferPointer? {
    guard keptBytes > 0 else { return nil }
    defer { keptBytes = 0 }
    let start = 2 * ParameterSets.lengthLimit
    return UnsafeRawBufferPointer(rebasing: memory[start..<(start + keptBytes)])
  }

  /// Forgets the set as it came and as it is passed on.
  mutating func forget() { (cameBytes, passedBytes) = (0, 0) }
}
