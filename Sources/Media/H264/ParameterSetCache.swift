import Synchronization

/// A cache of a stream's last parameter sets. It inserts them before every key frame that lacks them: some encoders
/// write them once, at the start, and a viewer who joins later could not decode.
///
/// One thread uses it, and any thread may read ``current``. Its memory is allocated at the start; a picture costs no
/// allocation.
public final class ParameterSetCache: @unchecked Sendable {
  // Sendable: only the thread that uses the cache writes the sets' memory and lengths, under `published`. Other threads
  // read them under `published`.
  /// The codec of the stream.
  public let codec: VideoCodec
  /// A place for the set of each ``ParameterSetKind``.
  private let memory: UnsafeMutableRawBufferPointer
  private var lengths = InlineArray<3, Int>(repeating: 0)
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

  /// Creates an empty cache for a stream of `codec`.
  public init(codec: VideoCodec) {
    self.codec = codec
    memory = .allocate(byteCount: ParameterSetKind.allCases.count * ParameterSets.lengthLimit, alignment: 1)
    nalUnits = .allocate(capacity: AccessUnit.nalUnitLimit)
  }

  deinit {
    memory.deallocate()
    nalUnits.deallocate()
  }

  /// `true` if all parameter sets are known.
  public var isComplete: Bool {
    lengths[ParameterSetKind.sequence.rawValue] > 0 && lengths[ParameterSetKind.picture.rawValue] > 0
      && (lengths[ParameterSetKind.video.rawValue] > 0 || !codec.hasVideoParameterSet)
  }

  /// The number of sets that a decoder needs.
  private var neededSets: Int { codec.hasVideoParameterSet ? 3 : 2 }

  /// All parameter sets; nil until they are known. Allocates after a change.
  public var parameterSets: ParameterSets? { current?.sets }

  /// All parameter sets, and the number of access units and calls that changed them; nil until they are known. Any
  /// thread may read it. Allocates after a change.
  public var current: (sets: ParameterSets, revision: Int)? {
    published.withLock { published in
      if published.sets == nil {
        published.sets = ParameterSets(
          codec, video: Array(set(.video)), sequence: Array(set(.sequence)), picture: Array(set(.picture)))
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
      lengths = InlineArray(repeating: 0)
      $0.sets = nil
    }
    isInvalid = true
  }

  /// Learns `sets` as if they had come in the stream: an encoder has them before its first picture. They must be of
  /// ``codec``.
  public func update(_ sets: ParameterSets) {
    precondition(sets.codec == codec, "parameter sets of another codec")
    exchange {
      if codec.hasVideoParameterSet { sets.video.withUnsafeBytes { store($0, as: .video) } }
      sets.sequence.withUnsafeBytes { store($0, as: .sequence) }
      sets.picture.withUnsafeBytes { store($0, as: .picture) }
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
  /// precede a key frame and the first access unit after ``invalidate()``. An access unit delimiter still comes
  /// before them (ITU-T H.264 clause 7.4.1.2.3, H.265 clause 7.4.2.4.4). A unit that has all sets is lent unchanged; so is
  /// every unit while no sets are known. Of a picture in parts, only the first part may be passed.
  ///
  /// - Throws: ``ParameterSetError`` for a set longer than ``ParameterSets/lengthLimit`` or more NAL units than
  ///   ``AccessUnit/nalUnitLimit``; then `deliver` was not called.
  public func complete(
    _ unit: borrowing AccessUnit, deliver: (borrowing AccessUnit) -> Void
  ) throws(ParameterSetError) {
    guard unit.nalUnits.count + neededSets <= AccessUnit.nalUnitLimit else { throw .value("number of NAL units") }
    var found = InlineArray<3, Bool>(repeating: false)
    var isKeyFrame = unit.isKeyFrame
    for nalUnit in unit.nalUnits {
      switch codec.role(of: nalUnit) {
      case .parameterSet(let kind):
        guard nalUnit.bytes.count <= ParameterSets.lengthLimit else { throw .value("length") }
        found[kind.rawValue] = true
      case .keyFrameSlice: isKeyFrame = true
      default: break
      }
    }
    let count = (found[0] ? 1 : 0) + (found[1] ? 1 : 0) + (found[2] ? 1 : 0)
    let hasAll = count == neededSets
    if count > 0 { learn(unit.nalUnits) }
    let isWanted = (isKeyFrame || isInvalid) && isComplete
    if isWanted || hasAll { isInvalid = false }
    guard isWanted, !hasAll else { return deliver(unit) }
    insertSets(into: unit, deliver: deliver)
  }

  /// Lends `unit` to `deliver` with all sets, behind the access unit delimiter and before the rest.
  private func insertSets(into unit: borrowing AccessUnit, deliver: (borrowing AccessUnit) -> Void) {
    var count = 0
    func append(_ nalUnit: NALUnit?) {
      guard let nalUnit else { return }
      nalUnits.initializeElement(at: count, to: nalUnit)
      count += 1
    }
    for nalUnit in unit.nalUnits where codec.role(of: nalUnit) == .accessUnitDelimiter { append(nalUnit) }
    append(NALUnit(set(.video)))
    append(NALUnit(set(.sequence)))
    append(NALUnit(set(.picture)))
    for nalUnit in unit.nalUnits {
      switch codec.role(of: nalUnit) {
      case .accessUnitDelimiter, .parameterSet: break
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
      if case .parameterSet(let kind) = codec.role(of: unit) { !set(kind).elementsEqual(unit.bytes) } else { false }
    }
    guard isNew else { return }
    exchange {
      for unit in units { if case .parameterSet(let kind) = codec.role(of: unit) { store(unit.bytes, as: kind) } }
    }
  }

  /// Returns the set of `kind`; empty until it is known.
  private func set(_ kind: ParameterSetKind) -> UnsafeRawBufferPointer {
    let start = kind.rawValue * ParameterSets.lengthLimit
    return UnsafeRawBufferPointer(rebasing: memory[start..<start + lengths[kind.rawValue]])
  }

  private func store(_ bytes: UnsafeRawBufferPointer, as kind: ParameterSetKind) {
    guard !set(kind).elementsEqual(bytes) else { return }
    UnsafeMutableRawBufferPointer(rebasing: memory[(kind.rawValue * ParameterSets.lengthLimit)...])
      .copyMemory(from: bytes)
    lengths[kind.rawValue] = bytes.count
    changes += 1
  }
}
