import Foundation
import TestSupport
import Testing

/// `nightjar user add` at a terminal, which is a pseudoterminal of Python's.
@Suite struct PasswordPromptTests {
  /// Standard error is a pipe that is full, so that the program stands still where it writes its prompt: a terminal that
  /// shows what is typed by then never stops to.
  private static let script = """
    import fcntl, os, pty, subprocess, sys, termios, time
    nightjar, users = sys.argv[1:]
    terminal, its = pty.openpty()
    read, write = os.pipe()
    flags = fcntl.fcntl(write, fcntl.F_GETFL)
    fcntl.fcntl(write, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    filled = 0
    try:
        while True: filled += os.write(write, b"x" * 4096)
    except BlockingIOError: pass
    fcntl.fcntl(write, fcntl.F_SETFL, flags)
    program = subprocess.Popen([nightjar, "user", "add", "anna", "--users", users], stdin=its, stdout=subprocess.PIPE, stderr=write)
    os.close(write)
    def shows(): return bool(termios.tcgetattr(its)[3] & termios.ECHO)
    deadline = time.monotonic() + 30
    while shows() and time.monotonic() < deadline: time.sleep(0.01)
    print("silent before the prompt:", not shows(), flush=True)
    said = b""
    def until(words, times):
        global said
        while said.count(words) < times: said += os.read(read, 65536)
    until(b"Password for anna", 1)
    os.write(terminal, b"long enough\\n")
    until(b"The same again", 1)
    os.write(terminal, b"long enough\\n")
    print("added:", b"added anna" in program.communicate()[0], "status", program.returncode)
    os.set_blocking(terminal, False)
    shown = b""
    try: shown = os.read(terminal, 65536)
    except BlockingIOError: pass
    print("shown:", shown, "echo afterwards:", shows())
    """

  @Test func `nothing that is typed is shown, from before the prompt on`() throws {
    let directory = try TemporaryDirectory()
    let result = try Subprocess.run(
      ["python3", "-c", Self.script, nightjarPath, directory.path("users")], in: directory)
    #expect(
      result.outputText == """
        silent before the prompt: True
        added: True status 0
        shown: b'' echo afterwards: True

        """, "\(result.error)")
  }

  /// All is typed at once when the first prompt is there. What is typed meanwhile and not read goes to no shell.
  private static let pasting = """
    import os, pty, subprocess, sys, termios
    nightjar, users, typed = sys.argv[1:]
    terminal, its = pty.openpty()
    program = subprocess.Popen(
        [nightjar, "user", "add", "anna", "--users", users], stdin=its, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = b""
    while b"Password for anna" not in said:
        part = os.read(program.stderr.fileno(), 65536)
        if not part: break
        said += part
    os.write(terminal, typed.encode())
    try: program.communicate(timeout=20)
    except subprocess.TimeoutExpired: program.kill()
    def waiting(end):
        os.set_blocking(end, False)
        try: return os.read(end, 65536)
        except BlockingIOError: return b""
    echo = bool(termios.tcgetattr(its)[3] & termios.ECHO)
    print("status", program.wait(), "shown:", waiting(terminal), "left:", waiting(its), "echo afterwards:", echo)
    """

  @Test(arguments: [
    ("long enough\nlong enough\n", 0), ("long enough\nlong after\n", 64), ("short\nshort\n", 64),
    ("long enough\n\u{3}", -2), ("long enough\n\u{4}", 64),
  ])
  func `lines that are pasted at once answer both prompts, and the terminal is restored`(
    typed: String, status: Int
  ) throws {
    let directory = try TemporaryDirectory()
    let result = try Subprocess.run(
      ["python3", "-c", Self.pasting, nightjarPath, directory.path("users"), typed], in: directory)
    #expect(
      result.outputText == "status \(status) shown: b'' left: b'' echo afterwards: True\n", "\(result.error)")
  }
}
