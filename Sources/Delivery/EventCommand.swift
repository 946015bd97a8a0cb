package import Alerts
import CLinux
import Glibc
package import Platform

/// A command that runs for each event, one at a time: a program with its arguments, without a shell.
///
/// It gets the event's JSON on its standard input, and the most needed parts as environment variables. Of its output the
/// first 4 KiB are kept, for the log.
package struct EventCommand: EventOutlet {
  private let words: [String]
  private let (patience, grace): (Duration, Duration)

  /// The time that a command may take.
  package static let patience = Duration.seconds(30)
  /// The time within which the end of nightjar explains a signal to the command.
  package static let grace = Duration.seconds(1)
  /// The most bytes of its output that are kept, and the most of them that are told.
  private static let (outputLimit, toldLimit) = (4096, 200)
  /// The variables of our own environment that the command gets.
  private static let inherited = ["PATH", "HOME", "LANG", "TZ"]

  /// Creates a command.
  ///
  /// - Parameter words: the path of the program, and its arguments.
  package init(
    _ words: [String], patience: Duration = EventCommand.patience, grace: Duration = EventCommand.grace
  ) {
    (self.words, self.patience, self.grace) = (words, patience, grace)
  }

  package var kind: DeliveryCounts.Outlet { .command }
  package var name: String { "event-command \(words.first ?? "")" }
  package var destination: [String] { words }
  package var threadName: String { "nj-command" }

  package func deliver(_ alert: Alert, stop: borrowing Interrupt) -> DeliveryOutcome {
    guard let path = words.first, let json = alert.json else { return .refused("its JSON cannot be written") }
    do throws(SystemFailure) {
      var input = try Pipe(json + [0x0A])
      input.endWriting()
      var output = try Pipe()
      var process = pid_t()
      let result = Self.withCStrings(words) { arguments in
        Self.withCStrings(Self.environment(alert)) { environment in
          nightjar_spawn(path, arguments, environment, input.reading, output.writing, &process)
        }
      }
      output.endWriting()
      guard result == 0 else {
        let reason = "it does not start: \(SystemFailure.text(result))"
        return result == EAGAIN || result == ENOMEM ? .failed(reason) : .refused(reason)
      }
      return follow(process, output: output.reading, stop: stop.fileDescriptor)
    } catch {
      return .failed("\(error)")
    }
  }

  /// Waits for the end of the command, and ends what it leaves behind.
  private func follow(_ process: pid_t, output: CInt, stop: CInt) -> DeliveryOutcome {
    let deadline = Instant.now() + patience
    let ending = nightjar_process_descriptor(process)
    defer { if ending >= 0 { close(ending) } }
    var text: [UInt8] = []
    var isLate = false
    var polled = [ending, output, stop].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    while !isLate {
      let rest = (deadline - .now()).nanoseconds
      isLate = rest <= 0
      // A host without a descriptor left, or without pidfd_open, asks now and then.
      let pause = ending >= 0 ? rest : min(rest, 50_000_000)
      guard !isLate else { break }
      let count = nightjar_poll(&polled, UInt32(polled.count), pause)
      if ending < 0, Self.hasEnded(process) { break }
      guard count > 0 else { continue }
      if polled[1].revents != 0, !Self.read(output, into: &text) { polled[1].fd = -1 }
      if polled[0].revents != 0 || polled[2].revents != 0 { break }
    }
    // Before its number is free for another process.
    kill(-process, SIGKILL)
    var status: CInt = 0
    _ = try? syscall("waitpid") { waitpid(process, &status, 0) }
    if polled[1].fd >= 0, !isLate {
      var rest = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
      // What it has left running elsewhere may write without an end.
      for _ in 0..<16 where nightjar_poll(&rest, 1, 0) > 0 { _ = Self.read(output, into: &text) }
    }
    let told = text.isEmpty ? "" : ": \(Self.line(of: text))"
    // WIFEXITED and WEXITSTATUS are macros.
    let signal = status & 0x7F
    // What the end of the program has cut short is no answer.
    if polled[0].revents == 0, polled[2].revents != 0 { return .failed("nightjar ends") }
    // Whoever asks all programs of the service to end may reach the command a moment before nightjar's own end.
    if !isLate, [SIGTERM, SIGINT, SIGHUP].contains(signal) {
      var ends = pollfd(fd: stop, events: Int16(POLLIN), revents: 0)
      if nightjar_poll(&ends, 1, grace.nanoseconds) > 0 { return .failed("nightjar ends") }
    }
    if isLate { return .refused("it has not ended after \(Int(patience.seconds)) s and was killed\(told)") }
    if signal != 0 { return .refused("signal \(signal) has ended it\(told)") }
    let code = (status >> 8) & 0xFF
    return code == 0 ? .delivered : .refused("it has ended with \(code)\(told)")
  }

  /// `true` if the process has ended and still has its number.
  private static func hasEnded(_ process: pid_t) -> Bool {
    var info = siginfo_t()
    let flags = WEXITED | WNOHANG | WNOWAIT
    guard (try? syscall("waitid", { waitid(P_PID, id_t(process), &info, flags) })) != nil else { return true }
    return info.si_signo != 0
  }

  /// Reads the next output; returns `false` at its end. What finds no room is dropped.
  private static func read(_ descriptor: CInt, into text: inout [UInt8]) -> Bool {
    var part = [UInt8](repeating: 0, count: 4096)
    guard let count = try? syscall("read", { Glibc.read(descriptor, &part, part.count) }), count > 0 else {
      return false
    }
    text += part[..<min(count, outputLimit - text.count)]
    return true
  }

  /// Returns the last line of an output.
  private static func line(of text: [UInt8]) -> String {
    let lines = text.split(separator: 0x0A)
    return String(decoding: (lines.last ?? []).prefix(toldLimit), as: UTF8.self)
  }

  private static func environment(_ alert: Alert) -> [String] {
    let own = inherited.compactMap { name in getenv(name).map { "\(name)=\(String(cString: $0))" } }
    return own + [
      "EVENT_ID=\(alert.id)", "EVENT_KIND=\(alert.kind.rawValue)", "EVENT_STATE=\(alert.state.rawValue)",
      "EVENT_CAMERA=\(alert.camera ?? "")", "EVENT_TIME=\(alert.time)", "EVENT_TEXT=\(alert.text)",
      "EVENT_QUIET=\(alert.quiet ? 1 : 0)",
    ]
  }

  private static func withCStrings<R>(_ words: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> R) -> R {
    let strings = words.map { strdup($0) }
    defer { for string in strings { free(string) } }
    return body(strings + [nil])
  }
}
