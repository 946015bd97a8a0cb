import Media

/// The header of a NAL unit of one codec, which is the payload header of an RTP packet too: what RFC 6184 (H.264) and RFC 7798
/// (HEVC) do not have in common.
protocol PayloadHeader {
  /// The size of the header in bytes.
  static var byteCount: Int { get }
  /// `true` for a parameter set.
  var isParameterSet: Bool { get }
  /// `false` for a NAL unit that the packetizer omits.
  var isSent: Bool { get }
  /// The type of the NAL unit, as the FU header repeats it.
  var typeBits: UInt8 { get }
  /// The payload header of this NAL unit's fragments.
  var fragment: Self { get }
  /// The payload header of an aggregation of NAL units whose ``joined(with:)`` header this is.
  var aggregation: Self { get }

  /// Reads the header of `unit`; nil for a broken one.
  init?(_ unit: NALUnit)

  /// Returns a header that speaks for both NAL units of an aggregation.
  func joined(with other: Self) -> Self

  /// Writes the ``byteCount`` bytes of the header.
  func write(to memory: UnsafeMutableRawPointer)
}

/// A packetizer of the NAL units of one codec: what RFC 6184 (H.264) and RFC 7798 (HEVC) have in common.
struct NALUnitPacketizer<Header: PayloadHeader>: Sendable {
  /// The stream's sequence numbers and counts.
  var stream: RTPStream
  /// The maximum size of a packet in bytes, RTP header included.
  let maximumPacketSize: Int

  /// The maximum size of a packet's payload in bytes.
  private var payloadLimit: Int { maximumPacketSize - RTPHeader.byteCount }

  /// Appends the packets of `unit` to `batch`, which borrows the unit's bytes.
  mutating func packetize(_ unit: borrowing AccessUnit, into batch: PacketBatch) {
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

  /// Returns the number of parameter sets from `start` on that fit one aggregation, and the bytes of its payload.
  private func parameterSetRun(_ units: UnsafeBufferPointer<NALUnit>, from start: Int) -> (count: Int, bytes: Int) {
    var end = start
    var bytes = Header.byteCount
    while end < units.count {
      guard let header = Header(units[end]), header.isParameterSet else { break }
      let grown = bytes + 2 + units[end].bytes.count
      guard grown <= payloadLimit else { break }
      bytes = grown
      end += 1
    }
    return (end - start, bytes)
  }

  /// Appends one aggregation of NAL units that were counted before. They are small enough to be copied.
  private mutating func appendAggregate(
    _ units: UnsafeBufferPointer<NALUnit>, bytes: Int, timestamp: UInt32, into batch: PacketBatch
  ) {
    let memory = batch.append(headerBytes: RTPHeader.byteCount + bytes)
    stream.nextHeader(marker: false, timestamp: timestamp, payloadBytes: bytes).write(to: memory)
    var joined: Header?
    var offset = RTPHeader.byteCount + Header.byteCount
    for unit in units {
      if let header = Header(unit) { joined = joined?.joined(with: header) ?? header }
      memory.storeBigEndian(UInt16(truncatingIfNeeded: unit.bytes.count), at: offset)
      UnsafeMutableRawBufferPointer(start: memory + offset + 2, count: unit.bytes.count).copyMemory(from: unit.bytes)
      offset += 2 + unit.bytes.count
    }
    joined?.aggregation.write(to: memory + RTPHeader.byteCount)
  }

  /// Appends one NAL unit: whole if it fits, otherwise in fragments.
  private mutating func appendNALUnit(_ unit: NALUnit, timestamp: UInt32, into batch: PacketBatch) {
    guard let header = Header(unit), header.isSent else { return }
    let copies = header.isParameterSet
    let bytes = unit.bytes
    guard bytes.count > payloadLimit else {
      _ = append(bytes, headerBytes: 0, copies: copies, timestamp: timestamp, to: batch)
      return
    }
    // The NAL unit's own header is not sent: payload header and FU header replace it. All fragments but the last
    // have one size, as segmentation offload requires (udp(7), UDP_SEGMENT).
    let rest = UnsafeRawBufferPointer(rebasing: bytes[Header.byteCount...])
    let headerBytes = Header.byteCount + 1
    let largest = payloadLimit - headerBytes
    let fragments = (rest.count + largest - 1) / largest
    let size = (rest.count + fragments - 1) / fragments
    let payloadHeader = header.fragment
    var start = 0
    while start < rest.count {
      let end = min(start + size, rest.count)
      let memory = append(
        UnsafeRawBufferPointer(rebasing: rest[start..<end]), headerBytes: headerBytes, copies: copies,
        timestamp: timestamp, to: batch)
      let edge: UInt8 = start == 0 ? 0x80 : (end == rest.count ? 0x40 : 0)
      payloadHeader.write(to: memory + RTPHeader.byteCount)
      memory.storeBytes(
        of: edge | header.typeBits, toByteOffset: RTPHeader.byteCount + Header.byteCount, as: UInt8.self)
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
