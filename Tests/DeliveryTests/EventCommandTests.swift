import Alerts
import Delivery
import Foundation
import Platform
import TestSupport
import Testing

/// Commands that run on an event.
@Suite struct EventCommandTests {
  private static func alert(_ text: String = "noise") -> Alert {
    Alert(
      id: 7, kind: .noise, camera: "nursery", state: .began, time: "2026-11-21T02:03:06Z",
      since: "2026-11-21T02:03:01Z", text: text)
  }

  private static func run(
    _ words: [String], _ alert: Alert = alert(), patience: Duration = EventCommand.patience
  ) throws -> DeliveryOutcome {
    EventCommand(words, patience: patience).deliver(alert, stop: try Interrupt())
  }

  @Test func `a program gets the event and its arguments as they are, and nothing of a shell happens`() throws {
    let directory = try TemporaryDirectory()
    let script = try directory.write(
      """
      #!/bin/sh
      cat > "$1"
      files=$(ls /proc/self/fd | wc -l)
      printf '%s\\n' "$2" "$EVENT_KIND" "$EVENT_TEXT" "$EVENT_CAMERA" "$(pwd)" "$files" > "$1.words"
      """.utf8, as: "script")
    chmod(script, 0o700)
    let alert = Self.alert("a $(touch \(directory.path("broken"))) 'b'")
    #expect(
      try Self.run([script, directory.path("out"), "; touch \(directory.path("broken")) *"], alert) == .delivered)
    let json = try #require(FileManager.default.contents(atPath: directory.path("out")))
    #expect(try JSONDecoder().decode(Alert.self, from: json) == alert)
    let words = try String(contentsOfFile: directory.path("out.words"), encoding: .utf8).split(separator: "\n")
    let argument = "; touch \(directory.path("broken")) *"
    #expect(words.prefix(5) == [Substring(argument), "noise", Substring(alert.text), "nursery", "/"])
    // Input, output, errors, and the folder that ls reads.
    #expect(words.last.map { $0.trimmingCharacters(in: .whitespaces) } == "4")
    #expect(!FileManager.default.fileExists(atPath: directory.path("broken")))
  }

  @Test func `a program that fails, is missing or is killed by a signal is told, with its last line`() throws {
    #expect(try Self.run(["/bin/sh", "-c", "echo one; echo two >&2; exit 3"]) == .refused("it has ended with 3: two"))
    #expect(try Self.run(["/bin/sh", "-c", "kill -9 $$"]) == .refused("signal 9 has ended it"))
    #expect(try Self.run(["/no/such/program"]) == .refused("it does not start: No such file or directory"))
    #expect(try Self.run(["/bin/true"]) == .delivered)
  }

  @Test func `a program that does not end is killed with all that it has started`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("child")
    let outcome = try Self.run(
      ["/bin/sh", "-c", "sleep 1000 & echo $! > \(path); echo begun; wait"], patience: .seconds(5))
    #expect(outcome == .refused("it has not ended after 5 s and was killed: begun"))
    let child = try #require(Int32(String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .newlines)))
    #expect(eventually { Self.hasEnded(child) })
    // One that goes on behind the back of its program holds up nothing.
    let start = ContinuousClock.now
    #expect(try Self.run(["/bin/sh", "-c", "sleep 1000 & echo $! > \(path)"]) == .delivered)
    #expect(ContinuousClock.now - start < .seconds(20))
    let other = try #require(Int32(String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .newlines)))
    #expect(eventually { Self.hasEnded(other) })
  }

  @Test func `a writer that a program leaves in a session of its own does not hold the next event up`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("child")
    let command = "setsid sh -c 'echo $$ > \(path); exec yes' & while [ ! -s \(path) ]; do sleep 0.01; done"
    #expect(try Self.run(["/bin/sh", "-c", command]) == .delivered)
    let child = try #require(Int32(String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .newlines)))
    // Its output has no reader any more.
    #expect(eventually { Self.hasEnded(child) })
  }

  /// A process that nobody has waited for yet has ended too.
  private static func hasEnded(_ process: Int32) -> Bool {
    guard let status = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else { return true }
    // The name of the program may have any characters; the state is the field behind it.
    return status.split(separator: ")").last?.split(separator: " ").first == "Z"
  }

  @Test func `output without an end costs no memory and ends in time`() throws {
    let outcome = try Self.run(["/usr/bin/env", "yes", String(repeating: "x", count: 1000)], patience: .seconds(1))
    guard case .refused(let reason) = outcome else {
      Issue.record("\(outcome)")
      return
    }
    #expect(reason.hasPrefix("it has not ended after 1 s") && reason.utf8.count < 300, "\(reason)")
  }

  @Test func `a program that is asked to end together with nightjar is no failure`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("child")
    let (history, reports, counts) = (AlertHistory(), EventQueue<DeliveryReport>(), DeliveryCounts())
    let words = ["/bin/sh", "-c", "echo $$ > \(path); exec sleep 1000"]
    let sender = try EventSender(
      EventCommand(words, grace: .seconds(30)), history, reports, counts: counts)
    history.record(
      [.begin(AlertCondition(.noise, camera: "a", since: .now(), text: "noise"), suppressed: 0)], isQuiet: false)
    try #require(eventually { (try? String(contentsOfFile: path, encoding: .utf8))?.hasSuffix("\n") == true })
    let child = try #require(Int32(String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .newlines)))
    kill(child, SIGTERM)
    // systemd sends both signals together, and this thread may be late.
    usleep(50_000)
    sender.stop()
    try #require(eventually { sender.hasEnded })
    #expect(reports.take().isEmpty && counts[.command].failed == 0)
    // By itself such an end is told, as any other.
    #expect(try Self.run(["/bin/sh", "-c", "kill $$"]) == .refused("signal 15 has ended it"))
  }

  @Test func `one program runs at a time, and a stop ends it`() throws {
    let directory = try TemporaryDirectory()
    let log = directory.path("log")
    let history = AlertHistory()
    let reports = EventQueue<DeliveryReport>()
    let words = ["/bin/sh", "-c", "echo begin >> \(log); sleep 0.05; echo end >> \(log)"]
    let sender = try EventSender(EventCommand(words), history, reports)
    for _ in 0..<5 {
      let condition = AlertCondition(.noise, camera: "a", since: .now(), text: "noise")
      history.record([.begin(condition, suppressed: 0)], isQuiet: false)
    }
    #expect(eventually { sender.position == 5 })
    let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
    #expect(lines == (0..<5).flatMap { _ in ["begin", "end"] as [Substring] })
    sender.stop()
    #expect(reports.take().isEmpty)
    let child = directory.path("child")
    let held = try EventSender(EventCommand(["/bin/sh", "-c", "echo $$ > \(child); sleep 1000"]), history, reports)
    history.record([.end(AlertSubject(kind: .noise, camera: "a"), since: .now())], isQuiet: false)
    try #require(eventually { (try? String(contentsOfFile: child, encoding: .utf8))?.hasSuffix("\n") == true })
    let process = try #require(Int32(String(contentsOfFile: child, encoding: .utf8).trimmingCharacters(in: .newlines)))
    held.stop()
    #expect(eventually { Self.hasEnded(process) })
  }
}
