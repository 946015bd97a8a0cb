import Foundation
import TestSupport
import Testing

/// Every route, asked by curl.
@Suite struct ControlAPITests {
  @Test func `the status has every figure, in snake case`() throws {
    let served = try ServedControl()
    let answer = try served.curl([], "/v1/cameras/camera/status")
    #expect(answer.status == 200)
    #expect(HTTPFields(answer.headers)["content-type"] == "application/json")
    let figures = try Subprocess.run(
      ["python3", "-c", Self.flatten, answer.body], in: served.directory
    ).outputText.split(separator: "\n").map(String.init)
    #expect(
      Set(figures) == [
        "missing_destinations.0.url=rtp://late.example:5004",
        "missing_destinations.0.reason=cannot find the host 'late.example'; nightjar tries again",
        "name=camera", "health.name=camera", "health.state=streaming", "health.healthy=True", "source.name=test",
        "source.width=1280", "source.height=720", "source.fps=29.97",
        "sound.present=True", "sound.name=C920", "sound.rms_dbfs=-42.5", "sound.peak_dbfs=-20",
        "sound.loudest_rms_dbfs=-42.5",
        "sound.loudest_peak_dbfs=-20", "sound.digital_silence_seconds=75", "sound.muted=False", "sound.period_ms=10",
        "sound.timestamps=driver", "sound.unstamped=0",
        "sound.gain_db=3", "sound.clipped=7", "sound.silence_seconds=0.5", "sound.drift_ppm=-12.5", "sound.overruns=1",
        "sound.losses=0", "sound.encoded=500", "sound.failed=0", "sound.dropped=0",
        "orientation.degrees=90",
        "orientation.mirrored=True", "orientation.width=720", "orientation.height=1280", "orientation.switches=3",
        "encoder.name=x264", "encoder.codec=h264", "encoder.bitrate=2500000", "encoder.failovers=1",
        "encoder.busy_seconds=2.5",
        "frames.captured=100",
        "frames.encoded=98", "frames.key_frames=4", "frames.thinned=1", "frames.unwatched=6",
        "frames.sent=97",
        "adaptation.thermal_state=serious", "adaptation.temperature=81.5", "adaptation.zone=cpu-thermal",
        "adaptation.load=0.25", "adaptation.maximum_fps=25", "adaptation.bitrate_share=0.7", "adaptation.changes=2",
        "quality.x264_preset=veryfast", "quality.reason=room", "quality.encode_p99_ms=9.5",
        "quality.encode_limit_ms=16.7", "quality.processors=0.42", "quality.processor_budget=2", "quality.threads=2",
        "quality.changes=1",
        "frames.dropped=3",
        "frames.dropped_by_cause.encoder_late=2", "frames.dropped_by_cause.network=1",
        "destinations.0.url=rtp://127.0.0.1:5004", "destinations.0.packets=700", "destinations.0.bytes=840000",
        "destinations.0.packets_lost=5", "destinations.0.frames_dropped=0", "destinations.0.slow=False",
        "destinations.0.key_frame_requests=0", "destinations.0.packets_retransmitted=0", "uptime_seconds=3723.5",
        "threads.0.name=nj-capture", "threads.0.policy=rr", "threads.0.priority=5", "threads.0.timer_slack_ns=1",
        "threads.0.cpus=0-1", "threads.1.name=nj-encode", "threads.1.policy=other", "threads.1.priority=0",
        "threads.1.timer_slack_ns=1", "threads.1.cpus=0-1", "threads.2.name=nj-send", "threads.2.policy=rr",
        "threads.2.priority=5", "threads.2.timer_slack_ns=1", "threads.2.cpus=0-1",
        "pictures.viewers=0", "pictures.snapshot_viewers=0", "pictures.coded=0", "pictures.passed=0",
        "pictures.skipped=0",
        "sound.mp3_listeners=0", "sound.mp3_frames=0", "sound.mp3_skipped=0",
      ])
    let head = try served.curl(["-I"], "/v1/status")
    #expect(head.status == 200)
    #expect(try served.finish() == ["listening", "stopped"])
  }

  private static let flatten = """
    import json, sys
    def walk(value, path):
        if isinstance(value, dict): [walk(v, path + [k]) for k, v in value.items()]
        elif isinstance(value, list): [walk(v, path + [str(i)]) for i, v in enumerate(value)]
        else: print(".".join(path) + "=" + str(round(value, 2) if isinstance(value, float) else value))
    walk(json.loads(sys.argv[1]), [])
    """

  @Test func `commands reach the stream and are answered with what it took`() throws {
    let served = try ServedControl()
    let turned = try served.curl(["-X", "PUT", "-d", #"{"degrees": 90}"#], "/v1/orientation")
    #expect(turned.status == 200)
    #expect(turned.body == #"{"degrees":90,"mirrored":false}"# + "\n")
    let mirrored = try served.curl(["-X", "PUT", "-d", #"{"mirrored":true,"degrees":180}"#], "/v1/orientation")
    #expect(mirrored.body == #"{"degrees":180,"mirrored":true}"# + "\n")
    let key = try served.curl(["-X", "POST"], "/v1/keyframe")
    #expect(key.status == 200)
    #expect(key.body == #"{"key_frame":"requested"}"# + "\n")
    let chunked = try served.curl(
      ["-X", "PUT", "-H", "Transfer-Encoding: chunked", "-d", #"{"bits_per_second":2500000}"#], "/v1/bitrate")
    #expect(chunked.body == #"{"bits_per_second":2500000}"# + "\n")
    let url = #"{"url":"rtp://192.0.2.7:5004"}"#
    let added = try served.curl(["-X", "POST", "-d", url], "/v1/destinations")
    #expect(added.body == #"{"session_description":"v=0\r\n","url":"rtp://192.0.2.7:5004"}"# + "\n")
    let removed = try served.curl(["-X", "DELETE", "-d", url], "/v1/destinations")
    #expect(removed.body == #"{"url":"rtp://192.0.2.7:5004"}"# + "\n")
    let unknown = try served.curl(["-X", "DELETE", "-d", #"{"url":"unknown"}"#], "/v1/destinations")
    #expect(unknown.status == 404)
    #expect(
      try served.finish() == [
        "listening", "rotate 90", "rotate 180 mirrored", "key frame", "bitrate 2500000", "add rtp://192.0.2.7:5004",
        "remove rtp://192.0.2.7:5004", "stopped",
      ])
  }

  @Test func `two requests of one connection are answered in turn`() throws {
    let served = try ServedControl()
    let answer = try served.curl(
      ["-X", "POST", "http://localhost/v1/keyframe", "-o", served.directory.path("second")], "/v1/keyframe")
    #expect(answer.status == 200_200)
    #expect(try served.finish() == ["listening", "key frame", "key frame", "stopped"])
  }

  @Test(arguments: [
    ("/v1/orientation", "", "not a JSON object"), ("/v1/orientation", "{", "not a JSON object"),
    ("/v1/orientation", "[90]", "not a JSON object"), ("/v1/orientation", "90", "not a JSON object"),
    ("/v1/orientation", "{}", "degrees is missing"),
    ("/v1/orientation", #"{"degrees":"90"}"#, "degrees is of the wrong"),
    ("/v1/orientation", #"{"degrees":null}"#, "degrees is of the wrong"),
    ("/v1/orientation", #"{"degrees":90.5}"#, "degrees is of the wrong"),
    ("/v1/orientation", #"{"degrees":1e99}"#, "degrees is of the wrong"),
    ("/v1/orientation", #"{"degrees":45}"#, "choose 0, 90, 180 or 270"),
    ("/v1/orientation", #"{"degrees":90,"mirrored":1}"#, "mirrored is of the wrong"),
    ("/v1/orientation", #"{"degree":90}"#, "no field 'degree'"),
    ("/v1/bitrate", #"{"bits_per_second":0}"#, "choose 50000 to 400000000"),
    ("/v1/bitrate", #"{"bits_per_second":-1}"#, "choose 50000 to 400000000"),
    ("/v1/bitrate", #"{"bits_per_second":9223372036854775808}"#, "bits_per_second is of the wrong"),
    ("/v1/audio", "", "not a JSON object"), ("/v1/audio", "true", "not a JSON object"),
    ("/v1/audio", "{}", "muted is missing"),
    ("/v1/audio", #"{"muted":1}"#, "muted is of the wrong"), ("/v1/audio", #"{"muted":null}"#, "muted is of the wrong"),
    ("/v1/audio", #"{"muted":"true"}"#, "muted is of the wrong"),
    ("/v1/audio", #"{"gain_db":"6"}"#, "gain_db is of the wrong"),
    ("/v1/audio", #"{"gain_db":true}"#, "gain_db is of the wrong"),
    ("/v1/audio", #"{"muted":true,"gain_db":30.1}"#, "choose a number from -30 to 30"),
    ("/v1/audio", #"{"gain_db":-31}"#, "choose a number from -30 to 30"),
    ("/v1/audio", #"{"gain_db":1e300}"#, "choose a number from -30 to 30"),
    ("/v1/audio", #"{"gain":6}"#, "no field 'gain'"),
    ("/v1/bitrate", "\u{0}\u{ff}", "not a JSON object"),
    ("/v1/bitrate", String(repeating: "[", count: 4000), "not a JSON object"),
  ])
  func `a wrong body changes nothing and says why`(_ route: String, _ body: String, _ reason: String) throws {
    let served = try ServedControl()
    let file = served.directory.url.appendingPathComponent("request")
    try Data(body.utf8).write(to: file)
    let answer = try served.curl(["-X", "PUT", "--data-binary", "@\(file.path)"], route)
    #expect(answer.status == 400)
    #expect(answer["error"]?.contains(reason) == true, "\(answer.body)")
    #expect(answer["failure"] == "usage")
    #expect(answer["limit"] != nil)
    #expect(try served.finish() == ["listening", "stopped"])
  }

  @Test func `the sound of the camera that the path names is shown and changed, where there is one`() throws {
    let served = try ServedControl(cameras: ["nursery", "silent"])
    let shown = try served.curl([], "/v1/cameras/nursery/audio")
    #expect(shown.status == 200 && shown["name"] == "C920" && shown["rms_dbfs"] == "-42.5", "\(shown.body)")
    for body in [#"{"muted":true}"#, #"{"gain_db":-30}"#, #"{"muted":false,"gain_db":30}"#] {
      #expect(try served.curl(["-X", "PUT", "-d", body], "/v1/cameras/nursery/audio").status == 200, "\(body)")
    }
    for request in [[], ["-X", "PUT", "-d", #"{"muted":true}"#]] {
      let refused = try served.curl(request, "/v1/cameras/silent/audio")
      #expect(refused.status == 503 && refused["failure"] == "unavailable", "\(refused.body)")
      #expect(refused["error"] == "camera silent has no sound")
      #expect(try served.curl(request, "/v1/audio").status == 409)
    }
    let status = try served.curl([], "/v1/cameras/silent/status")
    #expect(status.status == 200 && status["sound"] == nil)
    #expect(
      try served.finish() == [
        "listening", "nursery: sound muted true", "nursery: sound gain -30.0", "nursery: sound muted false gain 30.0",
        "stopped",
      ])
  }

  @Test func `what the stream cannot do comes with its own words and a status of its kind`() throws {
    let served = try ServedControl()
    let unable = try served.curl(["-X", "PUT", "-d", #"{"degrees":270}"#], "/v1/orientation")
    #expect(unable.status == 503)
    #expect(unable["error"] == "the camera is gone: plug it in")
    #expect(unable["failure"] == "unavailable")
    let broken = try served.curl(["-X", "PUT", "-d", #"{"bits_per_second":1000000}"#], "/v1/bitrate")
    #expect(broken.status == 500)
    #expect(broken["failure"] == "software")
  }

  @Test func `a wrong path or method is told the right ones`() throws {
    let served = try ServedControl()
    for route in [
      "/page", "/page/nothing.js", "/whep/x/y", "/v1", "/v1/statuses", "/v2/status", "/v1/%2e%2e/status",
      "/v1/status/x",
    ] {
      let answer = try served.curl(["--path-as-is"], route)
      #expect(answer.status == 404, "\(route)")
      #expect(answer["limit"]?.contains("/v1/orientation") == true)
    }
    for (method, route, allowed) in [
      ("GET", "/v1/orientation", "PUT"), ("DELETE", "/v1/status", "GET, HEAD"), ("PUT", "/v1/keyframe", "POST"),
      ("BREW", "/v1/bitrate", "PUT"),
    ] {
      let answer = try served.curl(["-X", method], route)
      #expect(answer.status == (method == "BREW" ? 400 : 405), "\(method) \(route)")
      guard method != "BREW" else { continue }
      #expect(HTTPFields(answer.headers)["allow"] == allowed)
      #expect(answer["limit"] == allowed)
    }
    #expect(try served.finish() == ["listening", "stopped"])
  }
}
