import Glibc
public import Media
public import Platform

/// An adaptor from a byte stream (Annex B of ITU-T H.264 or H.265) to access units, for a stream from a pipe, a file or a socket.
///
/// It takes the bytes in chunks of any size, with start codes of three or four bytes. It finds the first slice of a picture
/// by the slice headers (H.264 clause 7.4.1.2.4, H.265 clause 7.4.2.4.4), so pictures of several slices, of fields and
/// without delimiters are right.
/// All NAL units are kept, in their order: delimiters, SEI, ends of sequence and of stream.
///
/// Any input is accepted. Bytes before the first start code are skipped. A NAL unit beyond the limits is left out, and
/// marks its access unit as damaged. One thread at a time uses a reader.
///
/// An access unit is complete when the next one begins. A caller who knows that a chunk ends with an access unit calls
/// ``finish(deliver:)`` after it, and gets the picture at once.
public struct AnnexBReader: Sendable {
  /// The limits of one access unit.
  public struct Limits: Hashable, Sendable {
    /// The limit of an access unit in bytes, start codes included. It also limits the reader's memory.
    public var unitBytes: Int
    /// The limit of NAL units in an access unit.
    public var nalUnits: Int

    /// Creates limits that no camera reaches; `unitBytes` is at least 1024.
    public init(unitBytes: Int = 16 << 20, nalUnits: Int = AccessUnit.nalUnitLimit) {
      self.unitBytes = max(unitBytes, 1024)
      self.nalUnits = max(nalUnits, 1)
    }
  }

  /// Counts since the reader was created.
  public struct Counts: Hashable, Sendable {
    /// The number of access units delivered.
    public var accessUnits: UInt64 = 0
    /// The number of damaged access units among them.
    public var accessUnitsDamaged: UInt64 = 0
    /// The number of NAL units that were left out because of the limits.
    public var nalUnitsRefused: UInt64 = 0
    /// The number of bytes before the first start code.
    public var bytesSkipped: UInt64 = 0

    /// Creates counts of zero.
    public init() {}
  }

  /// The present NAL unit.
  private enum Place {
    /// No start code has come yet.
    case before
    /// The NAL unit is collected; its access unit is not known yet.
    case unknown
    /// The NAL unit is collected.
    case known
    /// The NAL unit is left out.
    case refused
  }

  /// The codec of the stream.
  public let codec: VideoCodec
  /// The limits of one access unit.
  public let limits: Limits
  /// Counts since the reader was created.
  public private(set) var counts = Counts()

  /// The access unit so far; at its end, from `start` on, the present NAL unit. Each NAL unit has a start code of four bytes.
  private var bytes: [UInt8] = []
  private var start = 0
  private var place = Place.before
  /// The zeros at the end of the input, which may belong to a start code.
  private var zeros = 0

  private var sets = SyntaxTable()
  /// The first slice of the access unit whose header could be read.
  private var slice: SliceSyntax?
  private var units = 0
  private var (hasSlices, hasDelimiter, hasEnded, isDamaged, isKeyFrame) = (false, false, false, false, false)
  /// The times of three chunks: with the access unit's first byte, with that of the present NAL unit, and the present one.
  private var (timestamp, unitTime, chunkTime) = (Instant.zero, Instant.zero, Instant.zero)

  /// The bytes of a slice that surely hold its header up to the picture order count, with emulation prevention.
  private static let headerBytes = 64
  /// The memory that the reader keeps for the next access unit, however small the last one was.
  private static let keptBytes = 256 << 10

  /// Creates a reader at the start of a stream of `codec`.
  public init(codec: VideoCodec = .h264, limits: Limits = Limits()) { (self.codec, self.limits) = (codec, limits) }

  /// The memory held for the access unit being collected, in bytes.
  public var memoryBytes: Int { bytes.capacity }

  /// Takes the next bytes of the stream, and passes each access unit that is complete to `deliver`. An access unit has the
  /// `timestamp` of the chunk with its first byte.
  public mutating func append(
    _ chunk: UnsafeRawBufferPointer, timestamp: Instant = .now(), deliver: (EncodedPicture) -> Void
  ) {
    chunkTime = timestamp
    var position = 0
    while position < chunk.count {
      if zeros == 0 {
        let end = Self.zero(in: chunk, from: position)
        collect(UnsafeRawBufferPointer(rebasing: chunk[position..<end]), deliver)
        position = end
      }
      while position < chunk.count, chunk[position] == 0 {
        zeros += 1
        position += 1
      }
      guard position < chunk.count, zeros > 0 else { continue }
      if zeros >= 2, chunk[position] == 1 {
        endNALUnit(deliver)
        beginNALUnit()
        position += 1
      } else {
        collectZeros(deliver)
      }
      zeros = 0
    }
  }

  /// Takes the next bytes of the stream, as `append(_:timestamp:deliver:)` does, and returns the complete access units.
  public mutating func append(_ chunk: some Sequence<UInt8>, timestamp: Instant = .now()) -> [EncodedPicture] {
    var pictures: [EncodedPicture] = []
    Array(chunk).withUnsafeBytes { append($0, timestamp: timestamp) { pictures.append($0) } }
    return pictures
  }

