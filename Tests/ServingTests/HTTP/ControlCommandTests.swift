import Foundation
import TestSupport
import Testing

/// `nightjar ctl` against a server.
@Suite struct ControlCommandTests {
  @Test func `commands reach the stream and say what was done`() throws {
    let served = try ServedControl()
    for (arguments, output) in [
      (["rotate", "90"], "orientation: 90 degrees\n"), (["orientation", "90"], "orientation: 90 degrees\n"),
      // As the option of nightjar stream is called, and as it was called here before.
      (["rotate", "0", "--mirror"], "orientation: 0 degrees, mirrored\n"),
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
        "listening", "rotate 90", "rotate 90", "rotate 0 mirrored", "rotate 0 mirrored", "key frame", "bitrate 2500000",
        "stopped",
      ])
  }

  @Test func `the socket may be named before the command or behind it, and the last one counts`() throws {
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

  @Test func `the status is text for a person and JSON for a program`() throws {
    let served = try ServedControl()
    let text = try served.ctl("status").outputText
    for words in [
      "1:02:03", "test, 1280x720 at 29.97 fps", "90 degrees, mirrored, sent as 720x1280; encoders exchanged 3 times",
      "x264, 2.50 Mbit/s; failed over once", "100 captured, 98 encoded (4 key frames), 97 sent, 3 dropped",
      "dropped 2: the encoder is too slow", "rtp://127.0.0.1:5004: 700 packets, 840000 bytes, 5 packets lost",
      "sound        C920\n", "level -42.5 dBFS, peak -20.0 dBFS, gain 3.0 dB, clock -12.5 ppm",
      "7 samples clipped: choose less gain", "samples lost once, 0.5 s of silence in their place",
    ] {
      #expect(text.contains(words), "\(words) is not in: \(text)")
    }
    let json = try served.ctl("status", "--json")
    let curl = try served.curl([], "/v1/status")
    #expect(json.outputText == curl.body)
    #expect(curl.status == 200)
  }

  @Test func `wrong values are refused before anything is asked, what the stream refuses has its exit code`() throws {
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

  /// A failure with `--json`: nothing on standard output, and one object on standard error.
  private func expectFailure(_ result: Subprocess.Result, _ status: Int32, _ kind: String, _ words: String) throws {
    #expect(result.status == status && result.outputText.isEmpty, "\(result.outputText)\(result.error)")
    let object = try #require(
      try JSONSerialization.jsonObject(with: Data(result.error.utf8)) as? [String: Any], "\(result.error)")
    #expect(object["failure"] as? String == kind, "\(object)")
    #expect((object["error"] as? String)?.contains(words) == true, "\(object)")
    #expect(result.error.split(separator: "\n").count == 1)
  }

  @Test func `with JSON a failure is JSON too, whoever has found it`() throws {
    let served = try ServedControl(cameras: ["nursery", "garden"])
    // The command line, the server, the target, the way there.
    try expectFailure(served.ctl("rotate", "45", "--json"), 64, "usage", "choose 0, 90, 180 or 270")
    try expectFailure(served.ctl("--json", "turn", "90"), 64, "usage", "turn")
    try expectFailure(served.ctl("rotate", "90", "--json"), 64, "usage", "there are several cameras")
    try expectFailure(
      served.ctl("rotate", "270", "--camera", "garden", "--json"), 69, "unavailable", "the camera is gone: plug it in")
    try expectFailure(
      served.ctl("controls", "get", "none", "--camera", "garden", "--json"), 66, "no_input", "no control 'none'")
    let directory = try TemporaryDirectory()
    func run(_ arguments: String...) throws -> Subprocess.Result {
      try Subprocess.run([nightjarPath] + arguments, in: directory)
    }
    let socket = directory.path("none")
    try expectFailure(
      run("ctl", "status", "--json", "--socket", socket), 69, "unavailable", "is nightjar stream running?")
    try expectFailure(
      run("ctl", "status", "--watch", "--json", "--socket", socket), 69, "unavailable", "is nightjar stream running?")
    try expectFailure(run("events", "--json", "--socket", socket), 69, "unavailable", "is nightjar stream running?")
    try expectFailure(run("events", "--json", "--foo"), 64, "usage", "--foo")
    try expectFailure(run("discover", "--json", "--seconds", "0"), 64, "usage", "0.5 to 60 seconds")
    try expectFailure(run("devices", "--json", "camera"), 64, "usage", "add --controls")
    // Help is an answer, and what belongs to another command is none of this one's options.
    let help = try run("ctl", "status", "--json", "--help")
    #expect(help.status == 0 && help.outputText.contains("USAGE:"), "\(help.outputText)")
    #expect(try !run("stream", "--stats-json").error.hasPrefix("{"))
  }

  @Test func `what is not locked is not unlocked, and a lock is`() throws {
    let served = try ServedControl(cameras: ["nursery", "locked"])
    #expect(
      try served.ctl("controls", "unlock", "--camera", "nursery").outputText
        == "the sensor was not locked: nothing has changed\n")
    #expect(
      try served.ctl("controls", "unlock", "--camera", "locked").outputText.hasPrefix("the sensor is unlocked: "))
  }

  @Test func `bash completes rotations, cameras and users`() throws {
    let served = try ServedControl(cameras: ["nursery", "garden"])
    let (directory, users) = (served.directory, served.directory.path("users"))
    for user in ["anna", "bert"] {
      let added = try Subprocess.run(
        ["sh", "-c", "echo long enough | \"$0\" user add \"$1\" --users \"$2\"", nightjarPath, user, users],
        in: directory)
      #expect(added.status == 0, "\(added.error)")
    }
    func completions(_ typed: String) throws -> Set<String> {
      let script = #"""
        PATH=$(dirname "$0"):$PATH
        source <(nightjar --generate-completion-script bash)
        function=$(complete -p nightjar | sed 's/.* -F \([^ ]*\) .*/\1/')
        COMP_LINE="nightjar $1" COMP_POINT=$((9 + ${#1})) COMP_TYPE=9
        read -ra COMP_WORDS <<<"$COMP_LINE"
        [[ $1 == *' ' ]] && COMP_WORDS+=('')
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        "$function" nightjar "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
        printf '%s\n' "${COMPREPLY[@]}"
        """#
      let result = try Subprocess.run(["bash", "--norc", "-c", script, nightjarPath, typed], in: directory)
      return Set(result.outputText.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) })
    }
    #expect(try completions("ctl rotate 1") == ["180"])
    #expect(try completions("ctl orientation 1") == ["180"], "an alias")
    #expect(try completions("ctl rotate ").isSuperset(of: ["0", "90", "180", "270"]))
    // The cameras are asked for with the patience of a person who types: a second.
    #expect(try eventually { try completions("ctl --socket \(served.socket) --camera ") == ["nursery", "garden"] })
    #expect(try eventually { try completions("ctl status --socket \(served.socket) --camera g") == ["garden"] })
    #expect(try completions("user remove --users \(users) ").isSuperset(of: ["anna", "bert"]))
    #expect(try completions("user remove --users \(users) b") == ["bert"])
  }

  @Test func `without a stream it says what to start`() throws {
    let directory = try TemporaryDirectory()
    let result = try Subprocess.run(
      [nightjarPath, "ctl", "status", "--socket", directory.path("none")], in: directory)
    #expect(result.status == 69)
    let none = directory.path("none")
    #expect(
      result.log.failures == [
        "there is no control socket \(none): is nightjar stream running? (if with --control PATH: --socket PATH)"
      ])
    #expect(result.outputText.isEmpty)
    let long = try Subprocess.run(
      [nightjarPath, "ctl", "status", "--socket", "/" + String(repeating: "x", count: 200)], in: directory)
    #expect(long.status == 64)
  }

  @Test(arguments: [
    ("b''", "closed before the end of its answer"), ("b'SSH-2.0-OpenSSH_9\\r\\n'", "is not nightjar"),
    ("b'HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nhello'", "is not nightjar"),
    ("b'HTTP/1.1 200 OK\\r\\nContent-Length: 50\\r\\n\\r\\nhello'", "closed before the end of its answer"),
    ("b'HTTP/1.1 500 No\\r\\nContent-Length: 0\\r\\n\\r\\n'", "is not nightjar"),
    ("b'HTTP/1.1 200 OK\\r\\nContent-Length: 9000000\\r\\n\\r\\n' + b'x' * 9000000", "is not nightjar"),
  ])
  func `a server that is none, or breaks off, is one line and exit code 74`(_ answer: String, _ reason: String) throws {
    let directory = try TemporaryDirectory()
    let socket = directory.path("s")
    let server = try Subprocess(
      [
        "python3", "-c",
        """
        import os, socket, sys
        s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1] + ".new"); s.listen()
        os.rename(sys.argv[1] + ".new", sys.argv[1])
        c, _ = s.accept(); c.recv(4096)
        try: c.sendall(\(answer))
        except OSError: pass
        """, socket,
      ], in: directory)
    defer { server.send(SIGKILL) }
    var file = stat()
    #expect(eventually { lstat(socket, &file) == 0 })
    let result = try Subprocess.run([nightjarPath, "ctl", "status", "--socket", socket], in: directory)
    #expect(result.status == 74, "\(result.error)")
    #expect(result.error.contains(reason), "\(result.error)")
    #expect(result.error.split(separator: "\n").count == 1)
  }
}
