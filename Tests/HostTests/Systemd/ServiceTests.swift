import CLinux
import Foundation
import TestSupport
import Testing

/// A process of ours as systemd would start it, with the other ends of its sockets here. Python plays systemd: it knows
/// sd_notify(3) and sd_listen_fds(3) by their documentation, not by our code.
@Suite struct ServiceTests {
  private static var tool: String { builtPath("ServiceTool") }

  private static func run(_ script: String, in directory: TemporaryDirectory) throws -> (status: Int32, output: String)
  {
    let prologue = """
      import os, socket, subprocess, sys
      tool, folder = sys.argv[1:]
      def tell(*arguments, **settings):
          settings.setdefault("env", {})
          result = subprocess.run([tool, *arguments], stdout=subprocess.PIPE, timeout=60, **settings)
          print(result.stdout.decode().strip(), result.returncode)
      def given(sockets, names, *arguments, identifier="$$"):
          # As exec(3) does: the descriptors from 3 on, and LISTEN_PID of the very process.
          def arrange():
              for index, one in enumerate(sockets):
                  os.dup2(one.fileno(), 60 + index)
              for index in range(len(sockets)):
                  os.dup2(60 + index, 3 + index)
          shell = f"LISTEN_PID={identifier} LISTEN_FDS={len(sockets)} LISTEN_FDNAMES={names} exec {tool} sockets"
          result = subprocess.run(["sh", "-c", shell], stdout=subprocess.PIPE, timeout=60, preexec_fn=arrange, close_fds=False)
          print(result.stdout.decode().strip(), result.returncode)

      """
    let result = try Subprocess.run(
      ["python3", "-c", prologue + script, tool, directory.url.path], in: directory, limit: 120)
    #expect(result.status == 0, "\(result.error)")
    return (result.status, result.outputText)
  }

  @Test func `systemd is told by datagrams, a status is one line, and the watchdog's period is read`() throws {
    let directory = try TemporaryDirectory()
    let (_, output) = try Self.run(
      """
      path = folder + "/n"
      listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
      listener.bind(path)
      listener.settimeout(30)
      tell("notify", env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "2500000"})
      for _ in range(4): print(repr(listener.recv(1000).decode()))
      tell("notify", env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "2500000", "WATCHDOG_PID": "1"})
      tell("notify")
      """, in: directory)
    #expect(
      output.split(separator: "\n") == [
        "watchdog 2500 ms 0", "'READY=1'", "'STATUS=two lines'", "'WATCHDOG=1'", "'STOPPING=1'", "no watchdog 0",
        "nobody listens 0",
      ])
  }

  @Test func `the journal is where JOURNAL_STREAM says that standard error leads, and nowhere else`() throws {
    let directory = try TemporaryDirectory()
    let (_, output) = try Self.run(
      """
      ours, theirs = socket.socketpair()
      status = os.fstat(theirs.fileno())
      same = f"{status.st_dev}:{status.st_ino}"
      tell("journal", stderr=theirs, env={"JOURNAL_STREAM": same})
      tell("journal", stderr=subprocess.DEVNULL, env={"JOURNAL_STREAM": same})
      tell("journal", stderr=theirs)
      tell("journal", stderr=theirs, env={"JOURNAL_STREAM": "nonsense"})
      """, in: directory)
    #expect(
      output.split(separator: "\n") == ["standard error is the journal 0"]
        + Array(repeating: "standard error is not the journal 0", count: 3))
  }

  @Test func `listening sockets are taken by name, and are gone for whoever looks next`() throws {
    let directory = try TemporaryDirectory()
    let second = hasIPv6 ? "::1" : "127.0.0.2"
    let (_, output) = try Self.run(
      """
      four = socket.create_server(("127.0.0.1", 0))
      six = socket.socket(socket.AF_INET6 if ":" in "\(second)" else socket.AF_INET)
      if six.family == socket.AF_INET6: six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
      six.bind(("\(second)", 0)); six.listen()
      print(four.getsockname()[1], six.getsockname()[1])
      given([four, six], "rtsp:rtsps")
      given([four], "rtsp", identifier="1")
      """, in: directory)
    let lines = output.split(separator: "\n")
    let ports = try #require(lines.first).split(separator: " ")
    #expect(
      lines.dropFirst() == [
        "rtsp 3 127.0.0.1 \(ports[0])", "rtsps 4 \(second) \(ports[1])", "taken 0",
        // Meant for another process.
        "taken 0",
      ])
  }

  @Test func `the program serves RTSP where systemd listens, and nowhere else beside it`() throws {
    let directory = try TemporaryDirectory()
    let (_, output) = try Self.run(
      """
      nightjar = os.path.join(os.path.dirname(tool), "nightjar")
      listener = socket.create_server(("127.0.0.1", 0))
      def start(options, name="rtsp"):
          def arrange():
              os.dup2(listener.fileno(), 60)
              os.dup2(60, 3)
          shell = f"LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES={name} HOME={folder} exec {nightjar} stream --source test "
          return subprocess.Popen(["sh", "-c", shell + "--size 320x240 --control none " + options], preexec_fn=arrange,
              close_fds=False, stderr=subprocess.PIPE)
      program = start("--duration 60s")
      with socket.create_connection(listener.getsockname(), 60) as client:
          client.settimeout(60)
          client.sendall(b"OPTIONS * RTSP/1.0\\r\\nCSeq: 7\\r\\n\\r\\n")
          print(client.recv(1000).decode().splitlines()[0])
      said = b""
      while b"rtsp://" not in said and (line := program.stderr.readline()):
          said += line
      program.terminate()
      print(program.wait(60), "rtsp://" in said.decode())
      program = start("--rtsp 127.0.0.1:9554")
      print(program.wait(60), program.stderr.read().decode().strip())
      """, in: directory)
    let lines = output.split(separator: "\n")
    try #require(lines.count == 3, "\(output)")
    #expect(lines[0] == "RTSP/1.0 200 OK")
    #expect(lines[1] == "0 True")
    let refusal = "--rtsp 127.0.0.1:9554: systemd has opened the socket already, at 127.0.0.1 port "
    #expect(lines[2].hasPrefix("64 nightjar: \(refusal)"), "\(lines[2])")
  }

  @Test func `an unsuitable socket is refused in one line`() throws {
    let directory = try TemporaryDirectory()
    let (_, output) = try Self.run(
      """
      given([socket.create_server(("127.0.0.1", 0))], "http")
      given([socket.socket(socket.AF_INET, socket.SOCK_DGRAM)], "rtsp")
      unix = socket.socket(socket.AF_UNIX); unix.bind(folder + "/u"); unix.listen()
      given([unix], "rtsp")
      if \(hasIPv6 ? "True" : "False"):
          given([socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)], "rtsp")
      """, in: directory)
    let lines = output.split(separator: "\n")
    var expected: [Substring] = [
      "the socket unit's FileDescriptorName=http is unknown: choose rtsp or rtsps 64",
      "the socket rtsp from systemd does not listen: its unit needs ListenStream= 64",
      "the socket rtsp from systemd is not a TCP socket: write ListenStream=ADDRESS:PORT 64",
    ]
    if hasIPv6 {
      expected.append(
        "the socket rtsp from systemd serves IPv4 and IPv6 at once: its unit needs BindIPv6Only=ipv6-only 64")
    }
    #expect(lines == expected)
  }
}