  /// Ends the access unit being collected, and passes it to `deliver`: at the end of the stream, or where the caller knows
  /// that the last chunk ended with an access unit.
  public mutating func finish(deliver: (EncodedPicture) -> Void) {
    endNALUnit(deliver)
    place = .before
    zeros = 0
    endAccessUnit(deliver)
  }

  /// Ends the access unit being collected, and returns it; nil where there is none.
  public mutating func finish() -> EncodedPicture? {
    var last: EncodedPicture?
    finish { last = $0 }
    return last
  }

  // MARK: Bytes

  private static func zero(in chunk: UnsafeRawBufferPointer, from position: Int) -> Int {
    guard let base = chunk.baseAddress, let found = memchr(base + position, 0, chunk.count - position) else {
      return chunk.count
    }
    return UnsafeRawPointer(found) - base
  }

  private mutating func collect(_ part: UnsafeRawBufferPointer, _ deliver: (EncodedPicture) -> Void) {
    var rest = part[...]
    if place == .unknown {
      let count = bytesToClassify
      bytes.append(contentsOf: rest.prefix(count))
      rest = rest.dropFirst(count)
      classify(isComplete: false, deliver)
    }
    guard !rest.isEmpty, hasRoom(for: rest.count) else { return }
    bytes.append(contentsOf: rest)
  }

  private mutating func collectZeros(_ deliver: (EncodedPicture) -> Void) {
    var rest = zeros
    if place == .unknown {
      let count = min(rest, bytesToClassify)
      bytes.append(contentsOf: repeatElement(0, count: count))
      rest -= count
      classify(isComplete: false, deliver)
    }
    guard rest > 0, hasRoom(for: rest) else { return }
    bytes.append(contentsOf: repeatElement(0, count: rest))
  }

  /// The bytes of the present NAL unit that are kept in any case, because its access unit is not known without them.
  private var bytesToClassify: Int { max(0, start + AnnexB.startCode.count + Self.headerBytes - bytes.count) }

  /// Returns `true` if `count` bytes more are kept. Leaves the NAL unit out if they exceed the limit.
  private mutating func hasRoom(for count: Int) -> Bool {
    switch place {
    case .before:
      counts.bytesSkipped &+= UInt64(count)
      return false
    case .refused: return false
    case .unknown, .known: break
    }
    guard count <= limits.unitBytes - bytes.count else {
      refuse()
      return false
    }
    return true
  }

  private mutating func refuse() {
    bytes.removeLast(bytes.count - start)
    place = .refused
    isDamaged = true
    counts.nalUnitsRefused &+= 1
  }

  // MARK: NAL units

  private mutating func beginNALUnit() {
    unitTime = chunkTime
    if bytes.isEmpty { timestamp = unitTime }
    start = bytes.count
    place = .unknown
    bytes += AnnexB.startCode
  }

  private mutating func endNALUnit(_ deliver: (EncodedPicture) -> Void) {
    switch place {
    case .before, .refused: return
    case .known: break
    case .unknown:
      // Nothing, or zeros alone, between two start codes.
      guard bytes.count > start + AnnexB.startCode.count else { return bytes.removeLast(bytes.count - start) }
      classify(isComplete: true, deliver)
    }
    guard place == .known else { return }
    let begin = start + AnnexB.startCode.count
    guard codec == .h264 else {
      if hevcHeader?.type == .endOfBitstream { endAccessUnit(deliver) }
      return
    }
    switch NALUnitType(rawValue: bytes[begin]) {
    case .sequenceParameterSet, .pictureParameterSet:
      var learned = sets
      bytes.withUnsafeBytes { bytes in
        if let unit = NALUnit(UnsafeRawBufferPointer(rebasing: bytes[begin...])) { learned.learn(unit) }
      }
      sets = learned
    case .endOfStream: endAccessUnit(deliver)
    default: break
    }
  }

  /// Decides whether the present NAL unit begins an access unit (clause 7.4.1.2.3), once enough of it is there.
  private mutating func classify(isComplete: Bool, _ deliver: (EncodedPicture) -> Void) {
    let begin = start + AnnexB.startCode.count
    guard bytes.count > begin else { return }
    guard codec == .h264 else { return classifyHEVC(isComplete: isComplete, deliver) }
    let type = NALUnitType(rawValue: bytes[begin])
    // A slice, or the partition of a slice that has its header.
    let isSlice = type == .nonIDRSlice || type == .idrSlice || type == .partitionA
    guard isComplete || !isSlice || bytes.count - begin >= Self.headerBytes else { return }
    var found: SliceSyntax?
    if isSlice {
      found = bytes.withUnsafeBytes { bytes in
        NALUnit(UnsafeRawBufferPointer(rebasing: bytes[begin...])).flatMap { SliceSyntax($0, sets) }
      }
    }
    if begins(type, found) { separate(deliver) }
    place = .known
    guard units < limits.nalUnits else { return refuse() }
    units += 1
    switch type {
    case _ where isSlice:
      hasSlices = true
      slice = slice ?? found
      if type == .idrSlice { isKeyFrame = true }
    case .accessUnitDelimiter: hasDelimiter = true
    case .endOfSequence, .endOfStream: hasEnded = true
    default: break
    }
  }

