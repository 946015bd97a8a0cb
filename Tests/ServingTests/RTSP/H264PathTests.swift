#if X264
  import Capture
  import Encoding
  import Foundation
  import Media
  import Platform
  import Serving
  import Streaming
  import TestSupport
  import Testing

  /// Processors of which every encoder finds as many left.
  private struct FixedRoom: ProcessorRoom {
    let room: Double

    func take(inPlaceOf former: ProcessorGrant?, _ choose: (_ room: Double) -> Double) -> ProcessorGrant {
      ProcessorGrant(number: 0, processors: choose(room))
    }
  }

  /// The path of H.264 beside a stream's own codec. That codec is H.264 as well here, which the server does not notice.
  @Suite(.serialized) struct H264PathTests {
    /// A camera with H.264 beside its pictures, served by RTSP.
    private final class Bench {
      let pipeline: Pipeline
      let server: RTSPServer
      let sound: SoundSource?

      init(
        name: String = "camera", room: Double = .infinity, obstacle: String? = nil, hasSound: Bool = false,
        startPatience: Duration? = Duration(seconds: 60),
        make: @escaping Pipeline.MakeRenditionEncoder = { try EncoderSelector.selectSmall(.x264, $0) }
      ) throws {
        let size = PictureSize(width: 320, height: 240)
        let configuration = EncoderSettings().configuration(
          size: size, frameRate: .thirty, bitrate: 500_000, color: .bt709, processors: 1)
        let sets = try EncoderSelector.softwareParameterSets(for: configuration)
        let plan =
          obstacle.map { H264Plan(configuration, obstacle: $0) }
          ?? H264Plan(configuration, parameterSets: sets, makeEncoder: make)
        pipeline = try Pipeline(
          source: try SyntheticCamera(size: size, frameRate: .thirty),
          encoder: try EncoderSelector.select(.x264, configuration).encoder, destinations: [],
          furtherTracks: hasSound ? [SoundSource.format] : [], keyFrameInterval: Duration(seconds: 600),
          restsUnwatched: true, h264: plan)
        pipeline.setProcessorRoom(FixedRoom(room: room))
        try pipeline.start()
        sound = try hasSound ? SoundSource(pipeline.tracks[1]) : nil
        var served = RTSPServerConfiguration(listeners: [.init(address: "127.0.0.1", port: 0)])
        if let startPatience { served.startPatience = startPatience }
        server = try RTSPServer(
          served,
          presentations: [Presentation(name: name, pipeline: pipeline)])
      }

      deinit {
        server.stop()
        pipeline.stop()
        sound?.waitUntilEnd()
        _ = pipeline.waitUntilEnd()
      }

      func client(_ path: String = "camera/h264") throws -> RTSPClient {
        try RTSPClient(port: server.listeners[0].port, path: path)
      }
    }

    /// The codecs of a description, with their clocks.
    private static func codecs(_ description: String) -> [Substring] {
      DescriptionLines(description).attributes("rtpmap").compactMap { $0.split(separator: " ").last }
    }

    @Test func `the description of the stream names the URL of H.264, and the root is the stream's own`() throws {
      let bench = try Bench()
      let url = "rtsp://127.0.0.1:\(bench.server.listeners[0].port)/camera"
      for path in ["camera", ""] {
        let text = try bench.client(path).request("DESCRIBE", nil, ["Accept: application/sdp"])
        #expect(text.header("Content-Base") == "\(url)/", "\(text)")
        #expect(DescriptionLines(text.body)["i"] == ["H.264 for players without HEVC: \(url)/h264"], "\(text.body)")
        #expect(try PlayableMedia.of(text.body).map(\.codec) == ["H264"])
      }
      let other = try bench.client().request("DESCRIBE", nil, ["Accept: application/sdp"])
      #expect(other.header("Content-Base") == "\(url)/h264/" && !other.body.contains("\r\ni="), "\(other)")
      #expect(Self.codecs(other.body) == ["H264/90000"], "\(other.body)")
      #expect(try PlayableMedia.of(other.body).map(\.control) == ["trackID=0"])
      #expect(other.body.contains("sprop-parameter-sets="), "\(other.body)")
      let missing = try bench.client("garden").request("DESCRIBE")
      #expect(missing.status == 404 && missing.body.contains("/camera/h264"), "\(missing)")
    }

    @Test func `a URL that is longer than a session's information may be is not named, and works`() throws {
      let name = String(repeating: "n", count: 120)
      let bench = try Bench(name: name)
      let text = try bench.client(name).request("DESCRIBE", nil, ["Accept: application/sdp"])
      #expect(text.status == 200 && !text.body.contains("\r\ni="), "\(text.body)")
      let other = try bench.client("\(name)/h264").request("DESCRIBE", nil, ["Accept: application/sdp"])
      #expect(other.status == 200 && Self.codecs(other.body) == ["H264/90000"], "\(other)")
    }

    @Test(arguments: [true, false])
    func `a viewer gets H.264 from its first packet on, and the stream's own pictures rest`(overTCP: Bool) throws {
      let bench = try Bench()
      let client = try bench.client()
      let ports = try DatagramPair()
      let (setup, play) = try client.play(overTCP ? PlayTests.interleaved : ports.transport)
      let start = try #require(play.start, "\(play)")
      let stream = try ReceivedStream(overTCP ? client.take(60) : ports.take(60))
      #expect(stream.first.sequence == start.sequence && stream.first.timestamp == start.timestamp)
      try stream.expectDecodable(missed: bench.pipeline.missedFrames)
      let statistics = bench.pipeline.statistics
      #expect(statistics.encoded == 0 && statistics.destinations.map(\.getsH264) == [true])
      #expect(try bench.server.statistics().viewers == ["camera": 1])
      #expect(try client.request("TEARDOWN", nil, ["Session: \(setup.session ?? "")"]).status == 200)
      #expect(eventually { bench.pipeline.statistics.destinations.isEmpty })
      #expect(eventually { bench.pipeline.statistics.h264Rendition?.isRunning == false })
    }

    @Test func `sound comes beside the H.264, as beside the stream's own pictures`() throws {
      let bench = try Bench(hasSound: true)
      let client = try bench.client()
      let text = try client.request("DESCRIBE", nil, ["Accept: application/sdp"]).body
      let media = try PlayableMedia.of(text)
      #expect(media.map(\.codec) == ["H264", "L16"], "\(text)")
      #expect(media.map(\.control) == ["trackID=0", "trackID=1"], "\(text)")
      let setup = try client.request("SETUP", client.url + "/trackID=0", ["Transport: RTP/AVP/TCP;unicast"])
      let session = "Session: \(try #require(setup.session))"
      let other = try client.request("SETUP", client.url + "/trackID=1", ["Transport: RTP/AVP/TCP;unicast", session])
      #expect(setup.status == 200 && other.status == 200)
      #expect(try client.request("PLAY", nil, [session]).status == 200)
      #expect(client.take(10, channel: 2).count >= 10)
      #expect(client.take(10, channel: 0).count >= 10)
      let viewers = bench.pipeline.statistics.viewers
      #expect(viewers.count == 1 && viewers[0].media.names == ["picture", "sound"] && viewers[0].getsH264)
    }

    @Test func `a refusal has its reason, and concerns no viewer of the stream's own pictures`() throws {
      let short = try Bench(room: 0.001)
      let refused = try short.client().request("DESCRIBE", nil, ["Accept: application/sdp"])
      #expect(refused.status == 503 && refused.body.contains("--cpu-budget"), "\(refused)")
      #expect(refused.header("Retry-After") == "10", "\(refused)")
      let client = try short.client()
      let setup = try client.request("SETUP", client.url + "/trackID=0", ["Transport: \(PlayTests.interleaved)"])
      let play = try client.request("PLAY", nil, ["Session: \(setup.session ?? "")"])
      #expect(play.status == 503 && play.body.contains("--cpu-budget"), "\(play)")
      #expect(eventually { short.server.events.take().contains { $0.description.contains("--cpu-budget") } })
      let other = try short.client("camera")
      _ = try other.play(PlayTests.interleaved)
      #expect(other.take(10).count >= 10)

      let without = try Bench(obstacle: "this build has no x264")
      let answer = try without.client().request("DESCRIBE", nil, ["Accept: application/sdp"])
      let refusal = H264Refusal.noEncoder("this build has no x264")
      #expect(
        answer.status == 501 && answer.body.trimmingCharacters(in: .newlines) == refusal.description, "\(answer)")
      #expect(answer.header("Retry-After") == nil, "\(answer)")
      // A URL that gives nothing is not named.
      let text = try without.client("camera").request("DESCRIBE", nil, ["Accept: application/sdp"]).body
      #expect(!text.contains("\r\ni="), "\(text)")
    }

    @Test func `after the encoder has failed, a client is told to wait until it is tried again`() throws {
      let bench = try Bench(startPatience: nil) { _ in throw EncoderError.unavailable("none is left") }
      let first = try bench.client()
      let setup = try first.request("SETUP", first.url + "/trackID=0", ["Transport: \(PlayTests.interleaved)"])
      #expect(try first.request("PLAY", nil, ["Session: \(setup.session ?? "")"]).status == 200)
      try #require(eventually { bench.pipeline.statistics.h264Rendition?.failure == "none is left" })
      let refused = try bench.client().request("DESCRIBE", nil, ["Accept: application/sdp"])
      #expect(refused.status == 503 && refused.body.contains("none is left"), "\(refused)")
      // The encoder pauses for a minute.
      let seconds = try #require(refused.header("Retry-After").flatMap { Int($0) }, "\(refused)")
      #expect((11...60).contains(seconds), "\(refused)")
    }
  }
#endif
