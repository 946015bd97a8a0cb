public import Media

/// Packetizes access units as RTP packets by RFC 7798, in the order of decoding (`sprop-max-don-diff` 0).
///
/// - A NAL unit that fits is a packet of its own (section 4.4.1).
/// - Consecutive parameter sets share one aggregation packet (4.4.2) as far as they fit.
/// - A NAL unit that is too large becomes fragmentation units (4.4.3), as few as possible. All have one size, no larger than
///   necessary; the last one has the rest.
/// - The last packet of the access unit has the marker bit (4.1).
/// - The packetizer copies parameter sets, because the stream may own their bytes. It lends all other bytes.
/// - The packetizer omits access unit delimiters, because the marker and the timestamp carry the same information. It
///   also omits NAL units with a broken header, and those of the types 48…63, which H.265 leaves unspecified and RFC 7798 uses for
///   its own structures.
public struct HEVCPacketizer: Sendable {
  /// The permitted packet sizes.
  public static let packetSizeLimits = PacketSize.minimum...PacketSize.maximum

  /// The stream's sequence numbers and counts.
  public private(set) var stream: RTPStream
  /// The maximum size of a packet in bytes, RTP header included.
  public let maximumPacketSize: Int

  /// The bytes of the payload header and the FU header, RFC 7798 section 4.4.3.
  private static let fragmentHeaderBytes = HEVCNALUnitHeader.byteCount + 1

  /// Creates a packetizer of `stream` that makes packets of at most `maximumPacketSize` bytes.
  ///
  /// - Throws: ``PacketizerError`` for a packet size outside ``packetSizeLimits``.
  public init(
    stream: RTPStream = RTPStream(payloadType: .hevc), maximumPacketSize: Int = PacketSize.standard
  ) throws(PacketizerError) {
    self.stream = stream
    self.maximumPacketSize = try PacketSize.checked(maximumPacketSize, Self.packetSizeLimits)
  }

  /// Continues as another source; see ``RTPStream``.
  package mutating func changeSource(to ssrc: UInt32, firstSequenceNumber: UInt16) {
    stream.changeSource(to: ssrc, firstSequenceNumber: firstSequenceNumber)
  }

  /// Appends the packets of `unit` to `batch`, which borrows the unit's bytes. The parts of a picture follow one
  /// another and give the same packets as the whole picture would.
  public mutating func packetize(_ unit: borrowing AccessUnit, into batch: PacketBatch) {
    let timestamp = stream.rtpTimestamp(of: unit.timestamp)
    let units = unit.nalUnits
    let packetsBefore = batch.count
    var index = 0
    while index < units.count {
      let aggregated = parameterSetRun(units, from: index)
      if aggregated.count > 1 {
        appendAggregate(
          UnsafeBufferPointer(rebasing: units[index..<index + aggregated.count]), bytes: aggregated.bytes,
          timestamp: timestamp, into: batch)
        index += aggregated.count
      } else {
        appendNALUnit(units[index], timestamp: timestamp, into: batch)
        index += 1
      }
    }
    if batch.count > packetsBefore, unit.isLastPart { batch.markLast() }
  }

  private static func isParameterSet(_ type: HEVCNALUnitType) -> Bool {
    type == .videoParameterSet || type == .sequenceParameterSet || type == .pictureParameterSet
  }

  /// Returns the number of parameter sets from `start` on that fit one aggregation packet, and the bytes of its payload.
  private func parameterSetRun(_ units: UnsafeBufferPointer<NALUnit>, from start: Int) -> (count: Int, bytes: Int) {
    var end = start
    var bytes = HEVCNALUnitHeader.byteCount
    while end < units.count {
      guard let header = HEVCNALUnitHeader(units[end]), Self.isParameterSet(header.type) else { break }
      let grown = bytes + 2 + units[end].bytes.count
      guard grown <= maximumPacketSize - RTPHeader.byteCount else { break }
      bytes = grown
      end += 1
    }
    return (end - start, bytes)
  }

