import Glibc
import Host
import Media
package import Platform
import Streaming

/// The display for a person while the program streams: on a terminal one live line, and changes of state as lines of
/// their own. A pipe or the journal receives only the latter.
package struct StatusDisplay {
  private let terminal: CameraTerminal
  private var last: StreamStatistics?
  private var dropping: Set<DropCause> = []
  private var reachability = ReachabilityReport()
  private var slowness = SlownessReport()
  private var isFlowing = false
  private var idleSeconds = 0

  init(terminal: CameraTerminal) {
    self.terminal = terminal
  }

  /// Tells the changes that the present figures show, about once a second. Returns the text for the live line if there
  /// is one.
  ///
  /// - Parameters:
  ///   - watchingPictures: the viewers of JPEG pictures, for whom no picture is encoded.
  ///   - listening: the listeners of MP3, for whom no picture is encoded either.
  ///   - lacksMicrophone: `true` if the stream has sound, and its microphone is away.
  mutating func show(
    _ statistics: StreamStatistics, recent: LatencySummary, watchingPictures: Int = 0, listening: Int = 0,
    lacksMicrophone: Bool = false
  ) -> String? {
    let previous = last ?? StreamStatistics()
    last = statistics
    var guests =
      (watchingPictures > 0 ? ["watch by MJPEG (\(watchingPictures))"] : [])
      + (listening > 0 ? ["listen by MP3 (\(listening))"] : [])
    // Their pictures have an encoder of their own, while that of HEVC rests.
    let watchingH264 = statistics.viewers.count(where: \.getsH264)
    if watchingH264 > 0 { guests.append("watch H.264 (\(watchingH264))") }
    noteFlow(statistics, previous, guests)
    noteDrops(statistics, previous)
    noteViewers(statistics)
    let seconds = (statistics.duration - previous.duration).seconds
    guard terminal.isInteractive, seconds > 0 else { return nil }
    let camera = statistics.camera.map { $0.state == .live ? "" : "  camera \($0.state.rawValue)" } ?? ""
    let lost = camera + (lacksMicrophone ? "  no microphone" : "")
    if statistics.sent == previous.sent, statistics.unwatched > previous.unwatched {
      let parts = [(watchingH264, "H.264"), (watchingPictures, "MJPEG"), (listening, "MP3")].filter { $0.0 > 0 }
        .map { "\($0.0) by \($0.1)" }
      let who = parts.isEmpty ? "nobody is watching" : parts.joined(separator: ", ") + ", the encoder rests"
      return "\(Self.clock(statistics.duration))  \(who)  dropped \(statistics.dropped)\(lost)"
    }
    let rate = Double(statistics.sent - previous.sent) / seconds
    let bits = Double(statistics.encodedBytes - previous.encodedBytes) * 8 / seconds
    return "\(Self.clock(statistics.duration))  \(Terminal.decimal(rate, digits: 1)) fps  \(Terminal.bitrate(bits))  "
      + "dropped \(statistics.dropped)  latency p50 \(Terminal.decimal(recent.median.milliseconds, digits: 1)) ms "
      + "p99 \(Terminal.decimal(recent.percentile99.milliseconds, digits: 1)) ms\(lost)"
  }

  private mutating func noteFlow(
    _ statistics: StreamStatistics, _ previous: StreamStatistics, _ guests: [String]
  ) {
    if statistics.sent > previous.sent {
      idleSeconds = 0
      if !isFlowing { terminal.line("streaming", event: "streaming") }
      isFlowing = true
    } else if statistics.unwatched > previous.unwatched {
      if isFlowing {
        terminal.line(
          (guests.isEmpty ? "nobody is watching" : "all " + guests.joined(separator: " or ")) + ": the encoder rests",
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

  private mutating func noteViewers(_ statistics: StreamStatistics) {
    let viewers = statistics.viewers
    for viewer in viewers {
      if let line = slowness.note(viewer, at: .now()) {
        terminal.line(
          line.text, line.isWarning ? .warning : .info, event: line.isWarning ? "viewer_slow" : "viewer_recovered")
      }
      if let line = reachability.note(viewer) {
        terminal.line(
          line.text, line.isWarning ? .warning : .info, event: line.isWarning ? "unreachable" : "reachable")
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
