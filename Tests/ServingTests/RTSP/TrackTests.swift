#if X264
  import Foundation
  import Media
  import Platform
  import RTP
  import Serving
  import Streaming
  import TestSupport
  import Testing

  /// A stream of two tracks, of which the second is a payload that is defined in the tests: pictures and PCM.
  @Suite(.serialized) struct TrackTests {
    /// A camera with sound.
    private final class Bench {
      let camera: ServedCamera
      let sound: SoundSource

      init() throws {
        camera = try ServedCamera(furtherTracks: [SoundSource.format])
        sound = try SoundSource(camera.pipeline.tracks[1])
      }

      deinit {
        camera.pipeline.stop()
        sound.waitUntilEnd()
      }

      var url: String { "rtsp://127.0.0.1:\(camera.port)/camera" }
      /// The packets that viewers of a track have got.
      func packets(ofTrack track: Int) -> Int {
        camera.pipeline.statistics.destinations.reduce(0) { $0 + ($1.track == track ? $1.packets : 0) }
      }
    }

    @Test func `each track is described, set up and played, and the answer names both`() throws {
      let bench = try Bench()
      let client = try bench.camera.client()
      let text = try client.request("DESCRIBE", nil, ["Accept: application/sdp"]).body
      let media = text.components(separatedBy: "m=").dropFirst()
      #expect(media.count == 2, "\(text)")
      #expect(media.first?.hasPrefix("video 0 RTP/AVP 96\r\n") == true)
      #expect(media.first?.hasSuffix("a=control:trackID=0\r\n") == true)
      let sound = try #require(media.last)
      #expect(sound.hasPrefix("audio 0 RTP/AVP 98\r\n"))
      #expect(DescriptionLines(sound).attributes("rtpmap") == ["98 L16/48000/1"])
      #expect(sound.hasSuffix("a=control:trackID=1\r\n"))
      let received = try PlayableMedia.of(text)
      #expect(received.map(\.codec) == ["H264", "L16"] && received.map(\.frequency) == [90_000, 48_000])
      #expect(received.map(\.control) == ["trackID=0", "trackID=1"])
      // The presentation's own URL is that of no track.
      #expect(try client.request("SETUP", bench.url, ["Transport: RTP/AVP/TCP;unicast"]).status == 459)
      let first = try client.request("SETUP", bench.url + "/trackID=0", ["Transport: RTP/AVP/TCP;unicast"])
      let session = "Session: \(try #require(first.session))"
      let second = try client.request("SETUP", bench.url + "/trackID=1", ["Transport: RTP/AVP/TCP;unicast", session])
      #expect(first.header("Transport")?.contains("interleaved=0-1") == true)
      #expect(second.header("Transport")?.contains("interleaved=2-3") == true)
      let play = try client.request("PLAY", nil, [session])
      let information = (play.header("RTP-Info") ?? "").split(separator: ",")
      #expect(
        information.map { String($0.prefix { $0 != ";" }) } == [0, 1].map { "url=\(bench.url)/trackID=\($0)" })
      #expect(information.contains { $0.contains(";seq=") })
      // Packets and reports of each. The first packets are those that are named.
      #expect(
        eventually {
          client.pump(20)
          return Set(client.packets.map(\.channel)) == [0, 1, 2, 3]
        })
      for (index, channel) in [UInt8(0), 2].enumerated() {
        let packet = try #require(client.packets.first { $0.channel == channel }).bytes
        let header = try packet.withUnsafeBytes { try RTPPacket(parsing: $0).header }
        // On a busy machine the answer does not wait for a track that begins much later than the other one.
        let names = information[index].contains(";seq=\(header.sequenceNumber);rtptime=\(header.timestamp)")
        #expect(names || !information[index].contains(";seq="), "\(information[index])")
        #expect(header.payloadType.rawValue == [96, L16PayloadFormat.payloadType][index])
      }
      #expect(try client.request("PAUSE", bench.url + "/trackID=1", [session]).status == 460)
      #expect(try client.request("TEARDOWN", nil, [session]).status == 200)
      #expect(try bench.camera.settles(sessions: 0))
      #expect(eventually { bench.camera.pipeline.statistics.destinations.isEmpty })
    }

    @Test func `a viewer takes one track alone, or leaves one and keeps the other`() throws {
      let bench = try Bench()
      let client = try bench.camera.client()
      let first = try client.request("SETUP", bench.url + "/trackID=1", ["Transport: RTP/AVP/TCP;unicast"])
      var session = "Session: \(try #require(first.session))"
      let information = try client.request("PLAY", nil, [session]).header("RTP-Info")
      #expect(information?.hasPrefix("url=\(bench.url)/trackID=1;seq=") == true)
      #expect(client.take(10).count >= 10)
      #expect(bench.packets(ofTrack: 0) == 0)
      #expect(try client.request("TEARDOWN", nil, [session]).status == 200)

      let ports = [try DatagramPair(), try DatagramPair()]
      let setup = try client.request("SETUP", bench.url + "/trackID=0", ["Transport: \(ports[0].transport)"])
      session = "Session: \(try #require(setup.session))"
      _ = try client.request("SETUP", bench.url + "/trackID=1", ["Transport: \(ports[1].transport)", session])
      #expect(try client.request("PLAY", nil, [session]).status == 200)
      #expect(!ports[0].take(5).isEmpty && !ports[1].take(5).isEmpty)
      // Both are in the statistics, each by its track, once they have left.
      #expect(eventually { bench.packets(ofTrack: 0) > 0 && bench.packets(ofTrack: 1) > 0 })
      // It is one viewer, with the sums.
      let viewers = bench.camera.pipeline.statistics.viewers
      #expect(viewers.map(\.media) == [[.picture, .sound]] && viewers.map(\.isGuest) == [true])
      #expect(viewers.map(\.name) == ["rtsp udp 127.0.0.1:\(ports[0].port)"])
      let whole = try #require(try bench.camera.server.viewers().first?.figures)
      #expect(whole.packets >= (viewers.first?.packets ?? .max))
      #expect(try client.request("TEARDOWN", bench.url + "/trackID=0", [session]).status == 200)
      #expect(eventually { bench.camera.pipeline.statistics.destinations.map(\.track) == [1] })
      #expect(try bench.camera.settles(sessions: 1))
      #expect(bench.camera.pipeline.statistics.viewers.map(\.id) == viewers.map(\.id))
      #expect(eventually { bench.camera.pipeline.statistics.viewers.map(\.media) == [.sound] })
      let before = bench.packets(ofTrack: 1)
      #expect(eventually { bench.packets(ofTrack: 1) > before + 10 })
      #expect(try client.request("TEARDOWN", nil, [session]).status == 200)
      #expect(try bench.camera.settles(sessions: 0))
      let name = "viewer rtsp udp 127.0.0.1:\(ports[0].port)"
      var events: [String] = []
      _ = eventually {
        events += bench.camera.server.events.take().map(\.description)
        return events.contains { $0.hasPrefix("\(name) left after ") }
      }
      #expect(events.count { $0 == "\(name) is watching with sound" } == 1, "\(events)")
      #expect(events.count { $0.hasSuffix(" is listening") } == 1, "\(events)")
      #expect(events.count { $0.hasPrefix("\(name) left after ") } == 1, "\(events)")
      let figures = bench.camera.pipeline.tracks[1].figures
      #expect(figures.sent > 0 && figures.accessUnits >= figures.sent && figures.latency.count == figures.sent)
    }

    @Test(arguments: ["tcp", "udp"])
    func `ffmpeg gives back the pictures and the same samples`(transport: String) throws {
      var isJudged = false
      for _ in 0..<5 where !isJudged { isJudged = try judgeSamples(by: transport) }
      #expect(isJudged, "the host was held up for half a second, five times")
    }

    /// Has ffmpeg play both tracks. Returns `false`, with nothing judged, if samples are missing and the server says that it has
    /// left some out: what waits longer than a viewer's patience, because a program was held up, is not sent.
    private func judgeSamples(by transport: String) throws -> Bool {
      let bench = try Bench()
      let directory = try TemporaryDirectory()
      let (sound, pictures) = (directory.path("sound.raw"), directory.path("pictures.md5"))
      let result = try Subprocess.run(
        ["ffmpeg", "-v", "error"] + FFmpegTransport.options(transport) + ["-i", bench.url, "-map", "0:a", "-t", "2"]
          + ["-f", "s16be", "-y", sound, "-map", "0:v", "-t", "1", "-f", "framemd5", "-y", pictures],
        in: directory)
      #expect(result.status == 0, "\(result.error)")
      // ffmpeg counts the time from the first picture, so the sound of two seconds lacks what came before its first sample.
      let samples = try Data(contentsOf: URL(fileURLWithPath: sound))
      let run = try #require(SoundSource.run(samples))
      let isWhole = samples.count >= 96_000 && run.count == samples.count / 2
      if !isWhole, bench.camera.pipeline.tracks[1].figures.unsent > 0 { return false }
      #expect(isWhole, "\(run.count) samples of \(samples.count) bytes")
      let frames = try String(contentsOfFile: pictures, encoding: .utf8).split(separator: "\n")
      #expect(frames.count { !$0.hasPrefix("#") } > 0)
      #expect(try bench.camera.settles(sessions: 0))
      return true
    }

    @Test func `GStreamer gives back the same samples beside the pictures`() throws {
      let bench = try Bench()
      let directory = try TemporaryDirectory()
      let path = directory.path("sound.raw")
      func samples() -> Data { (try? Data(contentsOf: URL(fileURLWithPath: path))) ?? Data() }
      // GStreamer gives up what comes later than its latency: a busy host may hold either program up for some tenths.
      // Nor does it wait for a TEARDOWN to be sent for longer than 0.1 s by itself: then the session stays for a minute.
      let player = try Subprocess.branches(
        ["gst-launch-1.0", "rtspsrc", "name=s", "location=\(bench.url)", "protocols=udp", "latency=2000"]
          + ["teardown-timeout=20000000000"]
          + ["s.", "!", "application/x-rtp,media=video", "!", "queue", "!", "rtph264depay", "!", "fakesink"]
          + ["s.", "!", "application/x-rtp,media=audio", "!", "queue", "!", "rtpL16depay", "!", "filesink"]
          + ["buffer-mode=2", "location=\(path)"], in: directory
      ) { _ in samples().count > 96_000 }
      player.send(SIGINT)
      let log = try player.wait(limit: 30)
      let text = log.outputText + log.error
      #expect(samples().count > 96_000, "\(text)")
      let run = try #require(SoundSource.run(samples()), "\(text)")
      #expect(run.count == samples().count / 2)
      #expect(try bench.camera.settles(sessions: 0), "\(text)")
    }
  }
#endif