  /// Appends one aggregation packet of NAL units that were counted before. They are small enough to be copied.
  private mutating func appendAggregate(
    _ units: UnsafeBufferPointer<NALUnit>, bytes: Int, timestamp: UInt32, into batch: PacketBatch
  ) {
    let memory = batch.append(headerBytes: RTPHeader.byteCount + bytes)
    stream.nextHeader(marker: false, timestamp: timestamp, payloadBytes: bytes).write(to: memory)
    // Section 4.4.2: layer and temporal identifier are the lowest of all.
    var lowest = HEVCNALUnitHeader(type: .aggregationPacket, layerID: .max, temporalID: .max)
    var offset = RTPHeader.byteCount + HEVCNALUnitHeader.byteCount
    for unit in units {
      if let header = HEVCNALUnitHeader(unit) {
        lowest.layerID = min(lowest.layerID, header.layerID)
        lowest.temporalID = min(lowest.temporalID, header.temporalID)
      }
      memory.storeBigEndian(UInt16(truncatingIfNeeded: unit.bytes.count), at: offset)
      UnsafeMutableRawBufferPointer(start: memory + offset + 2, count: unit.bytes.count).copyMemory(from: unit.bytes)
      offset += 2 + unit.bytes.count
    }
    write(lowest, to: memory)
  }

  /// Writes a payload header behind the RTP header.
  private func write(_ header: HEVCNALUnitHeader, to memory: UnsafeMutableRawPointer) {
    let (first, second) = header.bytes
    memory.storeBytes(of: first, toByteOffset: RTPHeader.byteCount, as: UInt8.self)
    memory.storeBytes(of: second, toByteOffset: RTPHeader.byteCount + 1, as: UInt8.self)
  }

  /// Appends one NAL unit: whole if it fits, otherwise in fragments.
  private mutating func appendNALUnit(_ unit: NALUnit, timestamp: UInt32, into batch: PacketBatch) {
    guard var header = HEVCNALUnitHeader(unit), header.type.rawValue < HEVCNALUnitType.aggregationPacket.rawValue,
      header.type != .accessUnitDelimiter
    else { return }
    let type = header.type
    let copies = Self.isParameterSet(type)
    let bytes = unit.bytes
    guard bytes.count > maximumPacketSize - RTPHeader.byteCount else {
      _ = append(bytes, headerBytes: 0, copies: copies, timestamp: timestamp, to: batch)
      return
    }
    // The NAL unit's own header is not sent: payload header and FU header replace it. All fragments but the last
    // have one size, as segmentation offload requires (udp(7), UDP_SEGMENT).
    let rest = UnsafeRawBufferPointer(rebasing: bytes[HEVCNALUnitHeader.byteCount...])
    let largest = maximumPacketSize - RTPHeader.byteCount - Self.fragmentHeaderBytes
    let fragments = (rest.count + largest - 1) / largest
    let size = (rest.count + fragments - 1) / fragments
    header.type = .fragmentationUnit
    var start = 0
    while start < rest.count {
      let end = min(start + size, rest.count)
      let memory = append(
        UnsafeRawBufferPointer(rebasing: rest[start..<end]), headerBytes: Self.fragmentHeaderBytes, copies: copies,
        timestamp: timestamp, to: batch)
      let edge: UInt8 = start == 0 ? 0x80 : (end == rest.count ? 0x40 : 0)
      write(header, to: memory)
      memory.storeBytes(
        of: edge | type.rawValue, toByteOffset: RTPHeader.byteCount + HEVCNALUnitHeader.byteCount, as: UInt8.self)
      start = end
    }
  }

  /// Appends a packet of `payload` behind the RTP header and `headerBytes`, which the caller fills at once.
  private mutating func append(
    _ payload: UnsafeRawBufferPointer, headerBytes: Int, copies: Bool, timestamp: UInt32, to batch: PacketBatch
  ) -> UnsafeMutableRawPointer {
    let header = RTPHeader.byteCount + headerBytes
    let memory =
      copies
      ? batch.append(headerBytes: header + payload.count) : batch.append(headerBytes: header, lending: payload)
    if copies {
      UnsafeMutableRawBufferPointer(start: memory + header, count: payload.count).copyMemory(from: payload)
    }
    stream.nextHeader(marker: false, timestamp: timestamp, payloadBytes: headerBytes + payload.count).write(to: memory)
    return memory
  }
}
