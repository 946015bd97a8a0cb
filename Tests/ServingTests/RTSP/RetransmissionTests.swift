#if X264
  import Foundation
  import TestSupport
  import Testing

  /// Packets that a viewer asks for again.
  @Suite(.serialized) struct RetransmissionTests {
    private static func word(_ packet: Data, at offset: Int) -> UInt16 {
      UInt16(packet[packet.startIndex + offset]) << 8 | UInt16(packet[packet.startIndex + offset + 1])
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
      let wanted = packets[3]
      let number = Self.word(wanted, at: 2)
      // Generic NACK of one packet, RFC 4585 section 6.2.1.
      var nack = Data([0x81, 205, 0, 3, 0, 0, 0xab, 0xcd])
      nack += wanted[wanted.startIndex + 8..<wanted.startIndex + 12]
      nack += Data([UInt8(number >> 8), UInt8(number & 0xff), 0, 0])
      var again: Data?
      var others = 0
      #expect(
        try eventually {
          // Once more now and then: it may be lost, and too soon it is not answered.
          if others % 50 == 0 { try ports.send([UInt8](nack), to: control) }
          for packet in ports.drain() {
            let isRetransmission =
              isFeedback ? packet[packet.startIndex + 1] & 0x7f == 97 : Self.word(packet, at: 2) == number
            if isRetransmission { again = packet }
          }
          others += 1
          return again != nil
        })
      let packet = try #require(again)
      guard isFeedback else {
        #expect(packet == wanted)
        return
      }
      // RFC 4588 section 4: another source and number, the same time and marker, the original's number, its payload.
      #expect(packet.dropFirst(8).prefix(4) != wanted.dropFirst(8).prefix(4))
      #expect(packet.dropFirst(4).prefix(4) == wanted.dropFirst(4).prefix(4))
      #expect(packet[packet.startIndex + 1] & 0x80 == wanted[wanted.startIndex + 1] & 0x80)
      #expect(Self.word(packet, at: 12) == number)
      #expect(packet.dropFirst(14) == wanted.dropFirst(12))
    }
  }
#endif
