import Foundation
import TestSupport
import Testing

/// The API and its client where a program has one camera, and where it has several.
@Suite struct SeveralCamerasTests {
  @Test func `the status has the program and every camera, in order`() throws {
    let served = try ServedControl(cameras: ["nursery", "garden"])
    let answer = try served.curl([], "/v1/status")
    #expect(answer.status == 200)
    let box = try #require(JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any])
    #expect(box["uptime_seconds"] as? Double == 3723.5)
    #expect(box["reloads"] as? Int == 2)
    let listener = try #require((box["listeners"] as? [[String: Any]])?.first)
    #expect(listener["scheme"] as? String == "rtsp")
    #expect(listener["port"] as? Int == 8554)
    let cameras = try #require(box["cameras"] as? [[String: Any]])
    #expect(cameras.map { $0["name"] as? String } == ["nursery", "garden"])
    for name in ["nursery", "garden"] {
      let camera = try served.curl([], "/v1/cameras/\(name)/status")
      #expect(camera.status == 200)
      #expect(camera["name"] == name)
    }
  }

  @Test func `a camera is named, or refused`() throws {
    let served = try ServedControl(cameras: ["nursery", "garden"])
    let turned = try served.curl(["-X", "PUT", "-d", #"{"degrees":90}"#], "/v1/cameras/garden/orientation")
    #expect(turned.status == 200)
    let url = #"{"url":"rtp://192.0.2.7:5004"}"#
    for (method, body, route) in [
      ("PUT", #"{"degrees":90}"#, "orientation"), ("POST", "", "keyframe"),
      ("PUT", #"{"bits_per_second":2500000}"#, "bitrate"), ("POST", url, "destinations"),
      ("DELETE", url, "destinations"),
    ] {
      let short = try served.curl(["-X", method, "-d", body], "/v1/\(route)")
      #expect(short.status == 409, "\(route)")
      #expect(short["field"] == "camera")
      #expect(short["limit"] == "nursery, garden")
      let unknown = try served.curl(["-X", method, "-d", body], "/v1/cameras/attic/\(route)")
      #expect(unknown.status == 404, "\(route)")
      #expect(unknown["error"] == "there is no camera 'attic': choose one of nursery, garden")
      let known = try served.curl(["-X", method, "-d", body], "/v1/cameras/nursery/\(route)")
      #expect(known.status == 200, "\(route)")
    }
    #expect(
      try served.finish() == [
        "listening", "garden: rotate 90", "nursery: rotate 90", "nursery: key frame", "nursery: bitrate 2500000",
        "nursery: add rtp://192.0.2.7:5004", "nursery: remove rtp://192.0.2.7:5004", "stopped",
      ])
  }

  @Test func `viewers are those of all cameras, or of one`() throws {
    let served = try ServedControl(cameras: ["nursery", "garden"])
    func viewers(_ route: String) throws -> [[String: Any]] {
      let body = try served.curl([], route).body
      let answer = try JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any]
      return try #require(answer?["viewers"] as? [[String: Any]])
    }
    let all = try viewers("/v1/viewers")
    #expect(all.map { $0["camera"] as? String } == ["nursery", "garden"])
    #expect(all[0]["url"] as? String == "rtp://127.0.0.1:5004")
    #expect(all[0]["packets_lost"] as? Int == 5)
    #expect(all[0]["guest"] as? Bool == false)
    #expect(try viewers("/v1/cameras/garden/viewers").map { $0["camera"] as? String } == ["garden"])
  }

  @Test func `reload answers with what became of each camera, or with what is wrong in the file`() throws {
    let served = try ServedControl(cameras: ["nursery", "garden"])
    let answer = try served.curl(["-X", "POST"], "/v1/reload")
    #expect(answer.status == 200)
    #expect(
      answer.body
        == #"{"cameras":[{"changes":["bitrate: 2.5M"],"name":"nursery","outcome":"changed"},"#
        + #"{"changes":["bitrate: 2.5M"],"name":"garden","outcome":"changed"}],"#
        + #""server":["users: 3 instead of 2"],"warnings":["the port stays"]}"# + "\n")
    let words = try served.ctl("reload")
    #expect(
      words.outputText == """
        camera nursery: changed
          bitrate: 2.5M
        camera garden: changed
          bitrate: 2.5M
        users: 3 instead of 2
        warning: the port stays

        """)
    let broken = try ServedControl(cameras: ["unreadable"])
    let refused = try broken.ctl("reload")
    #expect(refused.status == 65)
    #expect(refused.error == "nightjar: /etc/nightjar/nightjar.toml:3: bitrat: there is no such key\n")
  }

  @Test func `ctl names a camera, and without a name says which there are`() throws {
    let served = try ServedControl(cameras: ["nursery", "garden"])
    let status = try served.ctl("status").outputText
    let names = status.split(separator: "\n").filter { $0.hasPrefix("name ") }
    #expect(names == ["name         nursery", "name         garden"], "\(status)")
    #expect(try served.ctl("status", "--camera", "garden").status == 0)
    let unnamed = try served.ctl("rotate", "90")
    #expect(unnamed.status == 64)
    #expect(
      unnamed.log.failures == [
        "there are several cameras: name one of nursery, garden; by ctl with --camera nursery, by HTTP as in "
          + "/v1/cameras/nursery/…, pictures as in /cameras/nursery/snapshot.jpg"
      ])
    let unknown = try served.ctl("rotate", "90", "--camera", "attic/../garden")
    #expect(unknown.status == 66, "\(unknown.error)")
    #expect(try served.ctl("rotate", "90", "--camera", "garden").status == 0)
    #expect(try served.finish() == ["listening", "garden: rotate 90", "stopped"])
  }

  @Test func `every subcommand writes the server's own JSON`() throws {
    let served = try ServedControl()
    for (arguments, method, body, route) in [
      (["status"], "GET", "", "/v1/status"), (["viewers"], "GET", "", "/v1/viewers"),
      (["status", "--camera", "camera"], "GET", "", "/v1/cameras/camera/status"),
      (["reload"], "POST", "", "/v1/reload"), (["keyframe"], "POST", "", "/v1/keyframe"),
      (["rotate", "90"], "PUT", #"{"degrees":90,"mirrored":false}"#, "/v1/orientation"),
      (["bitrate", "2.5M"], "PUT", #"{"bits_per_second":2500000}"#, "/v1/bitrate"),
      (["add", "rtp://192.0.2.7:5004"], "POST", #"{"url":"rtp://192.0.2.7:5004"}"#, "/v1/destinations"),
      (["remove", "rtp://192.0.2.7:5004"], "DELETE", #"{"url":"rtp://192.0.2.7:5004"}"#, "/v1/destinations"),
    ] {
      let json = try Subprocess.run(
        [nightjarPath, "ctl"] + arguments + ["--json", "--socket", served.socket], in: served.directory)
      #expect(json.status == 0, "\(arguments): \(json.error)")
      let curl = try served.curl(["-X", method] + (body.isEmpty ? [] : ["-d", body]), route)
      #expect(curl.status == 200)
      #expect(json.outputText == curl.body, "\(arguments)")
    }
  }
}
