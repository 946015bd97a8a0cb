/// The parameter sets that a stream had last, put before every IDR picture that comes without them: some encoders write
/// theirs once, at the start, and a viewer who joins later cannot decode.
///
/// Used by one thread. Its memory is there from the start; a picture costs no allocation.
public final class ParameterSetCache {
  private let sequence: UnsafeMutableRawBufferPointer
  private let picture: UnsafeMutableRawBufferPointer
  private var sequenceBytes = 0
  private var pictureBytes = 0
  private var isInvalid = true
  private let nalUnits: UnsafeMutableBufferPointer<NALUnit>

  /// How often the sets were others than before, the first ones included.
  public private(set) var changes = 0

  /// The most NAL units in one access unit.
  public static let nalUnitLimit = 1024

  /// A cache that knows none.
  public init() {
    sequence = .allocate(byteCount: ParameterSets.lengthLimit, alignment: 1)
    picture = .allocate(byteCount: ParameterSets.lengthLimit, alignment: 1)
    nalUnits = .allocate(capacity: Self.nalUnitLimit)
  }

  deinit {
    sequence.deallocate()
    picture.deallocate()
    nalUnits.deallocate()
  }

  /// Whether both are known.
  public var isComplete: Bool { sequenceBytes > 0 && pictureBytes > 0 }

  /// Both, nil until they are known. Allocates.
  public var parameterSets: ParameterSets? {
    ParameterSets(sequence: Array(sequence[..<sequenceBytes]), picture: Array(picture[..<pictureBytes]))
  }

  /// There is a new peer, who has none: they come before the next access unit, whatever kind it is.
  public func invalidate() {
    isInvalid = true
  }

  /// There is a new stream: those known are forgotten, and the next ones come before its first access unit.
  public func reset() {
    (sequenceBytes, pictureBytes) = (0, 0)
    isInvalid = true
  }

  /// Takes `sets` as if they had come in the stream: an encoder tells them before its first picture.
  public func update(_ sets: ParameterSets) {
    sets.sequence.withUnsafeBytes { store($0, in: sequence, count: &sequenceBytes) }
    sets.picture.withUnsafeBytes { store($0, in: picture, count: &pictureBytes) }
  }

  /// Learns the parameter sets in `unit`, and lends it to `deliver` with the last ones in front if it is an IDR
  /// picture, or the first access unit after ``invalidate()``; behind an access unit delimiter, which is always first
  /// (ITU-T H.264 clause 7.4.1.2.3). One that has both is lent as it is; so is every one while none are known. Of a
  /// picture in parts, the first one alone is to come here.
  ///
  /// - Throws: ``ParameterSetError`` for a set longer than ``ParameterSets/lengthLimit`` or more NAL units than
  ///   ``nalUnitLimit``; then `deliver` was not called.
  public func complete(
    _ unit: borrowing AccessUnit, deliver: (borrowing AccessUnit) -> Void
  ) throws(ParameterSetError) {
    guard unit.nalUnits.count + 2 <= Self.nalUnitLimit else { throw .value("number of NAL units") }
    var hasSequence = false
    var hasPicture = false
    var isIDR = unit.isKeyFrame
    for nalUnit in unit.nalUnits {
      switch nalUnit.type {
      case .sequenceParameterSet, .pictureParameterSet:
        guard nalUnit.bytes.count <= ParameterSets.lengthLimit else { throw .value("length") }
        if nalUnit.type == .sequenceParameterSet { hasSequence = true } else { hasPicture = true }
      case .idrSlice: isIDR = true
      default: break
      }
    }
    for nalUnit in unit.nalUnits {
      if nalUnit.type == .sequenceParameterSet { store(nalUnit.bytes, in: sequence, count: &sequenceBytes) }
      if nalUnit.type == .pictureParameterSet { store(nalUnit.bytes, in: picture, count: &pictureBytes) }
    }
    let isWanted = (isIDR || isInvalid) && isComplete
    if isWanted || hasSequence && hasPicture { isInvalid = false }
    guard isWanted, !(hasSequence && hasPicture) else { return deliver(unit) }

    var count = 0
    func append(_ nalUnit: NALUnit?) {
      guard let nalUnit else { return }
      nalUnits.initializeElement(at: count, to: nalUnit)
      count += 1
    }
    for nalUnit in unit.nalUnits where nalUnit.type == .accessUnitDelimiter { append(nalUnit) }
    append(NALUnit(UnsafeRawBufferPointer(rebasing: sequence[..<sequenceBytes])))
    append(NALUnit(UnsafeRawBufferPointer(rebasing: picture[..<pictureBytes])))
    for nalUnit in unit.nalUnits {
      switch nalUnit.type {
      case .accessUnitDelimiter, .sequenceParameterSet, .pictureParameterSet: break
      default: append(nalUnit)
      }
    }
    let completed = AccessUnit(
      nalUnits: UnsafeBufferPointer(rebasing: nalUnits[..<count]), isKeyFrame: unit.isKeyFrame,
      timestamp: unit.timestamp, captured: unit.captured, isFirstPart: unit.isFirstPart, isLastPart: unit.isLastPart)
    deliver(completed)
  }

  private func store(_ bytes: UnsafeRawBufferPointer, in memory: UnsafeMutableRawBufferPointer, count: inout Int) {
    guard !memory[..<count].elementsEqual(bytes) else { return }
    memory.copyMemory(from: bytes)
    count = bytes.count
    changes += 1
  }
}
