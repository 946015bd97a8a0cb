import Media
import Platform
import RTP

/// Pictures are packetized, sent through a network that the input steers (loss, repetition, reordering, delay, bent
/// bytes), received, and asked for again. What is delivered as undamaged must be what was sent.
enum FuzzNetwork {
  static func take(_ input: UnsafeRawBufferPointer) {
    NetworkRun(input)?.run()
  }
}

/// One run: the input's first bytes choose the set-up, each further one what happens to one packet.
final class NetworkRun {
  private var script: UnsafeRawBufferPointer.SubSequence
  private let receiver: RTPReceiver
  private let viewer: ViewerFeedback
  private var packetizer: H264Packetizer
  private var history = PacketHistory(packets: 64, bytes: 16_384)
  private let batch = PacketBatch(packets: 16)
  private var time = Instant.zero
  private var flying: [(due: Instant, bytes: [UInt8])] = []
  private var sent: [UInt32: [UInt8]] = [:]
  private var isBent = false
  private var isFirst = true
  private let memory: UnsafeMutableRawBufferPointer
  private static let limits = H264Depacketizer.Limits(nalBytes: 4096, nalUnits: 16, unitBytes: 8192)

  init?(_ input: UnsafeRawBufferPointer) {
    guard input.count >= 4, input.count <= 4096 else { return nil }
    script = input[4...]
    let first = UInt16(input[0]) << 8 | UInt16(input[1])
    let stream = RTPStream(payloadType: .h264, ssrc: 7, firstSequenceNumber: first, timestampOffset: UInt32.max - 9000)
    let hasRetransmissionStream = input[2] & 1 != 0
    let rtx = hasRetransmissionStream ? RTPPayloadType(rawValue: 97) : nil
    let policy = input[2] & 2 != 0 ? RetransmissionPolicy() : .reorderOnly
    guard let packetizer = try? H264Packetizer(stream: stream, maximumPacketSize: 128 + Int(input[3])),
      let receiver = try? RTPReceiver(
        .init(
          ssrc: 5, retransmissionPayloadType: rtx, isReducedSize: input[2] & 4 != 0, retransmission: policy,
          packets: 16,
          maximumPacketSize: 512, limits: Self.limits, seed: UInt64(input[2])), at: .zero)
    else { return nil }
    // Not before: an initializer that fails runs no deinit.
    memory = .allocate(byteCount: RTPReceiver.feedbackRoom, alignment: 8)
    self.packetizer = packetizer
    self.receiver = receiver
    viewer = ViewerFeedback(
      media: 7,
      retransmissions: rtx.map {
        RetransmissionStream(RTPStream(payloadType: $0, ssrc: 8, firstSequenceNumber: first, timestampOffset: 0))
      })
  }

  deinit {
    memory.deallocate()
  }

  func run() {
    let before = receiver.memoryBytes
    while let size = next() {
      sendPicture(bytes: 1 + Int(size) * 4, isKeyFrame: size & 7 == 0)
      turn(milliseconds: 33)
    }
    turn(milliseconds: 1000)
    receiver.finish(deliver: check)
    precondition(receiver.memoryBytes <= before + 4 * Self.limits.unitBytes, "memory beyond the limits")
    let counts = receiver.counts
    precondition(counts.accessUnitsDamaged <= counts.accessUnits)
  }

  private func next() -> UInt8? { script.popFirst() }

  private func sendPicture(bytes count: Int, isKeyFrame: Bool) {
    // Every byte says where it belongs.
    var bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ $0 / 256 &+ sent.count) }
    bytes[0] = isKeyFrame ? 0x65 : 0x41
    batch.removeAll()
    bytes.withUnsafeBytes { memory in
      guard let unit = NALUnit(memory) else { return }
      withUnsafePointer(to: unit) { pointer in
        let units = UnsafeBufferPointer(start: pointer, count: 1)
        packetizer.packetize(
          AccessUnit(nalUnits: units, isKeyFrame: isKeyFrame, timestamp: time, captured: time), into: batch)
      }
      for index in 0..<batch.count {
        history.append(batch[index], at: time)
        send(Array(batch[index].header) + Array(batch[index].payload))
      }
    }
    sent[packetizer.stream.rtpTimestamp(of: time)] = bytes
  }

  /// Does to a packet as the next byte of the script says; without one it arrives.
  private func send(_ bytes: [UInt8]) {
    let action = next() ?? 0
    let delay = Int64(action & 0x1f) * 4_000_000
    let due = time + Duration.milliseconds(1)
    switch action >> 5 {
    case 0: flying.append((due, bytes))
    case 1: flying.append((due + Duration(nanoseconds: delay), bytes))
    case 2, 3: break
    case 4:
      flying.append((due, bytes))
      flying.append((due + Duration(nanoseconds: delay), bytes))
    case 5:
      var bent = bytes
      bent[Int(next() ?? 0) % bent.count] ^= 1 << (action & 7)
      isBent = true
      flying.append((due, bent))
    case 6:
      isBent = true
      flying.append((due, Array(bytes.prefix(Int(action & 0x1f) * 4))))
    default: break
    }
  }

  private func turn(milliseconds: Int) {
    let end = time + Duration(nanoseconds: Int64(milliseconds) * 1_000_000)
    while time < end {
      let now = time
      let due = flying.filter { $0.due <= now }
      flying.removeAll { $0.due <= now }
      for flight in due {
        flight.bytes.withUnsafeBytes { bytes in try? receiver.receive(bytes, at: now, deliver: check) }
      }
      receiver.poll(at: now, deliver: check)
      var datagrams = 0
      while case let count = receiver.writeFeedback(into: memory, at: now), count > 0 {
        datagrams += 1
        precondition(datagrams < 8, "feedback without end")
        guard (next() ?? 0) & 3 != 1 else { continue }
        let bytes = UnsafeRawBufferPointer(rebasing: memory[..<count])
        do throws(RTCPError) {
          _ = try viewer.receive(bytes, at: now, ntp: NTPTimestamp(rawValue: 0) + (now - .zero), history: history) {
            send(Array($0) + Array($1))
            return true
          }
        } catch {
          fatalError("our own feedback was refused: \(error)")
        }
      }
      precondition(viewer.counts.refused == 0, "a packet of our own feedback was refused")
      time = time + Duration.milliseconds(4)
    }
  }

  private func check(_ unit: borrowing ReceivedAccessUnit) {
    precondition(unit.annexB.count <= Self.limits.unitBytes && unit.count <= Self.limits.nalUnits)
    defer { isFirst = false }
    // A bent packet has no checksum in RTP, and shows only where its structure is broken.
    guard !isBent, !isFirst, !unit.isDamaged else { return }
    precondition(unit.count == 1 && sent[unit.timestamp].map { $0.elementsEqual(unit[0]) } == true, "another picture")
  }
}
