public import Media

/// Packetizes access units as RTP packets by RFC 6184, packetization-mode 1 (non-interleaved).
///
/// - A NAL unit that fits is a packet of its own (section 5.6).
/// - Consecutive parameter sets share one STAP-A (5.7.1) as far as they fit.
/// - A NAL unit that is too large becomes FU-A fragments (5.8), as few as possible. All have one size, no larger than
///   necessary; the last one has the rest.
/// - The last packet of the access unit has the marker bit (5.1).
/// - The packetizer copies parameter sets, because the stream may own their bytes. It lends all other bytes.
/// - The packetizer omits access unit delimiters, because the marker and the timestamp carry the same information. It
///   also omits NAL unit types 0 and 24…31, which H.264 leaves unspecified and RFC 6184 uses for its own structures.
public struct H264Packetizer: Sendable {
  /// The permitted packet sizes.
  public static let packetSizeLimits = PacketSize.minimum...PacketSize.maximum

  /// The stream's sequence numbers and counts.
  public private(set) var stream: RTPStream
  /// The maximum size of a packet in bytes, RTP header included.
  public let maximumPacketSize: Int

  /// The bytes of the FU indicator and the FU header, RFC 6184 section 5.8.
  private static let fragmentHeaderBytes = 2

  /// Creates a packetizer of `stream` that makes packets of at most `maximumPacketSize` bytes.
  ///
  /// - Throws: ``PacketizerError`` for a packet size outside ``packetSizeLimits``.
  public init(
    stream: RTPStream = RTPStream(payloadType: .h264), maximumPacketSize: Int = PacketSize.standard
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

  /// Returns the number of parameter sets from `start` on that fit one STAP-A, and the bytes of its payload.
  private func parameterSetRun(_ units: UnsafeBufferPointer<NALUnit>, from start: Int) -> (count: Int, bytes: Int) {
    var end = start
    var bytes = 1
    while end < units.count {
      let unit = units[end]
      guard unit.type == .sequenceParameterSet || unit.type == .pictureParameterSet else { break }
      let grown = bytes + 2 + unit.bytes.count
      guard grown <= maximumPacketSize - RTPHeader.byteCount else { break }
      bytes = grown
      end += 1
    }
    return (end - start, bytes)
  }

  /// Appends one STAP-A of NAL units that were counted before. They are small enough to be copied.
  private mutating func appendAggregate(
    _ units: UnsafeBufferPointer<NALUnit>, bytes: Int, timestamp: UInt32, into batch: PacketBatch
  ) {
    let memory = batch.append(headerBytes: RTPHeader.byteCount + bytes)
    stream.nextHeader(marker: false, timestamp: timestamp, payloadBytes: bytes).write(to: memory)
    // Section 5.7: the F bit is the OR of all F bits, the NRI is the largest.
    var forbidden: UInt8 = 0
    var reference: UInt8 = 0
    var offset = RTPHeader.byteCount + 1
    for unit in units {
      forbidden |= unit.bytes[0] & 0x80
      reference = max(reference, unit.bytes[0] & 0x60)
      memory.storeBigEndian(UInt16(truncatingIfNeeded: unit.bytes.count), at: offset)
      UnsafeMutableRawBufferPointer(start: memory + offset + 2, count: unit.bytes.count).copyMemory(from: unit.bytes)
      offset += 2 + unit.bytes.count
    }
    memory.storeBytes(
      of: forbidden | reference | NALUnitType.singleTimeAggregationA.rawValue, toByteOffset: RTPHeader.byteCount,
      as: UInt8.self)
  }

  /// Appends one NAL unit: whole if it fits, otherwise in fragments.
  private mutating func appendNALUnit(_ unit: NALUnit, timestamp: UInt32, into batch: PacketBatch) {
    guard (1...23).contains(unit.type.rawValue), unit.type != .accessUnitDelimiter else { return }
    let copies = unit.type == .sequenceParameterSet || unit.type == .pictureParameterSet
    let bytes = unit.bytes
    guard bytes.count > maximumPacketSize - RTPHeader.byteCount else {
      _ = append(bytes, headerBytes: 0, copies: copies, timestamp: timestamp, to: batch)
      return
    }
    // The NAL unit's own header byte is not sent: FU indicator and FU header replace it. All fragments but the last
    // have one size, as segmentation offload requires (udp(7), UDP_SEGMENT).
    let rest = UnsafeRawBufferPointer(rebasing: bytes[1...])
    let largest = maximumPacketSize - RTPHeader.byteCount - Self.fragmentHeaderBytes
    let fragments = (rest.count + largest - 1) / largest
    let size = (rest.count + fragments - 1) / fragments
    let indicator = bytes[0] & 0xe0 | NALUnitType.fragmentationUnitA.rawValue
    var start = 0
    while start < rest.count {
      let end = min(start + size, rest.count)
      let memory = append(
        UnsafeRawBufferPointer(rebasing: rest[start..<end]), headerBytes: Self.fragmentHeaderBytes, copies: copies,
        timestamp: timestamp, to: batch)
      let edge: UInt8 = start == 0 ? 0x80 : (end == rest.count ? 0x40 : 0)
      memory.storeBytes(of: indicator, toByteOffset: RTPHeader.byteCount, as: UInt8.self)
      memory.storeBytes(of: edge | unit.type.rawValue, toByteOffset: RTPHeader.byteCount + 1, as: UInt8.self)
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
