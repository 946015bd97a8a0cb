import RTSP
import Testing

@Suite struct RequestTargetTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let text: String
    let path: String
    var authority: String? = "h"
    var scheme: RequestURL.Scheme? = .rtsp
    var track: Int?
    var query: String?
    var testDescription: String { text }
  }

  @Test(arguments: [
    Case(text: "rtsp://h/camera", path: "/camera"),
    Case(text: "rtsp://h/camera/", path: "/camera"),
    Case(text: "rtsp://h//camera//", path: "/camera"),
    Case(text: "rtsp://h", path: "/"),
    Case(text: "rtsp://h/", path: "/"),
    Case(text: "RTSP://h:554/a/b", path: "/a/b", authority: "h:554"),
    Case(text: "rtsps://h:/camera", path: "/camera", scheme: .rtsps),
    Case(text: "rtsp://user:p%40ss@h/camera", path: "/camera"),
    Case(text: "rtsp://user@evil@h:1/camera", path: "/camera", authority: "h:1"),
    Case(text: "rtsp://[2001:db8::1]:8554/camera", path: "/camera", authority: "[2001:db8::1]:8554"),
    Case(text: "rtsp://[fe80::1%25eth0]/camera", path: "/camera", authority: "[fe80::1%25eth0]"),
    Case(text: "/camera", path: "/camera", authority: nil, scheme: nil),
    Case(text: "/camera/trackID=0", path: "/camera", authority: nil, scheme: nil, track: 0),
    Case(text: "rtsp://h/camera/trackID=12", path: "/camera", track: 12),
    Case(text: "rtsp://h/camera/trackID=12/", path: "/camera", track: 12),
    Case(text: "rtsp://h/trackID=1", path: "/", track: 1),
    Case(text: "rtsp://h/camera/trackID=x", path: "/camera/trackID=x"),
    Case(text: "rtsp://h/camera/trackID=-1", path: "/camera/trackID=-1"),
    Case(text: "rtsp://h/camera/trackID=", path: "/camera/trackID="),
    Case(text: "rtsp://h/trackID=0/camera", path: "/trackID=0/camera"),
    Case(text: "rtsp://h/camera?x=1&y", path: "/camera", query: "x=1&y"),
    Case(text: "rtsp://h?x=/", path: "/", query: "x=/"),
    Case(text: "rtsp://h/camera?x=1/trackID=0", path: "/camera", track: 0, query: "x=1"),
    Case(text: "rtsp://h/camera/trackID=0?x=1", path: "/camera", track: 0, query: "x=1"),
    Case(text: "rtsp://h/c%61mera%20%C3%A9", path: "/camera é"),
  ])
  func `a URL is read`(example: Case) throws {
    guard case .resource(let url) = try RequestTarget(example.text) else { throw RequestURLError.path(example.text) }
    #expect(url.path == example.path)
    #expect(url.authority == example.authority)
    #expect(url.scheme == example.scheme)
    #expect(url.track == example.track)
    #expect(url.query == example.query)
    // What is written can be read, and names the same.
    let base = url.base(authority: "192.0.2.1:8554", scheme: .rtsps)
    let again = try RequestURL(base)
    #expect(again.path == url.path)
    #expect(again.authority == (url.authority ?? "192.0.2.1:8554"))
    #expect(try RequestURL(base + "trackID=3").track == 3)
  }

  @Test func `the base of a URL has no user, query, comma or semicolon`() throws {
    let url = try RequestURL("rtsp://user:secret@h:8554/a;b,c%22%C3%A9/?q")
    #expect(url.base(authority: "x", scheme: .rtsp) == "rtsp://h:8554/a%3Bb%2Cc%22%C3%A9/")
    #expect(try RequestTarget("*") == .server)
  }

  @Test(arguments: [
    ("", RequestURLError.scheme("")), ("camera", .scheme("camera")), ("**", .scheme("**")),
    ("http://h/camera", .scheme("http://h/camera")), ("rtspu://h/c", .scheme("rtspu://h/c")),
    ("rtsp:/camera", .scheme("rtsp:/camera")), ("//h/camera", .scheme("//h/camera")),
    ("rtsp:///camera", .host("rtsp:///camera")), ("rtsp://@/c", .host("rtsp://@/c")),
    ("rtsp://:554/c", .host("rtsp://:554/c")), ("rtsp://h h/c", .host("rtsp://h h/c")),
    ("rtsp://h<h/c", .host("rtsp://h<h/c")), ("rtsp://[::1/c", .host("rtsp://[::1/c")),
    ("rtsp://[]/c", .host("rtsp://[]/c")), ("rtsp://[::1]x/c", .port("x")),
    ("rtsp://h:0/c", .port(":0")), ("rtsp://h:65536/c", .port(":65536")), ("rtsp://h:+1/c", .port(":+1")),
    ("rtsp://h:1:2/c", .port(":1:2")), ("rtsp://h:123456/c", .port(":123456")),
    ("/a%", .path("/a%")), ("/a%2", .path("/a%2")), ("/a%zz", .path("/a%zz")), ("/a%+1", .path("/a%+1")),
    ("/a%00", .path("/a%00")), ("/a%0A", .path("/a%0A")), ("/a%2fb", .path("/a%2fb")), ("/a/../b", .path("/a/../b")),
    ("/%2e%2e/b", .path("/%2e%2e/b")), ("/a/.", .path("/a/.")), ("/%ff", .path("/%ff")), ("/a#b", .path("/a#b")),
    ("/a?b#c", .path("/a?b#c")), ("/a\"", .path("/a\"")),
  ])
  func `a text that is no URL is refused`(text: String, error: RequestURLError) {
    #expect(throws: error) { try RequestTarget(text) }
    #expect(error.description.count < 200)
  }
}
