import Media

/// Reassembles access units from RTP packets of RFC 6184, packetization-modes 0 and 1.
///
/// The depacketizer takes packets in the order of their sequence numbers. A late packet is ignored and counted. A gap
/// in the sequence numbers marks the access units on both sides as damaged, because the loss may have hit either; not one
/// whose marker has come, nor an IDR picture that begins with its parameter sets. No input causes a trap or takes more memory
/// than the limits allow.
public struct H264Depacketizer: ~Copyable {
  /// The limits of one access unit.
  public typealias Limits = AccessUnitLimits

  /// The accepted payload type.
  public let payloadType: RTPPayloadType
  /// The limits of one access unit.
  public var limits: Limits { assembly.limits }
  /// The number of missing sequence numbers.
  public var packetsLost: UInt64 { assembly.packetsLost }
  /// The number of packets that were ignored because they came after a later packet, or twice.
  public var packetsLate: UInt64 { assembly.packetsLate }
  /// The number of accepted packets, refused ones included.
  public var packetsReceived: UInt64 { assembly.packetsReceived }

  private var assembly: AccessUnitAssembly

  /// Creates a depacketizer for packets of `payloadType`.
  public init(payloadType: RTPPayloadType = .h264, limits: Limits = Limits()) {
    self.payloadType = payloadType
    assembly = AccessUnitAssembly(.h264, limits: limits)
  }

  /// The memory held for the access unit being collected, in bytes.
  public var memoryBytes: Int { assembly.memoryBytes }

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
    guard assembly.follow(header, deliver: deliver) else { return }
    var refusal: H264DepacketizerError?
    do { try take(parsed.payload) } catch {
      assembly.isDamaged = true
      refusal = error
    }
    // The marker also ends the access unit of a refused packet.
    if header.marker { assembly.close(deliver) }
    if let refusal { throw refusal }
  }

  /// Lends the collected part of the last access unit to `deliver`, for a stream that ends without a marker.
  public mutating func finish(deliver: (borrowing ReceivedAccessUnit) -> Void) {
    assembly.close(deliver)
  }

  private mutating func take(_ payload: UnsafeRawBufferPointer) throws(H264DepacketizerError) {
    guard let first = payload.first else { throw .empty }
    let type = first & 0x1f
    if type != NALUnitType.fragmentationUnitA.rawValue { assembly.dropFragments() }
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
      assembly.dropFragments()
      throw .fragment(header: 0, payload: payload.count)
    }
    let header = payload[1]
    let (isFirst, isLast, type) = (header & 0x80 != 0, header & 0x40 != 0, header & 0x1f)
    // Section 5.8 forbids a fragment that is both first and last.
    guard !(isFirst && isLast), (1...23).contains(type) else {
      assembly.dropFragments()
      throw .fragment(header: header, payload: payload.count)
    }
    let rest = UnsafeRawBufferPointer(rebasing: payload[2...])
    do throws(AccessUnitAssembly.Overflow) {
      if isFirst {
        try assembly.beginFragments((payload[0] & 0xe0 | type, nil), rest)
      } else {
        // A fragment of another NAL unit: the gap before it is no error of its own.
        if let begun = assembly.fragmentedHeader, begun & 0x1f != type { assembly.dropFragments() }
        try assembly.appendFragment(rest)
      }
    } catch {
      throw refusal(error)
    }
    if isLast { assembly.endFragments() }
  }

  private mutating func append(_ unit: UnsafeRawBufferPointer) throws(H264DepacketizerError) {
    do throws(AccessUnitAssembly.Overflow) { try assembly.append(unit) } catch { throw refusal(error) }
  }

  private func refusal(_ overflow: AccessUnitAssembly.Overflow) -> H264DepacketizerError {
    switch overflow {
    case .nalUnitSize: .nalUnitSize(limit: limits.nalBytes)
    case .accessUnitSize: .accessUnitSize(limit: limits.unitBytes)
    case .nalUnits: .nalUnits(limit: limits.nalUnits)
    }
  }
}
