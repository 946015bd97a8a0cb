import Foundation
import Platform
import RTP
import Receiving
import TestSupport
import Testing

/// Streams of HEVC, of GStreamer's RTSP server and of ffmpeg's RTP.
@Suite struct HEVCStreamTests {
  /// Starts GStreamer's server with HEVC.
  private static func server(in directory: TemporaryDirectory) async throws -> (Subprocess, url: String) {
    let port = try TCPPort.free()
    let script = packageRoot.appendingPathComponent("Tests/ReceivingTests/Servers/rtsp-server.py").path
    let server = try Subprocess(["/usr/bin/python3", script, "\(port)", "--hevc"], in: directory)
    #expect(await comesTrue { server.outputSoFar.contains("ready") })
    return (server, "rtsp://127.0.0.1:\(port)/camera")
  }

  @Test func `GStreamer's RTSP server, by TCP and UDP`() async throws {
    let directory = try TemporaryDirectory()
    let (server, url) = try await Self.server(in: directory)
    defer { server.send(SIGKILL) }
    for way in [StreamReceiver.Transport.tcp, .udp] {
      let configuration = StreamOutcome.configuration(way)
      let outcome = try await StreamOutcome.of(.rtsp(StreamURL(url)), configuration, pictures: 20, seconds: 1.5)
      #expect(outcome.pictures >= 20 && outcome.errors.isEmpty, "\(way): \(outcome.errors) \(server.errorSoFar)")
      #expect(outcome.statistics.accessUnitsDamaged == 0 && outcome.statistics.counts.payloadsRefused == 0)
      try expectTone(outcome, "\(way)")
    }
  }

  @Test func `nightjar-watch shows it, and writes pictures that ffmpeg reads`() async throws {
    let directory = try TemporaryDirectory()
    let (server, url) = try await Self.server(in: directory)
    defer { server.send(SIGKILL) }
    let (png, y4m) = (directory.path("now.png"), directory.path("all.y4m"))
    let result = try WatchTests.watch(
      [url, "--for", "5s", "--png", png, "--y4m", y4m, "--expect-fps", "2.5"], in: directory)
    #expect(result.status == 0, "\(result.error) \(server.errorSoFar)")
    for file in [png, y4m] {
      let probed = try Subprocess.run(
        ["ffprobe", "-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", file], in: directory)
      #expect(probed.outputText.hasPrefix("320,192"), "\(file): \(probed.error)")
    }
    // GStreamer's ball is white on black: neither a grey picture nor one that was never decoded.
    let range = try Subprocess.run(
      [
        "ffmpeg", "-v", "info", "-nostdin", "-i", y4m, "-vf", "signalstats,metadata=print:key=lavfi.signalstats.YMAX",
        "-frames:v", "3", "-f", "null", "-",
      ], in: directory)
    let brightest = range.error.components(separatedBy: "YMAX=").dropFirst().compactMap {
      Int($0.prefix { $0.isNumber })
    }
    #expect(brightest.count == 3 && brightest.allSatisfy { $0 > 180 }, "\(range.error.suffix(400))")
  }

  @Test func `ffmpeg's RTP, whose parameter sets are in the session description alone`() async throws {
    let clip = try HEVCClip(
      size: "320x192", frames: 400, "bframes=0:keyint=10:min-keyint=10:open-gop=0")
    let port = try UDPPort.free()
    let sdp = clip.directory.path("stream.sdp")
    let sender = try Subprocess(
      [
        "ffmpeg", "-v", "error", "-nostdin", "-re", "-i", clip.path, "-c", "copy", "-bsf:v",
        "filter_units=remove_types=32-34", "-f", "rtp", "-sdp_file", sdp,
        "rtp://127.0.0.1:\(port)?rtcpport=\(port + 1)&pkt_size=600",
      ], in: clip.directory)
    defer { sender.send(SIGKILL) }
    #expect(await comesTrue { (try? String(contentsOfFile: sdp, encoding: .utf8))?.contains("sprop-pps") == true })
    let text = try String(contentsOfFile: sdp, encoding: .utf8)
    let outcome = try await StreamOutcome.of(.sessionDescription(text), .init(reconnects: false), pictures: 30)
    // The receiver comes in the midst of a group of pictures: what is before the next key frame is not shown.
    #expect(outcome.pictures >= 30 && outcome.errors.count == outcome.early, "\(outcome.errors)")
  }
}
