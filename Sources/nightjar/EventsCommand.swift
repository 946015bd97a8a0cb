import Alerts
import Appliance
import ArgumentParser
import Glibc
import Platform
import Serving
import Synchronization

/// `nightjar events`.
struct EventsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "events",
    abstract: "Follow the events of a running stream: alerts that begin, end and are acknowledged.",
    discussion: """
      It prints a line for each event, until Ctrl-C. If the stream restarts, it waits and goes on with the next event.
      You must be the owner of the stream's control socket or in its group.

      Examples:
        nightjar events
        nightjar events --json
        nightjar events --after 0    # also those that the history has

      nightjar ctl events lists the events so far.
      """)

  @Option(
    help: ArgumentHelp("Begin after the event with this number, as far back as the history goes.", valueName: "number"))
  var after: UInt64?

  @OptionGroup var stream: ControlCommand.Stream

  /// The pause before another attempt to reach the stream.
  private static let pause: UInt32 = 1

  func run() throws {
    // A reader that has seen enough would otherwise end the program by a signal, silently.
    signal(SIGPIPE, SIG_IGN)
    try reportingFailures { try follow() }
  }

  /// Follows the events until the reader is gone.
  ///
  /// - Throws: the errors of the first connection. After that, waits for a server that is gone.
  private func follow() throws {
    let client = stream.client()
    let place = Mutex<(last: UInt64?, hasReader: Bool)>((after, true))
    if after == nil {
      // A reconnection begins behind what was there at the start.
      let newest = try client.events(limit: 1).value.events.last?.id ?? 0
      place.withLock { $0.last = newest }
    }
    var hasBegun = false
    while place.withLock({ $0.hasReader }) {
      do {
        try client.followEvents(after: place.withLock { $0.last }) { [stream] message in
          let line = Self.line(of: message, in: stream)
          let isRead = line.map { writeAll($0, to: STDOUT_FILENO) == 0 } ?? true
          place.withLock { place in
            if case .alert(let alert, _) = message { place.last = alert.id }
            place.hasReader = isRead
          }
          return isRead
        }
      } catch ControlClientError.closed(_) {
        // The stream has ended, or restarts.
      } catch let error as ControlClientError where hasBegun && error.kind == .unavailable {
        // It has not started again.
      }
      hasBegun = true
      if place.withLock({ $0.hasReader }) { sleep(Self.pause) }
    }
  }

  /// Returns the line for a message; nil for an event of another camera.
  private static func line(of message: ControlClient.EventMessage, in stream: ControlCommand.Stream) -> String? {
    switch message {
    case .dropped(let count):
      return stream.json
        ? "{\"dropped\":\(count)}\n" : "\(count) events are not in the history any more\n"
    case .alert(let alert, let json):
      if let camera = stream.camera, alert.camera != camera { return nil }
      return stream.json ? String(decoding: json, as: UTF8.self) + "\n" : EventText.line(alert)
    }
  }
}

extension ControlCommand {
  /// `nightjar ctl events`.
  struct EventsListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "events", abstract: "List the last events, or acknowledge alerts.",
      discussion: """
        Examples:
          nightjar ctl events
          nightjar ctl events ack 12
          nightjar ctl events ack      # all alerts that are not over
        """,
      subcommands: [ListEventsCommand.self, AcknowledgeCommand.self], defaultSubcommand: ListEventsCommand.self)

    @OptionGroup var stream: Stream
  }

  struct ListEventsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the last events.")

    @Option(help: ArgumentHelp("The most events to list: 1 to 1000; the default is 50.", valueName: "number"))
    var limit = 50

    @OptionGroup var stream: Stream

    func validate() throws {
      guard (1...AlertHistory.limit).contains(limit) else {
        throw ValidationError("--limit \(limit): choose 1 to \(AlertHistory.limit)")
      }
    }

    func run() throws {
      try stream.tell {
        try $0.events(limit: limit)
      } _: { answer in
        let events = answer.events.filter { stream.camera == nil || $0.camera == stream.camera }
        guard !events.isEmpty else { return "no events yet\n" }
        return events.map(EventText.line).joined()
      }
    }
  }

  struct AcknowledgeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "ack", abstract: "Acknowledge an alert, so that everybody knows that somebody takes care of it.")

    @Argument(help: "The number of the event with which the alert began; without it, all alerts that are not over.")
    var number: UInt64?

    @OptionGroup var stream: Stream

    func run() throws {
      try stream.tell {
        try $0.acknowledge(number)
      } _: { answer in
        answer.events.isEmpty ? "nothing to acknowledge\n" : answer.events.map(EventText.line).joined()
      }
    }
  }
}

/// Events in words.
enum EventText {
  /// Returns the line of an event.
  static func line(_ alert: Alert) -> String {
    let place = alert.camera.map { " \($0):" } ?? ""
    let confidence = alert.confidence < 1 ? " (\(StatusText.percent(alert.confidence)) sure)" : ""
    let suppressed = alert.suppressed > 0 ? ", and \(alert.suppressed) times shortly before" : ""
    let pictures = alert.pictures.map { ", pictures: \($0.map(\.rawValue).joined(separator: ", "))" } ?? ""
    let what =
      switch alert.state {
      case .began: "\(alert.text)\(confidence)\(suppressed)\(pictures)"
      case .ended, .acknowledged: "\(alert.text)\(alert.of.map { " (event \($0))" } ?? "")"
      }
    return "\(alert.id) \(alert.time)\(place) \(what)\(alert.quiet ? ", quiet hours" : "")\n"
  }
}
