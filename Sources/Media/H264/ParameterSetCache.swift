import Synchronization

/// A cache of a stream's last parameter sets. It inserts them before every IDR picture that lacks them: some encoders
/// write them once, at the start, and a viewer who joins later could not decode.
///
/// One thread uses it, and any thread may read ``current``. Its memory is allocated at the start; a picture costs no
/// allocation.
public final class ParameterSetCache: @unchecked Sendable {
  // Sendable: only the thread that uses the cache writes the sets' memory and lengths, under `published`. Other threads
  // read them under `published`.
  private let sequence: UnsafeMutableRawBufferPointer
  private let picture: UnsafeMutableRawBufferPointer
  private var sequenceBytes = 0
  private var pictureBytes = 0
  private let published = Mutex(Published())
  private var isInvalid = true
  private let nalUnits: UnsafeMutableBufferPointer<NALUnit>

  /// The sets as other threads see them.
  private struct Published {
    /// The number of calls that changed a set.
    var revision = 0
    /// The sets, once somebody has asked for them.
    var sets: ParameterSets?
  }

  /// The number of changes of the parameter sets, the first ones included.
  public private(set) var changes = 0

  /// Creates an empty cache.
  public init() {
    sequence = .allocate(byteCount: ParameterSets.lengthLimit, alignment: 1)
    picture = .allocate(byteCount: ParameterSets.lengthLimit, alignment: 1)
    nalUnits = .allocate(capacity: AccessUnit.nalUnitLimit)
  }

  deinit {
    sequence.deallocate()
    picture.deallocate()
    nalUnits.deallocate()
  }

  /// `true` if both parameter sets are known.
  public var isComplete: Bool { sequenceBytes > 0 && pictureBytes > 0 }

  /// Both parameter sets; nil until they are known. Allocates after a change.
  public var parameterSets: ParameterSets? { current?.sets }

  /// Both parameter sets, and the number of access units and calls that changed them; nil until they are known. Any
  /// thread may read it. Allocates after a change.
  public var current: (sets: ParameterSets, revision: Int)? {
    published.withLock { published in
      if published.sets == nil {
        published.sets = ParameterSets(
          sequence: Array(sequence[..<sequenceBytes]), picture: Array(picture[..<pictureBytes]))
      }
      return published.sets.map { ($0, published.revision) }
    }
  }

  /// Inserts the parameter sets before the next access unit, whatever its type, because a new viewer has none.
  public func invalidate() {
    isInvalid = true
  }

  /// Forgets the parameter sets for a new stream; the next ones come before its first access unit.
  public func reset() {
    published.withLock {
      (sequenceBytes, pictureBytes) = (0, 0)
      $0.sets = nil
    }
    isInvalid = true
  }

  /// Learns `sets` as if they had come in the stream: an encoder has them before its first picture.
  public func update(_ sets: ParameterSets) {
    exchange {
      sets.sequence.withUnsafeBytes { store($0, in: sequence, count: &sequenceBytes) }
      sets.picture.withUnsafeBytes { store($0, in: picture, count: &pictureBytes) }
    }
  }

  /// Calls `body`, which may exchange sets, while no other thread reads them.
  private func exchange(_ body: () -> Void) {
    published.withLock {
      let before = changes
      body()
      guard changes != before else { return }
      $0.revision += 1
      $0.sets = nil
    }
  }

  /// Learns the parameter sets in `unit` and lends the unit to `deliver`. The last parameter sets
  /// precede an IDR picture and the first access unit after ``invalidate()``. An access unit delimiter still comes
  /// before them (ITU-T H.264 clause 7.4.1.2.3). A unit that has both sets is lent unchanged; so is every unit while no
  /// sets are known. Of a picture in parts, only the first part may be passed.
  ///
  /// - Throws: ``ParameterSetError`` for a set longer than ``ParameterSets/lengthLimit`` or more NAL units than
  ///   ``AccessUnit/nalUnitLimit``; then `deliver` was not called.
  public func complete(
    _ unit: borrowing AccessUnit, deliver: (borrowing AccessUnit) -> Void
  ) throws(ParameterSetError) {
    guard unit.nalUnits.count + 2 <= AccessUnit.nalUnitLimit else { throw .value("number of NAL units") }
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
    if hasSequence || hasPicture { learn(unit.nalUnits) }
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

  /// Learns the parameter sets among NAL units, all of them at once for other threads.
  private func learn(_ units: UnsafeBufferPointer<NALUnit>) {
    // Mostly they are the same again, which needs no lock: no other thread writes.
    let isNew = units.contains { unit in
      switch unit.type {
      case .sequenceParameterSet: !sequence[..<sequenceBytes].elementsEqual(unit.bytes)
      case .pictureParameterSet: !picture[..<pictureBytes].elementsEqual(unit.bytes)
      default: false
      }
    }
    guard isNew else { return }
    exchange {
      for unit in units {
        if unit.type == .sequenceParameterSet { store(unit.bytes, in: sequence, count: &sequenceBytes) }
        if unit.type == .pictureParameterSet { store(unit.bytes, in: picture, count: &pictureBytes) }
      }
    }
  }

  private func store(_ bytes: UnsafeRawBufferPointer, in memory: UnsafeMutableRawBufferPointer, count: inout Int) {
    guard !memory[..<count].elementsEqual(bytes) else { return }
    memory.copyMemory(from: bytes)
    count = bytes.count
    changes += 1
  }
}
