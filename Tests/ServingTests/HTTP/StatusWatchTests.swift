import Foundation
import TestSupport
import Testing

/// `nightjar ctl status --watch`, in a pipe and on a terminal.
@Suite struct StatusWatchTests {
  @Test func `in a pipe it is written each second, outlives the server, and ends by Ctrl-C`() throws {
    let served = try ServedControl(cameras: ["nursery", "garden"])
    // What runs the tests in the background may have it ignored.
    let watch = try Subprocess(
      ["--default-signal=INT", nightjarPath, "ctl", "status", "--watch", "--socket", served.socket],
      in: served.directory)
    defer { watch.send(SIGKILL) }
    let head = "nightjar  1:02:03  2 cameras  2 viewers  reloaded 2 times\n"
    // There is a rate once two answers in a row have come within two seconds each.
    let isShown = eventually {
      let text = watch.outputSoFar
      return text.components(separatedBy: head).count > 3 && text.contains("0.0 fps")
    }
    #expect(isShown, "\(watch.outputSoFar)")
    let text = watch.outputSoFar
    #expect(!text.contains("\u{1b}"))
    #expect(text.split(separator: "\n").allSatisfy { $0.count <= 80 })
    // The first view has no rates, the second one has: nothing moves here.
    for words in [
      "nursery             streaming    720x1280   - fps         dropped 3",
      "garden              streaming    720x1280   0.0 fps       dropped 3", "load 25.0 %", "2.50 Mbit/s",
      "rtp://127.0.0.1:5004",
    ] { #expect(text.contains(words), "\(words) is not in: \(text)") }
    #expect(try served.finish().last == "stopped")
    let missing = "no answer: there is no control socket"
    #expect(eventually { watch.outputSoFar.split(separator: "\n").contains { $0.hasPrefix(missing) } })
    #expect(watch.isRunning)
    let views = watch.outputSoFar.components(separatedBy: head).count
    let again = try ServedControl(cameras: ["nursery", "garden"], in: served.directory)
    #expect(eventually { watch.outputSoFar.components(separatedBy: head).count > views })
    watch.send(SIGINT)
    #expect(try watch.wait().status == 0)
    #expect(try again.finish().last == "stopped")
  }

  @Test func `destinations are told apart from viewers, and who gets the sound is shown`() throws {
    let served = try ServedControl(cameras: ["shared"])
    func ask(_ command: String) throws -> [Substring] {
      let result = try Subprocess.run(
        ["sh", "-c", "\"$0\" ctl \(command) --socket \"$1\" | head -n 40", nightjarPath, served.socket],
        in: served.directory, limit: 60)
      return result.outputText.split(separator: "\n")
    }
    let view = try ask("status --watch")
    #expect(view.first == "nightjar  1:02:03  1 camera  3 viewers  1 destination  reloaded 2 times", "\(view)")
    let ends = [("rtp:", "+ sound"), ("rtsp tcp 192.0.2.1", "+ sound"), ("rtsp tcp 192.0.2.2", " sound")]
    for (begin, end) in ends {
      #expect(view.contains { $0.hasPrefix("  \(begin)") && $0.hasSuffix(end) && $0.count <= 80 }, "\(view)")
    }
    #expect(!view.contains { $0.hasPrefix("  rtsp tcp 192.0.2.3") && $0.contains("sound") }, "\(view)")
    let status = try ask("status")
    for begin in [
      "destination  rtp://127.0.0.1:5004 (picture and sound): 7 packets",
      "viewer       rtsp tcp 192.0.2.1:50000 (picture and sound): 7 packets",
      "viewer       rtsp tcp 192.0.2.2:50000 (sound): 7 packets", "viewer       rtsp tcp 192.0.2.3:50000: 7 packets",
    ] { #expect(status.contains { $0.hasPrefix(begin) }, "\(begin) \(status)") }
    #expect(try ask("viewers").contains { $0.hasPrefix("rtsp tcp 192.0.2.2:50000 (sound): 7 packets") })
  }

  @Test func `the level of sound is a bar of plain characters, from -60 to 0 dBFS`() throws {
    let served = try ServedControl(cameras: ["quiet", "loud", "deaf", "silent"])
    let result = try Subprocess.run(
      ["sh", "-c", "\"$0\" ctl status --watch --socket \"$1\" | head -n 20", nightjarPath, served.socket],
      in: served.directory, limit: 60)
    let view = try #require(result.outputText.components(separatedBy: "\n\nnightjar").first)
    let bars = view.split(separator: "\n").filter { $0.hasPrefix("  sound") }
    #expect(
      bars == [
        "  sound [#########..........|..........] -42.5 dBFS, peak -20.0",
        "  sound [###########################..|] -6.0 dBFS, peak 0.0, muted",
        "  sound [\(String(repeating: ".", count: 30))] no microphone",
      ], "\(view)")
  }

  @Test func `on a terminal it is drawn over, and the cursor is there again at the end`() throws {
    let served = try ServedControl()
    // It does not lead a session: at a leader's end the kernel throws away what the terminal has not been read of.
    let script = """
      import os, pty, select, signal, subprocess, sys, time
      terminal, its = pty.openpty()
      signal.signal(signal.SIGINT, signal.SIG_DFL)
      child = subprocess.Popen(sys.argv[1:], stdin=its, stdout=its, stderr=its)
      os.close(its)
      output, end = b"", time.time() + 60
      while time.time() < end and output.count(b"fps") < 3:
          if select.select([terminal], [], [], 0.2)[0]: output += os.read(terminal, 65536)
      child.send_signal(signal.SIGINT)
      while time.time() < end:
          try: part = os.read(terminal, 65536)
          except OSError: break
          if not part: break
          output += part
      print(child.wait())
      print(output.startswith(b"\\x1b[?25l"), output.endswith(b"\\x1b[?25h"))
      print(output.count(b"\\x1b[6A") >= 2, output.count(b"\\x1b[?25h"))
      """
    let result = try Subprocess.run(
      ["python3", "-c", script, nightjarPath, "ctl", "status", "--watch", "--socket", served.socket],
      in: served.directory)
    #expect(result.outputText == "0\nTrue True\nTrue 1\n", "\(result.error)")
  }

  @Test func `with JSON it is a line each second, and a reader that has enough ends it`() throws {
    let served = try ServedControl()
    let result = try Subprocess.run(
      ["sh", "-c", "\"$0\" ctl status --watch --json --socket \"$1\" | head -n 2", nightjarPath, served.socket],
      in: served.directory, limit: 60)
    #expect(result.status == 0)
    let lines = result.outputText.split(separator: "\n")
    #expect(lines.count == 2)
    for line in lines {
      let box = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      #expect((box?["cameras"] as? [Any])?.count == 1)
    }
  }

  @Test func `what never answered is a failure at once`() throws {
    let directory = try TemporaryDirectory()
    let result = try Subprocess.run(
      [nightjarPath, "ctl", "status", "--watch", "--socket", directory.path("none")], in: directory, limit: 60)
    #expect(result.status == 69)
    let served = try ServedControl()
    #expect(try served.ctl("status", "--watch", "--camera", "attic").status == 66)
  }
}
