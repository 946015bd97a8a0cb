public import Platform

/// A writer of RTCP packets, one after the other, into the caller's memory. The packets form one datagram: compound
/// if it begins with a report, otherwise of reduced size (RFC 5506).
///
/// A packet that does not fit is not started, and the packets before it stay valid.
public struct RTCPWriter {
  /// The maximum number of report blocks, chunks or sources of one packet, because the count has five bits.
  public static let maximumCount = 31
  /// The maximum number of bytes of a CNAME, of another item or of a reason.
  public static let maximumText = 255

  /// The number of bytes written so far, a multiple of four.
  public private(set) var count = 0
  private let memory: UnsafeMutableRawBufferPointer

  /// Creates a writer into `memory`, which the caller keeps as long as this value is used.
  public init(into memory: UnsafeMutableRawBufferPointer) {
    self.memory = memory
  }

  /// The bytes written so far.
  public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<count]) }

  /// Appends an SR, RFC 3550 section 6.4.1.
  ///
  /// - Throws: ``RTCPWriterError``: no room, or more than ``maximumCount`` blocks.
  public mutating func append(
    _ report: SenderReport, blocks: some Collection<ReportBlock> = EmptyCollection()
  ) throws(RTCPWriterError) {
    try checkCount(blocks.count)
    let body = try begin(
      type: RTCPPacket.TypeNumber.senderReport, format: blocks.count,
      body: SenderReport.byteCount + blocks.count * ReportBlock.byteCount)
    report.write(to: body)
    write(blocks, to: body + SenderReport.byteCount)
  }

  /// Appends an RR, RFC 3550 section 6.4.2.
  ///
  /// - Throws: ``RTCPWriterError``: no room, or more than ``maximumCount`` blocks.
  public mutating func appendReceiverReport(
    sender: UInt32, blocks: some Collection<ReportBlock> = EmptyCollection()
  ) throws(RTCPWriterError) {
    try checkCount(blocks.count)
    let body = try begin(
      type: RTCPPacket.TypeNumber.receiverReport, format: blocks.count,
      body: 4 + blocks.count * ReportBlock.byteCount)
    body.storeBigEndian(sender, at: 0)
    write(blocks, to: body + 4)
  }

  /// Appends an SDES packet with the one item that every compound packet must have, RFC 3550 section 6.5.1.
  ///
  /// - Throws: ``RTCPWriterError``: no room, or a name of more than ``maximumText`` bytes.
  public mutating func appendCanonicalName(_ name: String, of ssrc: UInt32) throws(RTCPWriterError) {
    try appendSourceDescription(of: ssrc, CollectionOfOne((type: 1, text: name)))
  }

  /// Appends an SDES packet of one source, RFC 3550 section 6.5. CNAME is type 1, TOOL is type 6.
  ///
  /// - Throws: ``RTCPWriterError``: no room, or a text of more than ``maximumText`` bytes.
  public mutating func appendSourceDescription(
    of ssrc: UInt32, _ items: some Collection<(type: UInt8, text: String)>
  ) throws(RTCPWriterError) {
    var length = 4
    for item in items {
      try Self.check(item.text)
      length += 2 + item.text.utf8.count
    }
    // At least one zero ends the list, and further zeros fill the word.
    let padded = (length / 4 + 1) * 4
    let body = try begin(type: RTCPPacket.TypeNumber.sourceDescription, format: 1, body: padded)
    body.storeBigEndian(ssrc, at: 0)
    var offset = 4
    for item in items {
      body.storeBytes(of: item.type, toByteOffset: offset, as: UInt8.self)
      write(item.text, to: body + offset + 1)
      offset += 2 + item.text.utf8.count
    }
    UnsafeMutableRawBufferPointer(start: body + offset, count: padded - offset).initializeMemory(
      as: UInt8.self, repeating: 0)
  }

  /// Appends a BYE, RFC 3550 section 6.6, with the reason unless it is empty.
  ///
  /// - Throws: ``RTCPWriterError``: no room, more than ``maximumCount`` sources, or a reason of more than
  ///   ``maximumText`` bytes.
  public mutating func appendGoodbye(
    _ sources: some Collection<SynchronizationSource>, reason: String = ""
  ) throws(RTCPWriterError) {
    try checkCount(sources.count)
    try Self.check(reason)
    let list = sources.count * SynchronizationSource.byteCount
    let text = reason.utf8.count
    let padded = text == 0 ? list : list + (text / 4 + 1) * 4
    let body = try begin(type: RTCPPacket.TypeNumber.goodbye, format: sources.count, body: padded)
    write(sources, to: body)
    guard text > 0 else { return }
    write(reason, to: body + list)
    UnsafeMutableRawBufferPointer(start: body + list + 1 + text, count: padded - list - 1 - text).initializeMemory(
      as: UInt8.self, repeating: 0)
  }

  /// Appends a generic NACK, RFC 4585 section 6.2.1.
  ///
  /// - Throws: ``RTCPWriterError/room(needed:available:)``.
  public mutating func appendNACK(
    sender: UInt32, media: UInt32, entries: some Collection<NACKEntry>
  ) throws(RTCPWriterError) {
    let body = try begin(
      type: RTCPPacket.TypeNumber.transportFeedback, format: Int(RTCPPacket.TypeNumber.nackFormat),
      body: 8 + entries.count * NACKEntry.byteCount)
    body.storeBigEndian(sender, at: 0)
    body.storeBigEndian(media, at: 4)
    write(entries, to: body + 8)
  }

  /// Appends a PLI, RFC 4585 section 6.3.1.
  ///
  /// - Throws: ``RTCPWriterError/room(needed:available:)``.
  public mutating func appendPictureLoss(sender: UInt32, media: UInt32) throws(RTCPWriterError) {
    let body = try begin(
      type: RTCPPacket.TypeNumber.payloadFeedback, format: Int(RTCPPacket.TypeNumber.pictureLossFormat), body: 8)
    body.storeBigEndian(sender, at: 0)
    body.storeBigEndian(media, at: 4)
  }

  /// Appends a FIR, RFC 5104 section 4.3.1. The media source of the header is 0.
  ///
  /// - Throws: ``RTCPWriterError/room(needed:available:)``.
  public mutating func appendFullIntraRequest(
    sender: UInt32, entries: some Collection<FullIntraRequestEntry>
  ) throws(RTCPWriterError) {
    let body = try begin(
      type: RTCPPacket.TypeNumber.payloadFeedback, format: Int(RTCPPacket.TypeNumber.fullIntraFormat),
      body: 8 + entries.count * FullIntraRequestEntry.byteCount)
    body.storeBigEndian(sender, at: 0)
    body.storeBigEndian(UInt32(0), at: 4)
    write(entries, to: body + 8)
  }

  /// Appends an extended report (XR) with the receiver's reference time, RFC 3611 section 4.4.
  ///
  /// - Throws: ``RTCPWriterError/room(needed:available:)``.
  public mutating func appendReceiverReference(sender: UInt32, _ time: NTPTimestamp) throws(RTCPWriterError) {
    let body = try begin(type: RTCPPacket.TypeNumber.extendedReport, format: 0, body: 16)
    body.storeBigEndian(sender, at: 0)
    body.storeBigEndian(UInt32(RTCPPacket.TypeNumber.receiverReferenceBlock) << 24 | 2, at: 4)
    body.storeBigEndian(time.rawValue, at: 8)
  }

  /// Appends an extended report (XR) that answers receivers' reference times, RFC 3611 section 4.5.
  ///
  /// - Throws: ``RTCPWriterError``: no room, or more than ``maximumCount`` delays.
  public mutating func appendReceiverDelays(
    sender: UInt32, _ delays: some Collection<ReceiverDelay>
  ) throws(RTCPWriterError) {
    try checkCount(delays.count)
    let bytes = delays.count * ReceiverDelay.byteCount
    let body = try begin(type: RTCPPacket.TypeNumber.extendedReport, format: 0, body: 8 + bytes)
    body.storeBigEndian(sender, at: 0)
    body.storeBigEndian(UInt32(RTCPPacket.TypeNumber.receiverDelayBlock) << 24 | UInt32(bytes / 4), at: 4)
    write(delays, to: body + 8)
  }

  private func checkCount(_ count: Int) throws(RTCPWriterError) {
    guard count <= Self.maximumCount else { throw .entries(count, limit: Self.maximumCount) }
  }

  /// Checks that a CNAME, another item or a reason fits its length byte.
  ///
  /// - Throws: ``RTCPWriterError/text(_:limit:)`` for a longer text.
  static func check(_ text: String) throws(RTCPWriterError) {
    guard text.utf8.count <= maximumText else { throw .text(text.utf8.count, limit: maximumText) }
  }

  /// Writes a header for `bytes` of body, which the caller fills at the returned address.
  private mutating func begin(
    type: UInt8, format: Int, body bytes: Int
  ) throws(RTCPWriterError) -> UnsafeMutableRawPointer {
    guard let base = memory.baseAddress, bytes + 4 <= memory.count - count else {
      throw .room(needed: bytes + 4, available: memory.count - count)
    }
    let start = base + count
    start.storeBytes(of: RTPHeader.version << 6 | UInt8(truncatingIfNeeded: format), as: UInt8.self)
    start.storeBytes(of: type, toByteOffset: 1, as: UInt8.self)
    start.storeBigEndian(UInt16(truncatingIfNeeded: bytes / 4), at: 2)
    count += bytes + 4
    return start + 4
  }

  private func write<Record: RTCPRecord>(_ records: some Collection<Record>, to memory: UnsafeMutableRawPointer) {
    var next = memory
    for record in records {
      record.write(to: next)
      next += Record.byteCount
    }
  }

  /// Writes a length byte and the text.
  private func write(_ text: String, to memory: UnsafeMutableRawPointer) {
    memory.storeBytes(of: UInt8(truncatingIfNeeded: text.utf8.count), as: UInt8.self)
    var offset = 1
    for byte in text.utf8 {
      memory.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
      offset += 1
    }
  }
}

/// The reason why a packet was not written.
public enum RTCPWriterError: Failure, Hashable {
  /// Not enough memory is left.
  case room(needed: Int, available: Int)
  /// More entries than the packet's count field allows.
  case entries(Int, limit: Int)
  /// A text too long for its length byte.
  case text(Int, limit: Int)

  /// A one-line description for the person at the terminal.
  public var description: String {
    switch self {
    case .room(let needed, let available): "an RTCP packet of \(needed) bytes: \(available) are left for it"
    case .entries(let count, let limit): "\(count) entries in an RTCP packet: at most \(limit)"
    case .text(let count, let limit): "a text of \(count) bytes in an RTCP packet: at most \(limit)"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind { .software }
}
