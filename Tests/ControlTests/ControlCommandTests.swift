import Foundation
import TestSupport
import Testing

/// `nightjar ctl` against a server.
@Suite struct ControlCommandTests {
  @Test func `Commands reach the stream and say what was done`() throws {
    let served = try ServedControl()
    for (arguments, output) in [
      (["rotate", "90"], "orientation: 90 degrees\n"), (["orientation", "90"], "orientation: 90 degrees\n"),
      (["rotate", "0", "--mirrored"], "orientation: 0 degrees, mirrored\n"),
      (["keyframe"], "key frame requested\n"), (["bitrate", "2.5M"], "bitrate: 2.50 Mbit/s\n"),
    ] {
      let result = try Subprocess.run(
        [nightjarPath, "ctl"] + arguments + ["--socket", served.socket], in: served.directory)
      #expect(result.outputText == output)
      #expect(result.error == "")
      #expect(result.status == 0)
    }
    #expect(
      try served.finish() == [
        "listening", "rotate 90", "rotate 90", "rotate 0 mirrored", "key frame", "bitrate 2500000", "stopped",
      ])
  }

  @Test func `The socket may be named before the command or behind it, and the last one counts`() throws {
    let served = try ServedControl()
    let (socket, other) = (["--socket", served.socket], ["--socket", served.directory.path("none")])
    for arguments in [
      socket + ["rotate", "90"], ["rotate"] + socket + ["90"], ["rotate", "90"] + socket,
      ["--socket=\(served.socket)", "rotate", "90"], other + ["rotate", "90"] + socket,
    ] {
      let result = try Subprocess.run([nightjarPath, "ctl"] + arguments, in: served.directory)
      #expect(result.status == 0, "\(arguments): \(result.error)")
    }
    let lost = try Subprocess.run([nightjarPath, "ctl"] + socket + ["rotate", "90"] + other, in: served.directory)
    #expect(lost.status == 69)
    for command in [["status"], ["rotate"], []] {
      let help = try Subprocess.run([nightjarPath, "ctl"] + command + ["--help"], in: served.directory)
      #expect(help.outputText.contains("--socket <path>"), "\(command): \(help.outputText)")
    }
    let turns = Array(repeating: "rotate 90", count: 5)
    #expect(try served.finish() == ["listening"] + turns + ["stopped"])
  }

  @Test func `The status is text for a person and JSON for a program`() throws {
    let served = try ServedControl()
    let text = try served.ctl("status").outputText
    for words in [
      "1:02:03", "test, 1280x720 at 29.97 fps", "90 degrees, mirrored, sent as 720x1280; encoders exchanged 3 times",
      "x264, 2.50 Mbit/s; failed over once", "100 captured, 98 encoded (4 key frames), 97 sent, 3 dropped",
      "dropped 2: the encoder is too slow", "rtp://127.0.0.1:5004: 700 packets, 840000 bytes, 5 packets lost",
    ] {
      #expect(text.contains(words), "\(words) is not in: \(text)")
    }
    let json = try served.ctl("status", "--json")
    let curl = try served.curl([], "/v1/status")
    #expect(json.outputText == curl.body)
    #expect(curl.status == 200)
  }

  @Test func `Wrong values are refused before anything is asked, what the stream refuses has its exit code`() throws {
    let served = try ServedControl()
    for arguments in [
      ["rotate", "45"], ["rotate", "360"], ["rotate", "-90"], ["rotate", "x"], ["rotate"], ["bitrate", "auto"],
      ["bitrate", "1"], ["bitrate", "500M"], ["bitrate", "-1"], ["turn", "90"],
      ["controls", "set", "brightness=10", "brightness=20"], ["controls", "reset", "brightness", "brightness"],
    ] {
      let result = try Subprocess.run(
        [nightjarPath, "ctl"] + arguments + ["--socket", served.socket], in: served.directory)
      #expect(result.status == 64, "\(arguments)")
    }
    let unable = try served.ctl("rotate", "270")
    #expect(unable.status == 69)
    #expect(unable.error == "nightjar: the camera is gone: plug it in\n")
    let broken = try served.ctl("bitrate", "1M")
    #expect(broken.status == 70)
    #expect(try served.finish() == ["listening", "stopped"])
  }

  @Test func `Without a stream it says what to start`() throws {
    let directory = try TemporaryDirectory()
    let result = try Subprocess.run(
      [nightjarPath, "ctl", "status", "--socket", directory.path("none")], in: directory)
    #expect(result.status == 69)
    #expect(result.error.contains("is nightjar stream running?"))
    #expect(result.outputText.isEmpty)
    let long = try Subprocess.run(
      [nightjarPath, "ctl", "status", "--socket", "/" + String(repeating: "x", count: 200)], in: directory)
    #expect(long.status == 64)
  }

  @Test(arguments: [
    ("b''", "closed before its answer was whole"), ("b'SSH-2.0-OpenSSH_9\\r\\n'", "is no nightjar"),
    ("b'HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nhello'", "is no nightjar"),
    ("b'HTTP/1.1 200 OK\\r\\nContent-Length: 50\\r\\n\\r\\nhello'", "closed before its answer was whole"),
    ("b'HTTP/1.1 500 No\\r\\nContent-Length: 0\\r\\n\\r\\n'", "is no nightjar"),
    ("b'HTTP/1.1 200 OK\\r\\nContent-Length: 9000000\\r\\n\\r\\n' + b'x' * 9000000", "is no nightjar"),
  ])
  func `A server that is none, or breaks off, is one line and exit code 74`(_ answer: String, _ reason: String) throws {
    let directory = try TemporaryDirectory()
    let socket = directory.path("s")
    let server = try Subprocess(
      [
        "python3", "-c",
        """
        import socket, sys
        s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()
        c, _ = s.accept(); c.recv(4096)
        try: c.sendall(\(answer))
        except OSError: pass
        """, socket,
      ], in: directory)
    defer { server.send(SIGKILL) }
    var file = stat()
    #expect(eventually { lstat(socket, &file) == 0 })
    usleep(100_000)
    let result = try Subprocess.run([nightjarPath, "ctl", "status", "--socket", socket], in: directory)
    #expect(result.status == 74, "\(result.error)")
    #expect(result.error.contains(reason), "\(result.error)")
    #expect(result.error.split(separator: "\n").count == 1)
  }
}
