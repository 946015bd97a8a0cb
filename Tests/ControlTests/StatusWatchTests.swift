import Foundation
import TestSupport
import Testing

/// `nightjar ctl status --watch`, in a pipe and on a terminal.
@Suite struct StatusWatchTests {
  @Test func `In a pipe it is written each second, outlives the server, and ends by Ctrl-C`() throws {
    let served = try ServedControl(cameras: ["nursery", "garden"])
    // What runs the tests in the background may have it ignored.
    let watch = try Subprocess(
      ["--default-signal=INT", nightjarPath, "ctl", "status", "--watch", "--socket", served.socket],
      in: served.directory)
    defer { watch.send(SIGKILL) }
    let head = "nightjar  1:02:03  2 cameras  2 viewers  reloaded 2 times\n"
    #expect(eventually { watch.outputSoFar.components(separatedBy: head).count > 3 }, "\(watch.outputSoFar)")
    let text = watch.outputSoFar
    #expect(!text.contains("\u{1b}"))
    #expect(text.split(separator: "\n").allSatisfy { $0.count <= 80 })
    // The first view has no rates, the second one has: nothing moves here.
    for words in [
      "nursery             streaming    720x1280   - fps       dropped 3",
      "garden              streaming    720x1280   0.0 fps     dropped 3", "load 25.0 %", "2.50 Mbit/s",
      "rtp://127.0.0.1:5004",
    ] { #expect(text.contains(words), "\(words) is not in: \(text)") }
    #expect(try served.finish().last == "stopped")
    #expect(eventually { watch.outputSoFar.contains("no answer: there is no control socket") })
    #expect(watch.isRunning)
    let views = watch.outputSoFar.components(separatedBy: head).count
    let again = try ServedControl(cameras: ["nursery", "garden"], in: served.directory)
    #expect(eventually { watch.outputSoFar.components(separatedBy: head).count > views })
    watch.send(SIGINT)
    #expect(try watch.wait().status == 0)
    #expect(try again.finish().last == "stopped")
  }

  @Test func `On a terminal it is drawn over, and the cursor is there again at the end`() throws {
    let served = try ServedControl()
    let script = """
      import os, pty, select, signal, sys, time
      child, terminal = pty.fork()
      if child == 0:
          signal.signal(signal.SIGINT, signal.SIG_DFL)
          os.execv(sys.argv[1], sys.argv[1:])
      output, end = b"", time.time() + 60
      while time.time() < end and output.count(b"fps") < 3:
          if select.select([terminal], [], [], 0.2)[0]: output += os.read(terminal, 65536)
      os.write(terminal, b"\\x03")
      while time.time() < end:
          try: part = os.read(terminal, 65536)
          except OSError: break
          if not part: break
          output += part
      print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
      print(output.startswith(b"\\x1b[?25l"), output.rstrip(b"^C").endswith(b"\\x1b[?25h"))
      print(output.count(b"\\x1b[5A") >= 2, output.count(b"\\x1b[?25h"))
      """
    let result = try Subprocess.run(
      ["python3", "-c", script, nightjarPath, "ctl", "status", "--watch", "--socket", served.socket],
      in: served.directory)
    #expect(result.outputText == "0\nTrue True\nTrue 1\n", "\(result.error)")
  }

  @Test func `With JSON it is a line each second, and a reader that has enough ends it`() throws {
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

  @Test func `What never answered is a failure at once`() throws {
    let directory = try TemporaryDirectory()
    let result = try Subprocess.run(
      [nightjarPath, "ctl", "status", "--watch", "--socket", directory.path("none")], in: directory, limit: 60)
    #expect(result.status == 69)
    let served = try ServedControl()
    #expect(try served.ctl("status", "--watch", "--camera", "attic").status == 66)
  }
}
