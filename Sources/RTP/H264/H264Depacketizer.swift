public import Media

/// Reassembles access units from RTP packets of RFC 6184, packetization-modes 0 and 1.
///
/// The depacketizer takes packets in the order of their sequence numbers. A late packet is ignored and counted. A gap
/// in the sequence numbers marks the access units on both sides as damaged, because the loss may have hit either. No
/// input causes a trap or takes more memory than the limits allow.
public struct H264Depacketizer: ~Copyable {
  /// The limits of one access unit; larger ones are refused.
  public struct Limits: Hashable, Sendable {
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

  /// The accepted payload type.
  public let payloadType: RTPPayloadType
  /// The limits of one access unit.
  public let limits: Limits
  /// The number of missing sequence numbers.
  public private(set) var packetsLost: UInt64 = 0
  /// The number of packets that were ignored because they came after a later packet, or twice.
  public private(set) var packetsLate: UInt64 = 0
  /// The number of accepted packets, refused ones included.
  public private(set) var packetsReceived: UInt64 = 0

  /// The greatest distance back at which a sequence number is a late packet, not a restart: RFC 3550 appendix A.1.
  private static let misorderLimit: UInt16 = 100

  private var source: UInt32?
  private var expectedSequenceNumber: UInt16 = 0
  // The access unit being collected: its Annex B bytes, and the ranges of its complete NAL units in them.
  private var bytes: [UInt8] = []
  private var ranges: [Range<Int>] = []
  private var timestamp: UInt32 = 0
  private var isOpen = false
  private var isDamaged = false
  /// The offset in `bytes` of the NAL unit whose fragments are being collected.
  private var fragmentStart: Int?

  /// Creates a depacketizer for packets of `payloadType`.
  public init(payloadType: RTPPayloadType = .h264, limits: Limits = Limits()) {
    self.payloadType = payloadType
    self.limits = limits
  }

  /// The memory held for the access unit being collected, in bytes.
  public var memoryBytes: Int { bytes.capacity + ranges.capacity * MemoryLayout<Range<Int>>.stride }

  /// Takes one RTP packet and lends each access unit that the packet completes to `deliver`. The marker bit completes
  /// the current access unit. A new timestamp or source without a marker completes the one before.
  ///
  /// - Throws: ``H264DepacketizerError`` for a refused packet. Its access unit is then reported as damaged, and the
  ///   next packet can follow as usual.
  public mutating func receive(
    _ packet: UnsafeRawBufferPointer, deliver: (borrowing ReceivedAccessUnit) -> Void
  ) throws(H264DepacketizerError) {
    let parsed: RTPPacket
    do { parsed = try RTPPacket(parsing: packet) } catch { throw .packet(error) }
    let header = parsed.header
    guard header.payloadType == payloadType else {
      throw .payloadType(header.payloadType, expected: payloadType)
    }
    guard follow(header, deliver: deliver) else { return }
    packetsReceived &+= 1
    var refusal: H264DepacketizerError?
    do { try take(parsed.payload) } catch {
      isDamaged = true
      refusal = error
    }
    // The marker also ends the access unit of a refused packet.
    if header.marker { close(deliver) }
    if let refusal { throw refusal }
  }

  /// Lends the collected part of the last access unit to `deliver`, for a stream that ends without a marker.
  public mutating func finish(deliver: (borrowing ReceivedAccessUnit) -> Void) {
    close(deliver)
  }

  /// Finds the packet's place in the stream and opens its access unit. Returns `false` for a late packet.
  private mutating func follow(
    _ header: RTPHeader, deliver: (borrowing ReceivedAccessUnit) -> Void
  ) -> Bool {
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
      isDamaged = gap != 0
    }
    return true
  }

  /// Marks the access unit as damaged and drops the NAL unit whose next fragment is missing.
  private mutating func breakOff() {
    guard isOpen else { return }
    isDamaged = true
    dropFragments()
  }

  private mutating func dropFragments() {
    guard let start = fragmentStart else { return }
    bytes.removeLast(bytes.count - start + AnnexB.startCodeBytes)
    fragmentStart = nil
    isDamaged = true
  }

  private mutating func close(_ deliver: (borrowing ReceivedAccessUnit) -> Void) {
    guard isOpen else { return }
    dropFragments()
    bytes.withUnsafeBytes { bytes in
      ranges.withUnsafeBufferPointer { ranges in
        deliver(ReceivedAccessUnit(annexB: bytes, ranges: ranges, timestamp: timestamp, isDamaged: isDamaged))
      }
    }
    bytes.removeAll(keepingCapacity: true)
    ranges.removeAll(keepingCapacity: true)
    isOpen = false
  }

