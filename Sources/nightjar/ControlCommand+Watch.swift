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
    var answer = try client.status()
    if let camera = stream.camera { _ = try client.status(of: camera) }
    if isTerminal, !stream.json { write("\u{1b}[?25l") }
    var received: CInt = 0
    var isRead = show(answer, at: .now())
    while isRead {
      received = wait(signals.number)
      if received != 0 { break }
      do {
        answer = try client.status()
        isRead = show(answer, at: .now())
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

/// The live view of a status: within 80 columns.
struct StatusView {
  private var last: (status: ApplianceStatus, time: Instant)?

  /// Forgets the last status: rates need two answers of the same server.
  mutating func forget() { last = nil }

  /// Returns the lines for a status that was received at `now`.
  mutating func lines(of status: ApplianceStatus, only name: String?, at now: Instant) -> [String] {
    // Another run counts from zero.
    if let last, status.uptimeSeconds < last.status.uptimeSeconds { forget() }
    defer { last = (status, now) }
    let cameras = status.cameras.filter { name == nil || $0.name == name }
    let destinations = cameras.reduce(0) { $0 + $1.destinations.count(where: \.isDestination) }
    let viewers = cameras.reduce(-destinations) {
      $0 + $1.destinations.count + $1.pictures.viewers + ($1.sound?.mp3Listeners ?? 0)
    }
    var lines = [
      "nightjar  " + StatusDisplay.clock(Duration(seconds: status.uptimeSeconds))
        + "  \(cameras.count) \(cameras.count == 1 ? "camera" : "cameras")"
        + "  \(viewers) \(viewers == 1 ? "viewer" : "viewers")"
        + (destinations > 0 ? "  \(destinations) \(destinations == 1 ? "destination" : "destinations")" : "")
        + (status.reloads > 0 ? "  reloaded \(StatusText.times(status.reloads))" : "")
    ]
    let absent = status.absent.filter { camera in
      (name == nil || camera.name == name) && !cameras.contains { $0.name == camera.name }
    }
    if let name, cameras.isEmpty, absent.isEmpty { lines.append("there is no camera \(name) now") }
    for camera in cameras { lines += self.lines(of: camera, at: now) }
    for camera in absent { lines += ["", Self.columns((camera.name, 20), ("does not stream: \(camera.reason)", 60))] }
    return lines
  }

  private func lines(of camera: StreamStatus, at now: Instant) -> [String] {
    let former = last?.status.cameras.first { $0.name == camera.name && $0.uptimeSeconds <= camera.uptimeSeconds }
    let seconds = last.map { (now - $0.time).seconds } ?? 0
    func rate(_ new: Int, _ old: Int?) -> Double? {
      guard let old, new >= old, seconds > 0 else { return nil }
      return Double(new - old) / seconds
    }
    let isResting =
      camera.frames.encoded == former?.frames.encoded && camera.frames.unwatched > former?.frames.unwatched ?? .max
    let frames = rate(camera.frames.encoded, former?.frames.encoded).map { Terminal.decimal($0, digits: 1) } ?? "-"
    let load = camera.adaptation?.load.map(StatusText.percent) ?? "-"
    var lines = [
      "",
      Self.columns(
        (camera.name, 20), (camera.health?.state.rawValue ?? camera.camera?.state ?? "live", 13),
        ("\(camera.orientation.width)x\(camera.orientation.height)", 11), (isResting ? "resting" : "\(frames) fps", 12),
        ("dropped \(camera.frames.dropped)", 20)),
      Self.columns(
        ("  \(camera.encoder.name)", 45), ("load \(load)", 14),
        (camera.encoder.bitrate.map { Terminal.bitrate(Double($0)) } ?? "fixed quality", 16)),
    ]
    if let health = camera.health, !health.healthy, let reason = health.reason { lines.append("  \(reason)") }
    if let sound = camera.sound {
      lines.append("  sound " + LevelBar.text(sound))
      if sound.mp3Listeners > 0 { lines.append("  \(sound.mp3Listeners) listening by MP3") }
    }
    if camera.pictures.viewers > 0 {
      let pictures = camera.pictures.coded + camera.pictures.passed
      let old = former.map { $0.pictures.coded + $0.pictures.passed }
      let made = rate(pictures, old).map { Terminal.decimal($0, digits: 1) } ?? "-"
      lines.append(
        Self.columns(
          ("  \(camera.pictures.viewers) \(camera.pictures.viewers == 1 ? "viewer" : "viewers") by MJPEG", 45),
          ("", 14), ("\(made) JPEG/s", 16)))
    }
    for viewer in camera.destinations {
      let old = former?.destinations.first { $0.url == viewer.url }
      let bits = rate(viewer.bytes, old?.bytes).map { Terminal.bitrate($0 * 8) } ?? "-"
      lines.append(
        Self.columns(
          ("  \(viewer.url)", 45), (Self.state(of: viewer), 14), (bits, 13), (Self.sound(of: viewer), 8)))
    }
    return lines
  }

  /// Returns how well the viewer gets the stream.
  private static func state(of viewer: StreamStatus.Destination) -> String {
    if viewer.stopped != nil { return "stopped" }
    if viewer.slow { return "too slow" }
    if let bandwidth = viewer.bandwidth { return "net \(Terminal.bitrate(Double(bandwidth)))" }
    return viewer.reception.map { "lost \(StatusText.percent($0.fractionLost))" } ?? "no report"
  }

  /// Returns `+ sound` for a viewer of picture and sound, `sound` for one that only listens, and nothing for others.
  private static func sound(of viewer: StreamStatus.Destination) -> String {
    let tracks = viewer.tracks ?? []
    guard tracks.contains("sound") else { return "" }
    return tracks.count == 1 ? "sound" : "+ sound"
  }

  /// Returns the fields side by side, each cut or filled to its width, with a space behind it.
  private static func columns(_ fields: (text: String, width: Int)...) -> String {
    var line = ""
    for (index, field) in fields.enumerated() {
      let text = field.text.prefix(field.width - 1)
      line += index == fields.count - 1 ? text : text + String(repeating: " ", count: field.width - text.count)
    }
    return line
  }
}
