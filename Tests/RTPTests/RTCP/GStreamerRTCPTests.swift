import Foundation
import Media
import RTP
import TestSupport
import Testing

/// RTCP and RTX between us and GStreamer's session, datagrams as files: one reads what the other wrote.
@Suite struct GStreamerRTCPTests {
  /// A directory with `datagrams` in the files in0, in1, …
  static func directory(with datagrams: [[UInt8]] = []) throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory()
    for (index, bytes) in datagrams.enumerated() {
      try Data(bytes).write(to: directory.url.appendingPathComponent("in\(index)"))
    }
    return directory
  }

  static func datagrams(_ directory: TemporaryDirectory, _ prefix: String) throws -> [[UInt8]] {
    // A file that is still written has another name, with a dot.
    try FileManager.default.contentsOfDirectory(atPath: directory.url.path)
      .filter { $0.hasPrefix(prefix) && !$0.contains(".") }.sorted()
      .map { [UInt8](try Data(contentsOf: directory.url.appendingPathComponent($0))) }
  }

  @Test func `we read what GStreamer's session sends, and its counts are those of its packets`() throws {
    let directory = try Self.directory()
    let session = try Subprocess(
      ["gst-launch-1.0", "-q", "rtpbin", "name=r", "rtp-profile=avpf"]
        + ["sdes=application/x-rtp-source-sdes,cname=(string)someone,tool=(string)gst"]
        + "videotestsrc num-buffers=60 is-live=true ! video/x-raw,width=160,height=120,framerate=30/1".words
        + "! x264enc tune=zerolatency ! rtph264pay pt=96 ssrc=7 ! r.send_rtp_sink_0".words
        + "r.send_rtp_src_0 ! multifilesink async=false location=\(directory.url.path)/rtp%04d".words
        + "r.send_rtcp_src_0 ! multifilesink async=false sync=false location=\(directory.url.path)/control%04d".words,
      in: directory)
    // Not to its end: its BYE is its last packet, but where that is sent before the pad is marked as ended, the session of
    // GStreamer 1.22 never passes on the end, and begins anew with receiver reports.
    var control: [[String]] = []
    let hasEnded = try eventually(within: 60) {
      control = try Self.datagrams(directory, "control").map { try read($0, allowReducedSize: false) }
      return control.contains { $0.last?.hasPrefix("BYE") == true } || !session.isRunning
    }
    session.send(SIGKILL)
    let complaints = try session.wait(limit: 10).error
    #expect(hasEnded, "\(complaints)")
    control = Array(control.prefix(1 + (control.firstIndex { $0.last?.hasPrefix("BYE") == true } ?? control.count)))
    let packets = try Self.datagrams(directory, "rtp")
    #expect(control.count >= 2 && packets.count >= 60)
    for lines in control {
      #expect(lines.count >= 2 && lines[0].hasPrefix("SR 7 ntp "))
      #expect(lines[1] == "SDES 7 1=someone 7 6=gst")
    }
    let last = try #require(control.last)
    #expect(last.last?.hasPrefix("BYE [7]") == true)
    // A file may hold several packets (a buffer list), hence bytes with headers, and not packets, are compared.
    let counts = try #require(last[0].split(separator: " ").last).split(separator: "/").compactMap { Int($0) }
    let bytes = packets.reduce(0) { $0 + $1.count }
    #expect(counts.count == 2 && counts[0] >= packets.count)
    #expect(counts[0] * RTPHeader.byteCount + counts[1] == bytes)
  }

  @Test func `GStreamer's session reads what we send`() throws {
    let report = SenderReport(
      ssrc: 5, ntp: NTPTimestamp(rawValue: 0xeeab_d0ed_4714_013e), rtpTimestamp: 77, packetCount: 8, octetCount: 9)
    let block = ReportBlock(
      ssrc: 7, fractionLost: 0x40, cumulativeLost: -2, highestSequenceNumber: 0x1_0002, jitter: 9,
      lastSenderReport: 0x1122_3344, delaySinceLastSenderReport: 0x1_0000)
    let datagrams = [
      try written {
        try $0.append(report, blocks: [block])
        try $0.appendCanonicalName("abc", of: 5)
      },
      try written { try $0.appendNACK(sender: 5, media: 7, entries: [NACKEntry(packetID: 65535, followers: 0x8001)]) },
      try written { try $0.appendPictureLoss(sender: 5, media: 7) },
      try written {
        try $0.appendFullIntraRequest(sender: 5, entries: [FullIntraRequestEntry(ssrc: 7, sequenceNumber: 42)])
      },
      try written {
        try $0.appendReceiverReport(sender: 5)
        try $0.appendGoodbye([SynchronizationSource(5)], reason: "bye!")
      },
    ]
    let directory = try Self.directory()
    let port = try UDPPort.free()
    let session = try Subprocess(
      ["gst-launch-1.0", "-q"]
        + "rtpsession name=s rtp-profile=avpf".words
        + "videotestsrc is-live=true ! video/x-raw,width=160,height=120,framerate=30/1".words
        + "! x264enc tune=zerolatency ! rtph264pay pt=96 ssrc=7".words
        + ["!", "application/x-rtp,rtcp-fb-nack=true,rtcp-fb-nack-pli=true,rtcp-fb-ccm-fir=true", "!"]
        + "s.send_rtp_sink s.send_rtp_src ! fakesink".words
        + "udpsrc address=127.0.0.1 port=\(port) caps=application/x-rtcp ! s.recv_rtcp_sink".words
        + "s.send_rtcp_src ! fakesink".words,
      in: directory, environment: ["GST_DEBUG": "rtpsession:7,rtpsource:7", "GST_DEBUG_NO_COLOR": "1"])
    // What a report says of a source is taken once that has sent something.
    let listens = try eventually(within: 60) {
      try UDPPort.isBound(port) && session.errorSoFar.contains("source 00000007 pushed sender RTP packet")
    }
    #expect(listens, "\(session.errorSoFar.prefix(1000))")
    let taken = [
      "SDES changed for SSRC 00000005", "NACK #65535", "received PLI request from 5 about 7", "FIR request from 5",
      "got BYE packet",
    ]
    for (datagram, line) in zip(datagrams, taken) {
      try UDPPort.send(datagram, to: "127.0.0.1", port: port)
      _ = eventually(within: 60) { session.errorSoFar.contains(line) || !session.isRunning }
      // Of two requests for a key frame within a round trip it hears one.
      usleep(150_000)
    }
    _ = eventually(within: 60) { session.errorSoFar.contains("got BYE packet") || !session.isRunning }
    session.send(SIGKILL)
    let log = try session.wait(limit: 10).error
    for line in [
      "got SR packet: SSRC 00000005, NTP eeabd0ed:4714013e, RTP 77, PC 8, OC 9",
      "got RB packet: SSRC 00000005, FL 40, PL -2, HS 65538, jitter 9, LSR 1122:3344, DLSR 0001:0000",
      "SDES changed for SSRC 00000005", "NACK #65535, blp 8001, SSRC 0x00000007",
      "received PLI request from 5 about 7", "received feedback 206:4 from 00000005", "FIR request from 5",
      "got RR packet: SSRC 00000005", "got BYE packet (reason: bye!)",
    ] {
      #expect(log.contains(line), "\(line)")
    }
  }

  @Test func `GStreamer takes our retransmissions apart again`() throws {
    let type = try #require(RTPPayloadType(rawValue: 97))
    var stream = RetransmissionStream(
      RTPStream(payloadType: type, ssrc: 8, firstSequenceNumber: 65534, timestampOffset: 0))
    let originals = (UInt16(65530)...65535).map {
      packet($0, timestamp: 0x1234_5678, marker: $0.isMultiple(of: 2), ssrc: 7, [0x41, UInt8($0 & 0xff), 3])
    }
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: RetransmissionStream.headerRoom, alignment: 8)
    defer { memory.deallocate() }
    let wrapped = try originals.map { original in
      let parts = original.withUnsafeBytes { bytes in
        stream.wrap(bytes, into: memory).map { Array($0.header) + Array($0.payload) }
      }
      return try #require(parts)
    }
    let directory = try Self.directory(with: wrapped)
    _ = try PlayerTests.run(
      ["gst-launch-1.0", "-q", "multifilesrc", "location=\(directory.url.path)/in%d"]
        + ["caps=application/x-rtp,media=(string)video,clock-rate=90000,payload=97,encoding-name=(string)RTX", "!"]
        + ["rtprtxreceive", "payload-type-map=application/x-rtp-pt-map,96=(uint)97"]
        + ["ssrc-map=application/x-rtp-ssrc-map,7=(uint)8"]
        + "! multifilesink async=false sync=false location=\(directory.url.path)/out%04d".words)
    #expect(try Self.datagrams(directory, "out") == originals)
  }
}

extension String {
  /// The words of a command line without quotes.
  fileprivate var words: [String] { split(separator: " ").map(String.init) }
}