  private mutating func take(_ payload: UnsafeRawBufferPointer) throws(H264DepacketizerError) {
    guard let first = payload.first else { throw .empty }
    let type = first & 0x1f
    if type != NALUnitType.fragmentationUnitA.rawValue { dropFragments() }
    switch type {
    case 1...23: try append(payload)
    case NALUnitType.singleTimeAggregationA.rawValue: try appendAggregate(payload)
    case NALUnitType.fragmentationUnitA.rawValue: try appendFragment(payload)
    default: throw .structure(type)
    }
  }

  /// Appends the NAL units of a STAP-A, RFC 6184 section 5.7.1. Appends none if one of them is malformed.
  private mutating func appendAggregate(_ payload: UnsafeRawBufferPointer) throws(H264DepacketizerError) {
    var offset = 1
    repeat {
      guard let size = payload.bigEndian(UInt16.self, at: offset), size > 0,
        Int(size) <= payload.count - offset - 2
      else { throw .aggregate(offset: offset, payload: payload.count) }
      let type = payload[offset + 2] & 0x1f
      guard (1...23).contains(type) else { throw .structure(type) }
      offset += 2 + Int(size)
    } while offset < payload.count
    offset = 1
    while let size = payload.bigEndian(UInt16.self, at: offset) {
      try append(UnsafeRawBufferPointer(rebasing: payload[offset + 2..<offset + 2 + Int(size)]))
      offset += 2 + Int(size)
    }
  }

  /// Appends one FU-A, RFC 6184 section 5.8.
  private mutating func appendFragment(_ payload: UnsafeRawBufferPointer) throws(H264DepacketizerError) {
    guard payload.count >= 2 else {
      dropFragments()
      throw .fragment(header: 0, payload: payload.count)
    }
    let header = payload[1]
    let (isFirst, isLast, type) = (header & 0x80 != 0, header & 0x40 != 0, header & 0x1f)
    // Section 5.8 forbids a fragment that is both first and last.
    guard !(isFirst && isLast), (1...23).contains(type) else {
      dropFragments()
      throw .fragment(header: header, payload: payload.count)
    }
    let rest = UnsafeRawBufferPointer(rebasing: payload[2...])
    if isFirst {
      dropFragments()
      try checkRoom(nalBytes: 1 + rest.count, more: AnnexB.startCodeBytes + 1 + rest.count)
      bytes.append(contentsOf: AnnexB.startCode)
      fragmentStart = bytes.count
      bytes.append(payload[0] & 0xe0 | type)
      bytes.append(contentsOf: rest)
    } else {
      // The first fragment was lost, or this fragment belongs to another NAL unit. The gap caused both, so neither is
      // an error of its own.
      guard let start = fragmentStart, bytes[start] & 0x1f == type else {
        dropFragments()
        isDamaged = true
        return
      }
      do {
        try checkRoom(nalBytes: bytes.count - start + rest.count, more: rest.count)
      } catch {
        dropFragments()
        throw error
      }
      bytes.append(contentsOf: rest)
    }
    if isLast, let start = fragmentStart {
      ranges.append(start..<bytes.count)
      fragmentStart = nil
    }
  }

  /// Appends one complete NAL unit.
  private mutating func append(_ unit: UnsafeRawBufferPointer) throws(H264DepacketizerError) {
    try checkRoom(nalBytes: unit.count, more: AnnexB.startCodeBytes + unit.count)
    bytes.append(contentsOf: AnnexB.startCode)
    ranges.append(bytes.count..<bytes.count + unit.count)
    bytes.append(contentsOf: unit)
  }

  private func checkRoom(nalBytes: Int, more: Int) throws(H264DepacketizerError) {
    guard nalBytes <= limits.nalBytes else { throw .nalUnitSize(limit: limits.nalBytes) }
    guard more <= limits.unitBytes - bytes.count else { throw .accessUnitSize(limit: limits.unitBytes) }
    guard ranges.count < limits.nalUnits else { throw .nalUnits(limit: limits.nalUnits) }
  }
}

extension AnnexB {
  /// The length of ``startCode``.
  fileprivate static let startCodeBytes = 4
}
