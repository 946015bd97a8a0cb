#if X264
  import Foundation
  import Serving
  import TestSupport
  import Testing

  /// The answers to DESCRIBE, whoever asks.
  @Suite(.serialized) struct DescriptionTests {
    private static let gstreamer = "User-Agent: GStreamer/1.26.2"

    /// Returns the answer to a client that sends these headers, and this query.
    private static func described(
      _ client: RTSPClient, _ headers: [String] = [], query: String = ""
    ) throws -> String {
      let reply = try client.request("DESCRIBE", client.url + query, ["Accept: application/sdp"] + headers)
      #expect(reply.status == 200)
      // Where the tracks are does not depend on the query.
      #expect(reply.header("Content-Base") == client.url + "/")
      return reply.body
    }

    private static func media(_ description: String) -> String? {
      description.components(separatedBy: "\r\n").first { $0.hasPrefix("m=") }
    }

    @Test(arguments: [false, true], [false, true])
    func `all but those known to read AVPF get AVP with one payload type`(isEncrypted: Bool, hasGroup: Bool) throws {
      let secure = try SecureCamera { $0.requiresEncryption = isEncrypted }
      if hasGroup {
        try secure.camera.server.setPresentations([
          Presentation(
            name: "camera", pipeline: secure.camera.pipeline,
            group: .init(address: "239.195.7.20", port: 5004, timeToLive: 1))
        ])
      }
      let client = try isEncrypted ? secure.client() : secure.plainClient()
      let profile = isEncrypted ? "RTP/SAVP" : "RTP/AVP"
      for (headers, takesKey) in [
        ([], true), (["User-Agent: LibVLC/3.0.20 (LIVE555 Streaming Media v2016.11.28)"], false),
        (["User-Agent: Lavf61.7.100"], true), (["User-Agent: AndroidXMedia3/1.8.0"], true),
      ] {
        let text = try Self.described(client, headers)
        let hasKey = isEncrypted && takesKey
        #expect(Self.media(text) == "m=video 0 \(hasKey ? "RTP/SAVP" : "RTP/AVP") 96", "\(text)")
        let live555 = try #require(try Live555Description(text).media.first, "\(text)")
        #expect(live555.codec == "H264" && live555.control == "trackID=0")
        #expect(live555.protocolName == (hasKey ? "SRTP" : "RTP") && live555.keys.count == (hasKey ? 1 : 0))
        let media3 = try #require(try Media3Description(text).media.first, "\(text)")
        #expect(media3.encoding == "H264" && media3.attributes["control"] == "trackID=0")
      }
      let offered = "m=video 0 \(profile)F 96" + (isEncrypted ? "" : " 97")
      #expect(Self.media(try Self.described(client, [Self.gstreamer])) == offered)
      #expect(Self.media(try Self.described(client, query: "?profile=avpf")) == offered)
      #expect(
        Self.media(try Self.described(client, [Self.gstreamer], query: "?profile=avp")) == "m=video 0 \(profile) 96")
    }

    @Test func `the root is the only camera, and of several names them`() throws {
      let camera = try ServedCamera()
      for path in ["", "/", "/?profile=avp"] {
        let client = try camera.client()
        let root = "rtsp://127.0.0.1:\(camera.port)"
        let reply = try client.request("DESCRIBE", root + path)
        #expect(reply.status == 200 && reply.header("Content-Base") == "\(root)/camera/")
        // By the answer's URL as by its own.
        let setup = try client.request("SETUP", "\(root)/trackID=0", ["Transport: \(PlayTests.interleaved)"])
        let session = "Session: \(try #require(setup.session))"
        let play = try client.request("PLAY", "\(root)/", [session, "Range: npt=0.000-5.000"])
        #expect(play.status == 200 && play.header("Range") == "npt=now-")
        #expect(play.header("RTP-Info")?.contains("url=\(root)/camera/trackID=0;") == true)
        #expect(client.take(10).count >= 10)
        #expect(try client.request("TEARDOWN", root, [session]).status == 200)
      }
      let several = try ServedCameras(["nursery": PresentationTests.nursery, "porch": PresentationTests.porch])
      let client = try several.client("nursery")
      let root = "rtsp://127.0.0.1:\(several.port)/"
      for path in ["", "garage"] {
        let missed = try client.request("DESCRIBE", root + path)
        #expect(missed.status == 404 && missed.body == "\(root)nursery\r\n\(root)porch\r\n", "\(missed)")
      }
    }
  }
#endif