  private func begins(_ type: NALUnitType, _ found: SliceSyntax?) -> Bool {
    if hasEnded { return type != .endOfStream && type != .endOfSequence }
    switch type {
    case .nonIDRSlice, .idrSlice, .partitionA:
      guard hasSlices else { return false }
      guard let found, let slice else {
        // Without parameter sets, a picture begins with its first macroblock.
        let first = start + AnnexB.startCode.count + 1
        return first < bytes.count && bytes[first] & 0x80 != 0
      }
      return found.beginsPicture(after: slice)
    case .accessUnitDelimiter: return hasSlices || hasDelimiter
    case .sequenceParameterSet, .pictureParameterSet, .supplementalEnhancementInformation: return hasSlices
    default: return hasSlices && (14...18).contains(type.rawValue)
    }
  }

  /// The header of the present NAL unit of HEVC; nil where it is broken, or not there yet.
  private var hevcHeader: HEVCNALUnitHeader? {
    bytes.withUnsafeBytes {
      HEVCNALUnitHeader(UnsafeRawBufferPointer(rebasing: $0[(start + AnnexB.startCode.count)...]))
    }
  }

  /// Decides whether the present NAL unit begins an access unit (ITU-T H.265 clause 7.4.2.4.4). A slice tells it by its first
  /// bit.
  private mutating func classifyHEVC(isComplete: Bool, _ deliver: (EncodedPicture) -> Void) {
    let first = start + AnnexB.startCode.count + HEVCNALUnitHeader.byteCount
    guard isComplete || bytes.count > first else { return }
    let header = hevcHeader
    let type = header?.layerID == 0 ? header?.type : nil
    let isSlice = type?.isSlice == true
    if begins(type, isFirst: isSlice && bytes.count > first && bytes[first] & 0x80 != 0) { separate(deliver) }
    place = .known
    guard units < limits.nalUnits else { return refuse() }
    units += 1
    if isSlice {
      hasSlices = true
      if type?.isKeyFrame == true { isKeyFrame = true }
    }
    if type == .accessUnitDelimiter { hasDelimiter = true }
    if type == .endOfSequence || type == .endOfBitstream { hasEnded = true }
  }

  /// Returns `true` if a NAL unit of `type` begins an access unit; `type` is nil for further layers and a broken header.
  private func begins(_ type: HEVCNALUnitType?, isFirst: Bool) -> Bool {
    guard let type else { return false }
    if hasEnded { return type != .endOfSequence && type != .endOfBitstream }
    switch type {
    case _ where type.isSlice: return hasSlices && isFirst
    case .accessUnitDelimiter: return hasSlices || hasDelimiter
    case .videoParameterSet, .sequenceParameterSet, .pictureParameterSet, .prefixSupplementalEnhancementInformation:
      return hasSlices
    default: return hasSlices && ((41...44).contains(type.rawValue) || (48...55).contains(type.rawValue))
    }
  }

  // MARK: Access units

  /// Ends the access unit before the present NAL unit, which begins the next one.
  private mutating func separate(_ deliver: (EncodedPicture) -> Void) {
    let next = Array(bytes[start...])
    bytes.removeLast(bytes.count - start)
    endAccessUnit(deliver)
    (start, timestamp) = (0, unitTime)
    bytes += next
  }

  private mutating func endAccessUnit(_ deliver: (EncodedPicture) -> Void) {
    defer {
      // One large picture does not keep its memory for ever.
      bytes.removeAll(keepingCapacity: bytes.capacity <= max(Self.keptBytes, 4 * bytes.count))
      (slice, units, start) = (nil, 0, 0)
      (hasSlices, hasDelimiter, hasEnded, isDamaged, isKeyFrame) = (false, false, false, false, false)
    }
    guard !bytes.isEmpty || isDamaged else { return }
    counts.accessUnits &+= 1
    if isDamaged { counts.accessUnitsDamaged &+= 1 }
    // A copy of its own: it is no larger than it must be, and the reader's memory stays the reader's.
    let copy = bytes.withUnsafeBytes { [UInt8]($0) }
    deliver(
      EncodedPicture(
        annexB: copy, codec: codec, timestamp: timestamp, captured: .now(), isKeyFrame: isKeyFrame,
        isDamaged: isDamaged))
  }
}

extension NALUnitType {
  /// Coded slice data partition A, which begins with a slice header.
  static let partitionA = NALUnitType(rawValue: 2)
  /// End of sequence: the next picture is an IDR picture.
  static let endOfSequence = NALUnitType(rawValue: 10)
  /// End of stream.
  static let endOfStream = NALUnitType(rawValue: 11)
}
