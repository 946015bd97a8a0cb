package import Host
import Media
package import Platform
package import Streaming

/// The display for a person while the program streams: on a terminal one live line, and changes of state as lines of
/// their own. A pipe or the journal receives only the latter.
package struct StatusDisplay {
  private let isInteractive: Bool
  private let tell: (_ text: String, _ level: LogLevel, _ event: String) -> Void
  private var last: StreamStatistics?
  private var dropping: Set<DropCause> = []
  private var reachability = ReachabilityReport()
  private var slowness = SlownessReport()
  private var isFlowing = false
  private var idleSeconds = 0

  /// Creates a display that has shown nothing.
  ///
  /// - Parameters:
  ///   - isInteractive: `true` if there is a live line.
  ///   - tell: writes a change of state, a line each, with the event in a word that stays the same.
  package init(isInteractive: Bool, tell: @escaping (_ text: String, _ level: LogLevel, _ event: String) -> Void) {
    (self.isInteractive, self.tell) = (isInteractive, tell)
  }

  /// Tells the changes that the present figures show, about once a second. Returns the text for the live line if there
  /// is one.
  ///
  /// - Parameters:
  ///   - others: the viewers for whom no picture is encoded by the stream's own encoder.
  ///   - lacksMicrophone: `true` if the stream has sound, and its microphone is away.
  package mutating func show(
    _ statistics: StreamStatistics, recent: LatencySummary, others: OtherViewers, lacksMicrophone: Bool = false
  ) -> String? {
    let previous = last ?? StreamStatistics()
    last = statistics
    noteFlow(statistics, previous, others)
    noteDrops(statistics, previous)
    noteViewers(statistics)
    let seconds = (statistics.duration - previous.duration).seconds
    guard isInteractive, seconds > 0 else { return nil }
    let camera = statistics.camera.map { $0.state == .live ? "" : "  camera \($0.state.rawValue)" } ?? ""
    let lost = camera + (lacksMicrophone ? "  no microphone" : "")
    if statistics.sent == previous.sent, statistics.unwatched > previous.unwatched {
      let counts = others.counts
      let who = counts.isEmpty ? "nobody is watching" : counts.joined(separator: ", ") + ", the encoder rests"
      return "\(Self.clock(statistics.duration))  \(who)  dropped \(statistics.dropped)\(lost)"
    }
    let rate = Double(statistics.sent - previous.sent) / seconds
    let bits = Double(statistics.encodedBytes - previous.encodedBytes) * 8 / seconds
    return "\(Self.clock(statistics.duration))  \(Terminal.decimal(rate, digits: 1)) fps  \(Terminal.bitrate(bits))  "
      + "dropped \(statistics.dropped)  latency p50 \(Terminal.decimal(recent.median.milliseconds, digits: 1)) ms "
      + "p99 \(Terminal.decimal(recent.percentile99.milliseconds, digits: 1)) ms\(lost)"
  }

  private mutating func noteFlow(
    _ statistics: StreamStatistics, _ previous: StreamStatistics, _ others: OtherViewers
  ) {
    if statistics.sent > previous.sent {
      idleSeconds = 0
      if !isFlowing { tell("streaming", .info, "streaming") }
      isFlowing = true
    } else if statistics.unwatched > previous.unwatched {
      if isFlowing {
        let occupations = others.occupations
        let who = occupations.isEmpty ? "nobody is watching" : "all " + occupations.joined(separator: " or ")
        tell("\(who): the encoder rests", .info, "resting")
      }
      isFlowing = false
    } else if isFlowing {
      idleSeconds += 1
      guard idleSeconds == 2 else { return }
      let isEncoding = statistics.encoded > previous.encoded
      tell(
        isEncoding ? "nothing could be sent for 2 s" : "no picture for 2 s", .warning,
        isEncoding ? "nothing_sent" : "no_picture")
      isFlowing = false
    }
  }

  private mutating func noteDrops(_ statistics: StreamStatistics, _ previous: StreamStatistics) {
    for cause in DropCause.allCases {
      let new = (statistics.drops[cause] ?? 0) - (previous.drops[cause] ?? 0)
      if new > cause.tolerated, dropping.insert(cause).inserted {
        tell("dropping frames: \(cause.explanation)", .warning, "dropping")
      } else if new == 0, dropping.remove(cause) != nil {
        tell(
          "no longer dropping frames: \(cause.explanation) (\(statistics.drops[cause] ?? 0) so far)", .info,
          "dropping_ended")
      }
    }
  }

  private mutating func noteViewers(_ statistics: StreamStatistics) {
    let viewers = statistics.viewers
    for viewer in viewers {
      if let line = slowness.note(viewer, at: .now()) {
        tell(line.text, line.isWarning ? .warning : .info, line.isWarning ? "viewer_slow" : "viewer_recovered")
      }
      if let line = reachability.note(viewer) {
        tell(line.text, line.isWarning ? .warning : .info, line.isWarning ? "unreachable" : "reachable")
      }
    }
    slowness.forgetOthers(than: viewers)
    reachability.forgetOthers(than: viewers)
  }

  /// Returns `04:31`, `1:02:03`.
  package static func clock(_ time: Duration) -> String {
    let seconds = Int(max(0, time.seconds))
    func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60)
    return (hours > 0 ? "\(hours):" : "") + "\(two(minutes)):\(two(seconds % 60))"
  }
}

extension DropCause {
  /// The number of drops per second that are counted without a message: on a host with other work, a frame is late now
  /// and then.
  fileprivate var tolerated: Int {
    switch self {
    case .driver, .poolExhausted, .encoderLate, .captureLate, .undecodable: 2
    case .driverError, .short, .corrupt, .encoderError, .network: 0
    }
  }

  /// The cause in words.
  package var explanation: String {
    switch self {
    case .driver: "the camera skipped some"
    case .driverError: "the camera driver marked some as broken"
    case .short: "the camera delivered incomplete pictures"
    case .corrupt: "the camera delivered corrupt pictures"
    case .poolExhausted: "all frames of the pool are in use"
    case .encoderLate: "the encoder is too slow for this size and rate"
    case .encoderError: "the encoder failed"
    case .network: "no destination could take them"
    case .captureLate: "a newer picture was waiting: conversion is too slow for this size and rate"
    case .undecodable: "a picture of the camera's own H.264 is missing before them, or they are damaged"
    }
  }
}
