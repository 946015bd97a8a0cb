#if X264
  import Foundation
  import TestSupport
  import Testing

  /// Packets that a viewer asks for again.
  @Suite(.serialized) struct RetransmissionTests {
    private static func word(_ packet: Data, at offset: Int) -> UInt16 {
      UInt16(packet[packet.startIndex + offset]) << 8 | UInt16(packet[packet.startIndex + offset + 1])
    }

    /// A generic NACK of one packet, RFC 4585 section 6.2.1.
    private static func request(for packet: Data) -> [UInt8] {
      let fields = [UInt8](packet.prefix(12))
      let head: [UInt8] = [0x81, 205, 0, 3, 0, 0, 0xab, 0xcd]
      return head + fields[8..<12] + fields[2..<4] + [0, 0]
    }

    /// A client that takes AVPF, which the description offers to it with a stream for it (RFC 4588), gets them by that;
    /// others as they were, though nobody has told them that they may ask.
    @Test(arguments: [true, false]) func `come as the client's profile has it`(isFeedback: Bool) throws {
      let camera = try ServedCamera()
      let client = try camera.client()
      let description = try client.request("DESCRIBE", isFeedback ? "\(client.url)?profile=avpf" : nil).body
      let lines = DescriptionLines(description)
      #expect(lines["m"] == [isFeedback ? "video 0 RTP/AVPF 96 97" : "video 0 RTP/AVP 96"])
      #expect(lines.attributes("rtpmap") == ["96 H264/90000"] + (isFeedback ? ["97 rtx/90000"] : []))
      let parameters = lines.attributes("fmtp")
      #expect(parameters.count == (isFeedback ? 2 : 1) && parameters.first?.hasPrefix("96 ") == true)
      // The map and its parameters stand beside each other.
      let attributes = lines["a"]
      let map = attributes.firstIndex(of: "rtpmap:97 rtx/90000")
      #expect((map != nil) == isFeedback)
      if let map { #expect(attributes.dropFirst(map + 1).first?.hasPrefix("fmtp:97 apt=96;rtx-time=") == true) }
      let ports = try DatagramPair()
      let transport =
        isFeedback ? ports.transport.replacingOccurrences(of: "RTP/AVP;", with: "RTP/AVPF;") : ports.transport
      let (setup, _) = try client.play(transport)
      let packets = ports.take(12)
      try #require(packets.count >= 12)
      let control = try #require(setup.serverControlPort)
      // What was requested, by its number. On a slow host a packet may be too old for an answer: each request is for
      // the newest.
      var newest = try #require(packets.last)
      var requested: [UInt16: Data] = [:]
      var answer: (packet: Data, wanted: Data)?
      var rounds = 0
      #expect(
        try eventually {
          // Once more now and then: it may be lost.
          if rounds % 50 == 0 {
            requested[Self.word(newest, at: 2)] = newest
            try ports.send(Self.request(for: newest), to: control)
          }
          for packet in ports.drain() {
            let isOfOwnStream = packet[packet.startIndex + 1] & 0x7f == 97
            if isOfOwnStream == isFeedback, let wanted = requested[Self.word(packet, at: isFeedback ? 12 : 2)] {
              answer = (packet, wanted)
            } else if !isOfOwnStream {
              newest = packet
            }
          }
          rounds += 1
          return answer != nil
        })
      let (packet, wanted) = try #require(answer)
      guard isFeedback else {
        #expect(packet == wanted)
        return
      }
      // RFC 4588 section 4: another source and number, the same time and marker, the original's number, its payload.
      #expect(packet.dropFirst(8).prefix(4) != wanted.dropFirst(8).prefix(4))
      #expect(packet.dropFirst(4).prefix(4) == wanted.dropFirst(4).prefix(4))
      #expect(packet[packet.startIndex + 1] & 0x80 == wanted[wanted.startIndex + 1] & 0x80)
      #expect(packet.dropFirst(12).prefix(2) == wanted.dropFirst(2).prefix(2))
      #expect(packet.dropFirst(14) == wanted.dropFirst(12))
    }
  }
#endif
