public import Media

/// Cuts access units into RTP packets by RFC 6184, packetization-mode 1 (non-interleaved).
///
/// - A NAL unit that fits goes alone (section 5.6); parameter sets in a row go together in one STAP-A (5.7.1)
///   as far as they fit; a NAL unit that is too large goes in FU-A fragments (5.8) of one size, as few as it
///   takes and each no larger than that needs; the last one has what is left.
/// - The last packet of the access unit has the marker bit (5.1).
/// - Parameter sets are copied, everything else is lent: they may come from where a stream's are kept.
/// - Access unit delimiters are left out: the marker and the timestamp say the same. So are NAL unit types 0 and
///   24…31, which H.264 leaves unspecified and RFC 6184 uses for its own structures.
public struct H264Packetizer: Sendable {
  /// The packet sizes that are taken.
  public static let packetSizeLimits = PacketSize.minimum...PacketSize.maximum

  /// The stream's numbering and counts.
  public private(set) var stream: RTPStream
  /// The most bytes that a packet has, RTP header included.
  public let maximumPacketSize: Int

  /// FU indicator and FU header, RFC 6184 section 5.8.
  private static let fragmentHeaderBytes = 2

  /// A packetizer of `stream` that makes packets of at most `maximumPacketSize` bytes.
  ///
  /// - Throws: ``PacketizerError`` for a packet size outside ``packetSizeLimits``.
  public init(
    stream: RTPStream = RTPStream(payloadType: .h264), maximumPacketSize: Int = PacketSize.standard
  ) throws(PacketizerError) {
    guard Self.packetSizeLimits.contains(maximumPacketSize) else {
      throw .packetSize(maximumPacketSize, limits: Self.packetSizeLimits)
    }
    self.stream = stream
    self.maximumPacketSize = maximumPacketSize
  }

  /// Goes on as another source: see ``RTPStream``.
  package mutating func changeSource(to ssrc: UInt32, firstSequenceNumber: UInt16) {
    stream.changeSource(to: ssrc, firstSequenceNumber: firstSequenceNumber)
  }

  /// Appends the packets of `unit` to `batch`, which borrows the unit's bytes. The parts of a picture come one after the
  /// other, and to the same packets as if they had come as one.
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

  /// How many parameter sets from `start` on fit one STAP-A, and the bytes of its payload.
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

  /// One STAP-A of NAL units that were counted before; small enough to be copied whole.
  private mutating func appendAggregate(
    _ units: UnsafeBufferPointer<NALUnit>, bytes: Int, timestamp: UInt32, into batch: PacketBatch
  ) {
    let memory = batch.append(headerBytes: RTPHeader.byteCount + bytes)
    stream.nextHeader(marker: false, timestamp: timestamp, payloadBytes: bytes).write(to: memory)
    // Section 5.7: the F bits or'ed, the largest NRI.
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

  /// One NAL unit by itself: whole where it fits, else in fragments.
  private mutating func appendNALUnit(_ unit: NALUnit, timestamp: UInt32, into batch: PacketBatch) {
    guard (1...23).contains(unit.type.rawValue), unit.type != .accessUnitDelimiter else { return }
    let copies = unit.type == .sequenceParameterSet || unit.type == .pictureParameterSet
    let bytes = unit.bytes
    guard bytes.count > maximumPacketSize - RTPHeader.byteCount else {
      _ = append(bytes, headerBytes: 0, copies: copies, timestamp: timestamp, to: batch)
      return
    }
    // The NAL unit's own header byte is not sent: FU indicator and FU header stand for it. All fragments but the last
    // have one size, as segmentation offload wants it (udp(7), UDP_SEGMENT).
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

  /// A packet of `payload` behind `headerBytes` that the caller fills at once, RTP's own header before them.
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
