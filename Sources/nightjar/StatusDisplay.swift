import Glibc
import Media
import Streaming
import SystemService

/// What a person sees while it streams: on a terminal one live line; changes of state as lines of their own,
/// in a pipe or journal nothing else.
struct StatusDisplay {
  private let terminal: CameraTerminal
  private var last: StreamStatistics?
  private var dropping: Set<DropCause> = []
  private var refusing: [ViewerID: CInt] = [:]
  private var reached: Set<ViewerID> = []
  private var slow: Set<ViewerID> = []
  private var isFlowing = false
  private var idleSeconds = 0

  init(terminal: CameraTerminal) {
    self.terminal = terminal
  }

  /// Tells what has changed by the figures of now, about once a second; what the live line has to say, where there is one.
  ///
  /// - Parameter watchingPictures: Viewers of JPEG pictures, for whom nothing is encoded.
  mutating func show(
    _ statistics: StreamStatistics, recent: LatencySummary, watchingPictures: Int = 0
  ) -> String? {
    let previous = last ?? StreamStatistics()
    last = statistics
    noteFlow(statistics, previous, watchingPictures)
    noteDrops(statistics, previous)
    noteDestinations(statistics)
    let seconds = (statistics.duration - previous.duration).seconds
    guard terminal.isInteractive, seconds > 0 else { return nil }
    let camera = statistics.camera.map { $0.state == .live ? "" : "  camera \($0.state.rawValue)" } ?? ""
    if statistics.sent == previous.sent, statistics.unwatched > previous.unwatched {
      let who = watchingPictures == 0 ? "nobody is watching" : "\(watchingPictures) by MJPEG, the encoder rests"
      return "\(Self.clock(statistics.duration))  \(who)  dropped \(statistics.dropped)\(camera)"
    }
    let rate = Double(statistics.sent - previous.sent) / seconds
    let bits = Double(statistics.encodedBytes - previous.encodedBytes) * 8 / seconds
    return "\(Self.clock(statistics.duration))  \(Terminal.decimal(rate, digits: 1)) fps  \(Terminal.bitrate(bits))  "
      + "dropped \(statistics.dropped)  latency p50 \(Terminal.decimal(recent.median.milliseconds, digits: 1)) ms "
      + "p99 \(Terminal.decimal(recent.percentile99.milliseconds, digits: 1)) ms\(camera)"
  }

  private mutating func noteFlow(
    _ statistics: StreamStatistics, _ previous: StreamStatistics, _ watchingPictures: Int
  ) {
    if statistics.sent > previous.sent {
      idleSeconds = 0
      if !isFlowing { terminal.line("streaming", event: "streaming") }
      isFlowing = true
    } else if statistics.unwatched > previous.unwatched {
      if isFlowing {
        terminal.line(
          watchingPictures == 0
            ? "nobody is watching: the encoder rests" : "all watch by MJPEG (\(watchingPictures)): the encoder rests",
          event: "resting")
      }
      isFlowing = false
    } else if isFlowing {
      idleSeconds += 1
      guard idleSeconds == 2 else { return }
      let isEncoding = statistics.encoded > previous.encoded
      terminal.line(
        isEncoding ? "nothing could be sent for 2 s" : "no picture for 2 s", .warning,
        event: isEncoding ? "nothing_sent" : "no_picture")
      isFlowing = false
    }
  }

  private mutating func noteDrops(_ statistics: StreamStatistics, _ previous: StreamStatistics) {
    for cause in DropCause.allCases {
      let new = (statistics.drops[cause] ?? 0) - (previous.drops[cause] ?? 0)
      if new > cause.tolerated, dropping.insert(cause).inserted {
        terminal.line("dropping frames: \(cause.explanation)", .warning, event: "dropping")
      } else if new == 0, dropping.remove(cause) != nil {
        terminal.line(
          "no longer dropping frames: \(cause.explanation) (\(statistics.drops[cause] ?? 0) so far)",
          event: "dropping_ended")
      }
    }
  }

  private mutating func noteDestinations(_ statistics: StreamStatistics) {
    for destination in statistics.destinations {
      noteSlowness(destination)
      let error = destination.errorNumber
      guard refusing[destination.id, default: 0] != error else { continue }
      refusing[destination.id] = error
      switch error {
      case 0:
        terminal.line("\(destination.name): reachable", event: "reachable")
        reached.insert(destination.id)
      case ECONNREFUSED:
        let whether = reached.contains(destination.id) ? "any more" : "yet"
        terminal.line("\(destination.name): nobody is listening \(whether)", .warning, event: "unreachable")
      default: terminal.line("\(destination.name): \(SystemFailure.text(error))", .warning, event: "unreachable")
      }
    }
  }

  private mutating func noteSlowness(_ destination: DestinationStatistics) {
    if destination.isSlow, slow.insert(destination.id).inserted {
      terminal.line("\(destination.name): too slow for the stream, losing frames", .warning, event: "viewer_slow")
    } else if !destination.isSlow, slow.remove(destination.id) != nil {
      terminal.line(
        "\(destination.name): takes all frames again (\(destination.framesDropped) lost so far)",
        event: "viewer_recovered")
    }
  }

  /// `04:31`, `1:02:03`.
  static func clock(_ time: MediaTime) -> String {
    let seconds = Int(max(0, time.seconds))
    func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60)
    return (hours > 0 ? "\(hours):" : "") + "\(two(minutes)):\(two(seconds % 60))"
  }
}

extension DropCause {
  /// So many in a second are counted, and no news: on a machine that has other work, one is late now and then.
  fileprivate var tolerated: Int {
    switch self {
    case .driver, .poolExhausted, .encoderLate: 2
    case .driverError, .short, .corrupt, .encoderError, .network: 0
    }
  }

  /// The cause in words.
  var explanation: String {
    switch self {
    case .driver: "the camera skipped some"
    case .driverError: "the camera driver marked some as broken"
    case .short: "the camera delivered incomplete pictures"
    case .corrupt: "the camera delivered corrupt pictures"
    case .poolExhausted: "all frames of the pool are in use"
    case .encoderLate: "the encoder is too slow for this size and rate"
    case .encoderError: "the encoder failed"
    case .network: "the network takes them for no destination"
    }
  }
}
