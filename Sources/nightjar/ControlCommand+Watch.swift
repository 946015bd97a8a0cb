import Appliance
import CLinux
import Glibc
import Platform
import Serving

/// `nightjar ctl status --watch`: requests the status once a second and shows it.
///
/// On a terminal each view replaces the one before. In a pipe each view follows the last, with an empty line between.
struct StatusWatch {
  private let stream: ControlCommand.Stream
  private let isTerminal = isatty(STDOUT_FILENO) == 1
  private var view = StatusView()
  private var linesDrawn = 0

  init(_ stream: ControlCommand.Stream) {
    self.stream = stream
  }

  /// Runs until Ctrl-C, or until the output's reader is gone.
  ///
  /// - Throws: the errors of the first request. After that, waits for a server that is gone.
  mutating func run() throws {
    // Before the client's threads, so that they leave these signals to this one.
    let signals = try FileDescriptor(from: "signalfd", nightjar_stop_signals)
    let client = stream.client(patience: Duration(seconds: 2))
    var received: CInt = 0
    let first = try firstAnswer(of: client) {
      received = wait(signals.number)
      return received == 0
    }
    if isTerminal, !stream.json { write("\u{1b}[?25l") }
    var isRead = first.map { show($0, at: .now()) } ?? false
    while isRead {
      received = wait(signals.number)
      if received != 0 { break }
      do {
        isRead = show(try client.status(), at: .now())
      } catch {
        let text = (error as? any Failure)?.description ?? "\(error)"
        view.forget()
        // JSON has no form for this message; the missing line shows the failure.
        if !stream.json { isRead = draw(Self.wrapped("no answer: \(text)") + ["trying again each second"]) }
      }
    }
    if isTerminal, !stream.json { write("\u{1b}[?25h") }
    if received != 0, received != SIGINT { nightjar_end_by_signal(received) }
  }

  /// Requests the status until it comes, as long as another command waits for an answer; nil if `continues` ends that.
  private func firstAnswer(
    of client: ControlClient, while continues: () -> Bool
  ) throws -> ControlClient.Answer<ApplianceStatus>? {
    let end = Instant.now() + ControlCommand.Stream.patience
    while true {
      do {
        let answer = try client.status()
        if let camera = stream.camera { _ = try client.status(of: camera) }
        return answer
      } catch ControlClientError.silent where Instant.now() < end {
        guard continues() else { return nil }
      }
    }
  }

  /// Waits a second. Returns the signal that came meanwhile, or 0.
  private func wait(_ signals: CInt) -> CInt {
    var descriptor = pollfd(fd: signals, events: Int16(POLLIN), revents: 0)
    _ = nightjar_poll(&descriptor, 1, 1_000_000_000)
    return descriptor.revents == 0 ? 0 : nightjar_next_signal(signals)
  }

  private mutating func show(_ answer: ControlClient.Answer<ApplianceStatus>, at now: Instant) -> Bool {
    if stream.json { return write(String(decoding: answer.json, as: UTF8.self)) }
    return draw(view.lines(of: answer.value, only: stream.camera, at: now))
  }

  private mutating func draw(_ lines: [String]) -> Bool {
    guard isTerminal else { return write(lines.map { $0.prefix(80) + "\n" }.joined() + "\n") }
    var size = winsize()
    let isKnown = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 && size.ws_row > 1
    let (columns, rows) = isKnown ? (Int(size.ws_col), Int(size.ws_row)) : (80, 24)
    // A view that scrolls could not be replaced.
    let shown = lines.prefix(rows - 1).map { $0.prefix(min(columns - 1, 80)) + "\u{1b}[K\n" }
    let back = linesDrawn > 0 ? "\u{1b}[\(min(linesDrawn, rows - 1))A\r" : ""
    linesDrawn = shown.count
    return write(back + shown.joined() + "\u{1b}[J")
  }

  /// Returns the words of a sentence in lines of 78 characters at most; longer words are cut.
  private static func wrapped(_ text: String) -> [String] {
    var lines = [""]
    for word in text.split(separator: " ") {
      let line = lines[lines.count - 1]
      if line.isEmpty {
        lines[lines.count - 1] = String(word.prefix(78))
      } else if line.count + 1 + word.count <= 78 {
        lines[lines.count - 1] += " \(word)"
      } else {
        lines.append(String(word.prefix(78)))
      }
    }
    return lines
  }

  /// Writes to standard output. Returns `true` if the output still has a reader.
  @discardableResult
  private func write(_ text: String) -> Bool { writeAll(text, to: STDOUT_FILENO) == 0 }
}
