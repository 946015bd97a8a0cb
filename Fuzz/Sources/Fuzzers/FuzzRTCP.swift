import Media
import Platform
import RTP

/// Any bytes as RTCP: to the parser, to a sender's view of a viewer, and to a receiver.
enum FuzzRTCP {
  static func take(_ bytes: UnsafeRawBufferPointer) {
    rewrite(bytes)
    answer(bytes)
    receive(bytes)
  }

  /// Parses the bytes, writes the result, and parses that: both results are the same.
  static func rewrite(_ bytes: UnsafeRawBufferPointer) {
    guard var reader = try? RTCPReader(bytes) else { return }
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 8)
    defer { memory.deallocate() }
    while true {
      do throws(RTCPError) {
        guard let packet = try reader.next() else { return }
        var writer = RTCPWriter(into: memory)
        guard (try? write(packet, to: &writer)) == true else { continue }
        var again = try RTCPReader(writer.bytes)
        guard let copy = try again.next(), isSame(packet, copy), try again.next() == nil else {
          fatalError("a packet that is read otherwise than it was written")
        }
      } catch {
        precondition(!error.description.isEmpty)
      }
    }
  }

  /// False for a packet that the writer does not make.
  static func write(_ packet: RTCPPacket, to writer: inout RTCPWriter) throws(RTCPWriterError) -> Bool {
    switch packet {
    case .senderReport(let report, let blocks): try writer.append(report, blocks: blocks)
    case .receiverReport(let sender, let blocks): try writer.appendReceiverReport(sender: sender, blocks: blocks)
    case .nack(let sender, let media, let entries):
      try writer.appendNACK(sender: sender, media: media, entries: entries)
    case .pictureLoss(let sender, let media): try writer.appendPictureLoss(sender: sender, media: media)
    case .fullIntraRequest(let sender, let entries):
      try writer.appendFullIntraRequest(sender: sender, entries: entries)
    case .sourceDescription(let items):
      // Items are only walked through: their chunks are not kept apart.
      var bytes = 0
      for item in items { bytes += item.text.count }
      precondition(bytes <= 2048)
      return false
    case .goodbye(let sources, let reason):
      precondition(reason.count <= 255)
      try writer.appendGoodbye(sources)
    case .extendedReport(let sender, let reference?): try writer.appendReceiverReference(sender: sender, reference)
    case .receiverLimit(_, _, let sources):
      precondition(sources.count <= 255)
      return false
    case .extendedReport, .other: return false
    }
    return true
  }

  static func isSame(_ one: RTCPPacket, _ other: RTCPPacket) -> Bool {
    switch (one, other) {
    case (.senderReport(let a, let b), .senderReport(let c, let d)): a == c && b.elementsEqual(d)
    case (.receiverReport(let a, let b), .receiverReport(let c, let d)): a == c && b.elementsEqual(d)
    case (.nack(let a, let b, let c), .nack(let d, let e, let f)): a == d && b == e && c.elementsEqual(f)
    case (.pictureLoss(let a, let b), .pictureLoss(let c, let d)): a == c && b == d
    case (.fullIntraRequest(let a, let b), .fullIntraRequest(let c, let d)): a == c && b.elementsEqual(d)
    case (.goodbye(let a, _), .goodbye(let b, _)): a.elementsEqual(b)
    case (.extendedReport(let a, let b), .extendedReport(let c, let d)): a == c && b == d
    default: false
    }
  }

  /// A viewer's feedback: answering it stays within its limits.
  static func answer(_ bytes: UnsafeRawBufferPointer) {
    var history = PacketHistory(packets: 16, bytes: 4096)
    var packet = [UInt8](repeating: 0x41, count: 100)
    for number in UInt16(0)..<16 {
      packet.withUnsafeMutableBytes { memory in
        guard let base = memory.baseAddress else { return }
        RTPHeader(marker: true, payloadType: .h264, sequenceNumber: number, timestamp: 0, ssrc: 7).write(to: base)
        history.append(
          header: UnsafeRawBufferPointer(rebasing: memory[..<12]),
          payload: UnsafeRawBufferPointer(rebasing: memory[12...]), at: .zero)
      }
    }
    let limits = RetransmissionLimiter.Limits(bytesPerSecond: 0, burstBytes: 1000)
    let stream = RTPStream(payloadType: .h264, ssrc: 8, firstSequenceNumber: 0, timestampOffset: 0)
    let viewer = ViewerFeedback(media: 7, retransmissions: RetransmissionStream(stream), limits: limits)
    var sent = 0
    for step in 0..<3 {
      let time = Instant(nanoseconds: Int64(step) * 20_000_000)
      _ = try? viewer.receive(bytes, at: time, ntp: NTPTimestamp(rawValue: 0) + (time - .zero), history: history) {
        sent += $0.count + $1.count
        return true
      }
    }
    precondition(sent <= 1020, "retransmissions beyond the limit")
  }

  /// A receiver that is given the bytes on a shared port, as RTP or as RTCP.
  static func receive(_ bytes: UnsafeRawBufferPointer) {
    let limits = H264Depacketizer.Limits(nalBytes: 4096, nalUnits: 16, unitBytes: 8192)
    guard let receiver = try? RTPReceiver(.init(ssrc: 5, packets: 16, limits: limits, seed: 1), at: .zero) else {
      fatalError("no receiver")
    }
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: RTPReceiver.feedbackRoom, alignment: 8)
    defer { memory.deallocate() }
    for step in 0..<3 {
      let time = Instant(nanoseconds: Int64(step) * 100_000_000)
      try? receiver.receive(bytes, at: time) { _ in }
      try? receiver.receiveControl(bytes, at: time)
      receiver.poll(at: time) { _ in }
      while receiver.writeFeedback(into: memory, at: time) > 0 {}
    }
  }
}
