import Foundation
import Media
import Platform
import RTP
import Streaming
import TestSupport
import Testing

/// GStreamer's session as a viewer, behind a relay of the test's own that loses packets on purpose.
@Suite(.serialized) struct GStreamerReceiverTests {
  /// Passes datagrams between the pipeline and GStreamer, which thinks that the relay is the sender.
  private final class Relay {
    let viewer: (media: TestSocket, control: TestSocket)
    /// Where GStreamer listens, and where it sends RTCP to.
    let ports: (media: UInt16, control: UInt16)
    private let back: TestSocket
    private(set) var control: [[UInt8]] = []
    private(set) var lost = 0
    private(set) var sources: Set<UInt32> = []
    private var senderPort: UInt16 = 0
    private var seen: Set<UInt16> = []

    init() throws {
      viewer = try TestSocket.pair()
      ports = (try UDPPort.free(), viewer.control.port + 1)
      back = try TestSocket(port: try UDPPort.free())
    }

    var backPort: UInt16 { back.port }
    /// The number of packets that have come.
    var count: Int { seen.count }

    /// Relays for `seconds`, or until `isDone`; the first copy of every `loss`th packet is lost, none where that is 0.
    func run(seconds: Double, loss: Int, until isDone: () -> Bool) {
      let end = ContinuousClock.now + .seconds(seconds)
      while ContinuousClock.now < end, !isDone() {
        while let packet = viewer.media.next(within: 0.002) {
          let number = packet.bytes.rtpSequenceNumber
          sources.insert(packet.bytes.rtpSource)
          if seen.insert(number).inserted, loss > 0, seen.count % loss == 0 {
            lost += 1
            continue
          }
          back.send(packet.bytes, to: ports.media)
        }
        while let report = viewer.control.next(within: 0) {
          senderPort = report.port
          back.send(report.bytes, to: ports.media + 1)
        }
        while let feedback = back.next(within: 0) {
          control.append(feedback.bytes)
          viewer.control.send(feedback.bytes, to: senderPort)
        }
      }
    }
  }

  @Test func `GStreamer's reports, NACKs and PLIs are understood, and it understands us`() throws {
    let directory = try TemporaryDirectory()
    let relay = try Relay()
    let caps =
      "application/x-rtp,media=(string)video,clock-rate=90000,encoding-name=(string)H264,payload=96,"
      + "rtcp-fb-nack=(boolean)true,rtcp-fb-nack-pli=(boolean)true"
    let receiver = try Subprocess(
      ["gst-launch-1.0", "-q", "rtpbin", "name=r", "rtp-profile=avpf", "do-retransmission=true", "latency=300"]
        + ["do-lost=true", "udpsrc", "address=127.0.0.1", "port=\(relay.ports.media)", "caps=\(caps)", "!"]
        + ["r.recv_rtp_sink_0", "r.", "!", "rtph264depay", "request-keyframe=true", "!", "fakesink", "sync=false"]
        + ["udpsrc", "address=127.0.0.1", "port=\(relay.ports.media + 1)", "!", "r.recv_rtcp_sink_0"]
        + ["r.send_rtcp_src_0", "!", "udpsink", "host=127.0.0.1", "port=\(relay.backPort)", "sync=false"]
        + ["async=false"],
      in: directory, environment: ["GST_DEBUG": "rtpsession:6,rtpsource:7", "GST_DEBUG_NO_COLOR": "1"])
    defer { receiver.send(SIGKILL) }
    #expect(try eventually { try UDPPort.isBound(relay.ports.media) })
    let encoder = try SizedEncoder(keyBytes: 12_000, bytes: 5000)
    let running = try RunningPipeline(
      encoder, to: [StreamDestination(host: "127.0.0.1", port: relay.viewer.media.port)])
    func figures() -> DestinationStatistics { running.pipeline.statistics.destinations[0] }
    // It hears us before anything is lost.
    relay.run(seconds: 60, loss: 0) { figures().reception.reports > 0 && relay.count > 60 }
    let keyFrames = encoder.keyFrames.count
    func isAllHeard() -> Bool {
      figures().reception.roundTrip != nil && figures().feedback.packetsRetransmitted > 0
        && figures().feedback.pictureLosses > 0 && encoder.keyFrames.count > keyFrames
    }
    for round in 0..<60 where !isAllHeard() {
      // One packet in twenty, and at times all of several frames, which come too late to be repaired.
      relay.run(seconds: 1, loss: round % 3 == 2 ? 1 : 20, until: isAllHeard)
    }
    let (reception, feedback) = (figures().reception, figures().feedback)
    #expect(reception.reports > 0 && reception.roundTrip ?? Duration(seconds: 100) < Duration(seconds: 5))
    #expect(reception.highestSequenceNumber > 0)
    #expect(feedback.refused == 0, "all of it is RTCP")
    #expect(feedback.packetsRequested > 0 && feedback.packetsRetransmitted > 0)
    #expect(feedback.pictureLosses > 0)
    #expect(encoder.keyFrames.count > keyFrames)
    running.end()
    relay.run(seconds: 30, loss: 0) { receiver.errorSoFar.contains("got BYE packet") }
    // Its own end is GStreamer's affair.
    receiver.send(SIGKILL)
    let log = try receiver.wait(limit: 20).error
    let source = try #require(relay.sources.first)
    let hexadecimal = String(source, radix: 16)
    let padded = String(repeating: "0", count: 8 - hexadecimal.count) + hexadecimal
    #expect(log.contains("got SR packet: SSRC \(padded)"))
    #expect(log.contains("SDES changed for SSRC \(padded)"))
    #expect(log.contains("got BYE packet"))
    #expect(!log.contains("invalid RTCP") && !log.contains("bad RTCP"))
  }
}
