import Media

/// Reassembles access units from RTP packets of RFC 7798 without decoding order numbers (`sprop-max-don-diff` 0): single NAL unit
/// packets, aggregation packets and fragmentation units.
///
/// The depacketizer takes packets in the order of their sequence numbers. A late packet is ignored and counted. A gap
/// in the sequence numbers marks the access units on both sides as damaged, because the loss may have hit either; not one whose
/// marker has come, nor an IDR or BLA picture that begins with its parameter sets. NAL units of further layers (`nuh_layer_id` above 0) are
/// left out, which is no damage. No input causes a trap or takes more memory than the limits allow.
public struct HEVCDepacketizer: ~Copyable {
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

  /// The types of NAL units that are no structure of RFC 7798: 0…47.
  private static let unitTypes = UInt8(0)...47

  /// Creates a depacketizer for packets of `payloadType`.
  public init(payloadType: RTPPayloadType = .hevc, limits: Limits = Limits()) {
    self.payloadType = payloadType
    assembly = AccessUnitAssembly(.hevc, limits: limits)
  }

  /// The memory held for the access unit being collected, in bytes.
  public var memoryBytes: Int { assembly.memoryBytes }

  /// Takes one RTP packet and lends each access unit that the packet completes to `deliver`. The marker bit completes
  /// the current access unit. A new timestamp or source without a marker completes the one before.
  ///
  /// - Throws: ``HEVCDepacketizerError`` for a refused packet. Its access unit is then reported as damaged, and the
  ///   next packet can follow as usual.
  public mutating func receive(
    _ packet: UnsafeRawBufferPointer, deliver: (borrowing ReceivedAccessUnit) -> Void
  ) throws(HEVCDepacketizerError) {
    let parsed: RTPPacket
    do { parsed = try RTPPacket(parsing: packet) } catch { throw .packet(error) }
    let header = parsed.header
    guard header.payloadType == payloadType else {
      throw .payloadType(header.payloadType, expected: payloadType)
    }
    guard assembly.follow(header, deliver: deliver) else { return }
    var refusal: HEVCDepacketizerError?
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

  private mutating func take(_ payload: UnsafeRawBufferPointer) throws(HEVCDepacketizerError) {
    guard !payload.isEmpty else { throw .empty }
    guard let header = HEVCNALUnitHeader(payload) else {
      assembly.dropFragments()
      throw .header(payload: payload.count)
    }
    if header.type != .fragmentationUnit { assembly.dropFragments() }
    switch header.type {
    case .aggregationPacket: try appendAggregate(payload)
    case .fragmentationUnit: try appendFragment(payload, header)
    case let type where Self.unitTypes.contains(type.rawValue): try append(payload, header)
    default: throw .structure(header.type.rawValue)
    }
  }

  /// Appends the NAL units of an aggregation packet, RFC 7798 section 4.4.2. Appends none if one of them is malformed.
  private mutating func appendAggregate(_ payload: UnsafeRawBufferPointer) throws(HEVCDepacketizerError) {
    var offset = HEVCNALUnitHeader.byteCount
    repeat {
      guard let size = payload.bigEndian(UInt16.self, at: offset), Int(size) <= payload.count - offset - 2,
        let header = HEVCNALUnitHeader(unit(payload, at: offset, size))
      else { throw .aggregate(offset: offset, payload: payload.count) }
      guard Self.unitTypes.contains(header.type.rawValue) else { throw .structure(header.type.rawValue) }
      offset += 2 + Int(size)
    } while offset < payload.count
    offset = HEVCNALUnitHeader.byteCount
    while let size = payload.bigEndian(UInt16.self, at: offset) {
      let unit = unit(payload, at: offset, size)
      if let header = HEVCNALUnitHeader(unit) { try append(unit, header) }
      offset += 2 + Int(size)
    }
  }

  /// Returns the NAL unit of an aggregation packet whose size is at `offset`. The caller has checked that it fits.
  private func unit(_ payload: UnsafeRawBufferPointer, at offset: Int, _ size: UInt16) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: payload[offset + 2..<offset + 2 + Int(size)])
  }

  /// Appends one fragmentation unit, RFC 7798 section 4.4.3.
  private mutating func appendFragment(
    _ payload: UnsafeRawBufferPointer, _ payloadHeader: HEVCNALUnitHeader
  ) throws(HEVCDepacketizerError) {
    guard payload.count > HEVCNALUnitHeader.byteCount else {
      assembly.dropFragments()
      throw .fragment(header: 0, payload: payload.count)
    }
    let header = payload[HEVCNALUnitHeader.byteCount]
    let (isFirst, isLast) = (header & 0x80 != 0, header & 0x40 != 0)
    var begun = payloadHeader
    begun.type = HEVCNALUnitType(rawValue: header)
    // A fragment that is both first and last is forbidden.
    guard !(isFirst && isLast), Self.unitTypes.contains(begun.type.rawValue) else {
      assembly.dropFragments()
      throw .fragment(header: header, payload: payload.count)
    }
    guard begun.layerID == 0 else { return assembly.dropFragments() }
    let rest = UnsafeRawBufferPointer(rebasing: payload[(HEVCNALUnitHeader.byteCount + 1)...])
    let (first, second) = begun.bytes
    do throws(AccessUnitAssembly.Overflow) {
      if isFirst {
        try assembly.beginFragments((first, second), rest)
      } else {
        // A fragment of another NAL unit: the gap before it is no error of its own.
        if let former = assembly.fragmentedHeader, former != first { assembly.dropFragments() }
        try assembly.appendFragment(rest)
      }
    } catch {
      throw refusal(error)
    }
    if isLast { assembly.endFragments() }
  }

  private mutating func append(
    _ unit: UnsafeRawBufferPointer, _ header: HEVCNALUnitHeader
  ) throws(HEVCDepacketizerError) {
    guard header.layerID == 0 else { return }
    do throws(AccessUnitAssembly.Overflow) { try assembly.append(unit) } catch { throw refusal(error) }
  }

  private func refusal(_ overflow: AccessUnitAssembly.Overflow) -> HEVCDepacketizerError {
    switch overflow {
    case .nalUnitSize: .nalUnitSize(limit: limits.nalBytes)
    case .accessUnitSize: .accessUnitSize(limit: limits.unitBytes)
    case .nalUnits: .nalUnits(limit: limits.nalUnits)
    }
  }
}
