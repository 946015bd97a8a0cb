public import Media

/// The limits of one access unit that a depacketizer collects; larger ones are refused.
public struct AccessUnitLimits: Hashable, Sendable {
  /// The maximum number of bytes of one NAL unit.
  public var nalBytes: Int
  /// The maximum number of NAL units of one access unit.
  public var nalUnits: Int
  /// The maximum number of bytes of one access unit, start codes included.
  public var unitBytes: Int

  /// Creates limits that no camera reaches.
  public init(nalBytes: Int = 8 << 20, nalUnits: Int = AccessUnit.nalUnitLimit, unitBytes: Int = 16 << 20) {
    self.nalBytes = nalBytes
    self.nalUnits = nalUnits
    self.unitBytes = unitBytes
  }
}

/// The access unit that a depacketizer of video collects, and the sequence of its packets: what does not depend on the
/// payload format.
struct AccessUnitAssembly: ~Copyable {
  /// A NAL unit or an access unit beyond the limits.
  enum Overflow: Error {
    case nalUnitSize
    case accessUnitSize
    case nalUnits
  }

  /// The limits of one access unit.
  let limits: AccessUnitLimits
  /// The codec of the access units.
  let codec: VideoCodec
  /// The number of missing sequence numbers.
  private(set) var packetsLost: UInt64 = 0
  /// The number of packets that were ignored because they came after a later packet, or twice.
  private(set) var packetsLate: UInt64 = 0
  /// The number of accepted packets, refused ones included.
  private(set) var packetsReceived: UInt64 = 0
  /// `true` if a part of the access unit may be missing, other than before its first packet.
  var isDamaged = false

  /// The greatest distance back at which a sequence number is a late packet, not a restart: RFC 3550 appendix A.1.
  private static let misorderLimit: UInt16 = 100
  /// The length of a start code.
  private static let startCodeBytes = 4

  private var source: UInt32?
  private var expectedSequenceNumber: UInt16 = 0
  // The access unit being collected: its Annex B bytes, and the ranges of its complete NAL units in them.
  private var bytes: [UInt8] = []
  private var ranges: [Range<Int>] = []
  private var timestamp: UInt32 = 0
  private var isOpen = false
  /// `true` if packets are missing right before the access unit, whose first ones they may be.
  private var followsGap = false
  /// The offset in `bytes` of the NAL unit whose fragments are being collected.
  private var fragmentStart: Int?

  init(_ codec: VideoCodec, limits: AccessUnitLimits) {
    (self.codec, self.limits) = (codec, limits)
  }

  /// The memory held for the access unit being collected, in bytes.
  var memoryBytes: Int { bytes.capacity + ranges.capacity * MemoryLayout<Range<Int>>.stride }

  // MARK: Packets

  /// Finds the packet's place in the stream and opens its access unit. Returns `false` for a late packet.
  mutating func follow(_ header: RTPHeader, deliver: (borrowing ReceivedAccessUnit) -> Void) -> Bool {
    var gap: UInt16 = 0
    var isRestart = false
    if source == header.ssrc {
      gap = header.sequenceNumber &- expectedSequenceNumber
      if gap > UInt16.max - Self.misorderLimit {
        packetsLate &+= 1
        return false
      }
      // A gap of more than half the numbers is no loss: the sender restarted.
      if gap < 0x8000 { packetsLost &+= UInt64(gap) }
    } else {
      isRestart = source != nil
      source = header.ssrc
    }
    expectedSequenceNumber = header.sequenceNumber &+ 1
    if gap != 0 || isRestart { breakOff() }
    if isOpen, isRestart || header.timestamp != timestamp { close(deliver) }
    if !isOpen {
      isOpen = true
      timestamp = header.timestamp
      (isDamaged, followsGap) = (false, gap != 0)
    }
    packetsReceived &+= 1
    return true
  }

  /// Marks the access unit as damaged and drops the NAL unit whose next fragment is missing.
  private mutating func breakOff() {
    guard isOpen else { return }
    isDamaged = true
    dropFragments()
  }

  /// Lends the access unit to `deliver`, and begins anew. Does nothing without one.
  mutating func close(_ deliver: (borrowing ReceivedAccessUnit) -> Void) {
    guard isOpen else { return }
    dropFragments()
    bytes.withUnsafeBytes { bytes in
      ranges.withUnsafeBufferPointer { ranges in
        var unit = ReceivedAccessUnit(
          annexB: bytes, ranges: ranges, codec: codec, timestamp: timestamp, isDamaged: isDamaged)
        if followsGap, !unit.isWholeKeyFrame { unit.isDamaged = true }
        deliver(unit)
      }
    }
    bytes.removeAll(keepingCapacity: true)
    ranges.removeAll(keepingCapacity: true)
    isOpen = false
  }

  // MARK: NAL units

  /// Appends one complete NAL unit.
  mutating func append(_ unit: UnsafeRawBufferPointer) throws(Overflow) {
    try checkRoom(nalBytes: unit.count, more: Self.startCodeBytes + unit.count)
    bytes.append(contentsOf: AnnexB.startCode)
    ranges.append(bytes.count..<bytes.count + unit.count)
    bytes.append(contentsOf: unit)
  }

  /// The first byte of the NAL unit whose fragments are being collected; nil without one.
  var fragmentedHeader: UInt8? { fragmentStart.map { bytes[$0] } }

  /// Begins a NAL unit of fragments with its header of one or two bytes.
  mutating func beginFragments(_ header: (UInt8, UInt8?), _ rest: UnsafeRawBufferPointer) throws(Overflow) {
    dropFragments()
    let count = (header.1 == nil ? 1 : 2) + rest.count
    try checkRoom(nalBytes: count, more: Self.startCodeBytes + count)
    bytes.append(contentsOf: AnnexB.startCode)
    fragmentStart = bytes.count
    bytes.append(header.0)
    if let second = header.1 { bytes.append(second) }
    bytes.append(contentsOf: rest)
  }

  /// Appends a further fragment of the NAL unit. Without one, the first fragment was lost.
  mutating func appendFragment(_ rest: UnsafeRawBufferPointer) throws(Overflow) {
    guard let start = fragmentStart else { return isDamaged = true }
    do {
      try checkRoom(nalBytes: bytes.count - start + rest.count, more: rest.count)
    } catch {
      dropFragments()
      throw error
    }
    bytes.append(contentsOf: rest)
  }

  /// Ends the NAL unit of fragments. Does nothing without one.
  mutating func endFragments() {
    guard let start = fragmentStart else { return }
    ranges.append(start..<bytes.count)
    fragmentStart = nil
  }

  /// Drops the NAL unit whose fragments are being collected, and marks the access unit as damaged. Does nothing without one.
  mutating func dropFragments() {
    guard let start = fragmentStart else { return }
    bytes.removeLast(bytes.count - start + Self.startCodeBytes)
    fragmentStart = nil
    isDamaged = true
  }

  private func checkRoom(nalBytes: Int, more: Int) throws(Overflow) {
    guard nalBytes <= limits.nalBytes else { throw .nalUnitSize }
    guard more <= limits.unitBytes - bytes.count else { throw .accessUnitSize }
    guard ranges.count < limits.nalUnits else { throw .nalUnits }
  }
}
