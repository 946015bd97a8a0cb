import Platform
import RTP
import TestSupport
import Testing

/// RTP packets of sound, back to Opus packets.
@Suite struct OpusDepacketizerTests {
  /// An RTP packet of type 98 with the payload in hexadecimal digits.
  private static func packet(_ sequenceNumber: UInt16, _ timestamp: UInt32, _ payload: String) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: RTPHeader.byteCount)
    bytes.withUnsafeMutableBytes { memory in
      guard let base = memory.baseAddress else { return }
      RTPHeader(
        marker: false, payloadType: .opus, sequenceNumber: sequenceNumber, timestamp: timestamp, ssrc: 0x9dbb_7812
      ).write(to: base)
    }
    return bytes + hex(payload)
  }

  @Test func `each RTP packet is one unit, which lends the packet's bytes`() throws {
    var depacketizer = OpusDepacketizer()
    // The packets that OpusPacketizerTests expects of the packetizer.
    let packets = [
      hex("80 62 fffe 8b53d255 9dbb7812  fc 010203"), hex("80 62 ffff 8b53d615 9dbb7812  fc 010203"),
      hex("80 62 0000 8b53d9d5 9dbb7812  fc 010203"),
    ]
    var timestamps: [UInt32] = []
    for packet in packets {
      try packet.withUnsafeBytes { bytes in
        try depacketizer.receive(bytes) { unit in
          #expect(unit.isKeyFrame && !unit.isDamaged && unit.count == 1)
          #expect(Array(unit[0]) == hex("fc 010203"))
          #expect(unit[0].baseAddress == bytes.baseAddress.map { $0 + RTPHeader.byteCount })
          timestamps.append(unit.timestamp)
        }
      }
    }
    #expect(timestamps == [0x8b53_d255, 0x8b53_d615, 0x8b53_d9d5] && depacketizer.packetsReceived == 3)
  }

  @Test(arguments: ["", "01 02", "03", "03 00", "ff 31", "1b 05"])
  func `a payload that is no Opus packet is refused, and the next one comes`(payload: String) throws {
    // Nothing; two frames of one size in one byte; no count; no frame; 49 of 2.5 ms; five of 60 ms.
    var depacketizer = OpusDepacketizer()
    var units = 0
    #expect(throws: OpusDepacketizerError.self) {
      try Self.packet(1, 0, payload).withUnsafeBytes { try depacketizer.receive($0) { _ in units += 1 } }
    }
    try Self.packet(2, 960, "fc 01").withUnsafeBytes { try depacketizer.receive($0) { _ in units += 1 } }
    #expect(units == 1)
  }

  @Test func `a receiver of sound reorders, gives up what is missing, and asks for nothing`() throws {
    var configuration = RTPReceiver.Configuration(
      contents: .opus, payloadType: .opus, isMultiplexed: false, retransmission: .reorderOnly, packets: 64)
    configuration.sessionBitsPerSecond = 64_000
    let receiver = try RTPReceiver(configuration, at: .zero)
    var heard: [UInt32] = []
    func take(_ number: UInt16, at milliseconds: Int64) throws {
      try Self.packet(number, UInt32(number) * 960, "fc 01").withUnsafeBytes { bytes in
        try receiver.receive(bytes, at: .zero + .milliseconds(milliseconds)) { heard.append($0.timestamp / 960) }
      }
    }
    for (number, time) in [(1, 0), (2, 20), (4, 40), (3, 45), (6, 80), (7, 100)] as [(UInt16, Int64)] {
      try take(number, at: time)
    }
    #expect(heard == [1, 2, 3, 4])
    receiver.poll(at: .zero + .milliseconds(111)) { heard.append($0.timestamp / 960) }
    #expect(heard == [1, 2, 3, 4, 6, 7])
    #expect(receiver.counts.packetsReordered == 1 && receiver.counts.packetsLost == 1)
    #expect(receiver.counts.accessUnits == 6 && receiver.counts.accessUnitsDamaged == 0 && !receiver.needsKeyFrame)
    // Packets of 20 ms that come each 20 ms have no jitter on a clock of 48 kHz; packets 3 and 4 came otherwise.
    let jitter = try #require(receiver.statistics?.jitterTime)
    #expect(jitter > .zero && jitter < .milliseconds(5))
  }
}
