import Encoding
import Host
import Media
import Platform
import Serving
import Streaming

/// The choice of x264's or x265's preset for one stream, by measurement: reads the figures of the stream and of the process once a
/// second, and sets the effort that the ``QualityGovernor`` chooses.
struct EffortControl {
  private let pipeline: Pipeline
  private let budget: ProcessorBudget
  private let threads: Int
  /// The name of the encoder's library.
  private let library: String
  private var governor: QualityGovernor
  private var times = LatencyHistogram()
  private var last: (time: Instant, busy: Duration, small: Duration, process: Duration, dropped: Int)
  /// The processors that the encoder would use less with the least effort, by the last second's measurement.
  private(set) var reserve = 0.0

  /// Returns the presets in the order of their effort, and the encode times as multiples of ultrafast's. Slower presets than
  /// these gain nothing that their time is worth without a lookahead: see docs/performance.md, "Quality".
  private static func costs(of codec: VideoCodec) -> [(preset: String, cost: Double)] {
    switch codec {
    case .h264: [("ultrafast", 1), ("superfast", 1.8), ("veryfast", 3.3), ("faster", 4.8), ("fast", 7.5)]
    case .hevc: [("ultrafast", 1), ("superfast", 1.6), ("veryfast", 2), ("fast", 2.6), ("medium", 3.5)]
    }
  }

  /// Begins to choose the effort of `pipeline`, whose encoder was opened with `preset` and encodes by `threads`; nil if the
  /// preset is no rung of the ladder.
  init?(_ pipeline: Pipeline, preset: String, threads: Int, _ budget: ProcessorBudget) {
    let codec = pipeline.codec
    let rungs = Self.costs(of: codec).compactMap { entry in
      EncoderSelector.effort(ofPreset: entry.preset).map { QualityGovernor.Rung(effort: $0, cost: entry.cost) }
    }
    guard let effort = EncoderSelector.effort(ofPreset: preset),
      let start = rungs.firstIndex(where: { $0.effort == effort })
    else { return nil }
    (self.pipeline, self.budget, self.threads) = (pipeline, budget, threads)
    library = codec.softwareLibrary
    governor = QualityGovernor(rungs: rungs, start: start, budget: budget.processors)
    last = (
      .now(), pipeline.encoderWork.busy, pipeline.smallEncoderTime, ProcessorBudget.used, pipeline.lateFrames
    )
    pipeline.govern(nil, fallback: governor.fallback)
  }

  /// `true` if a lesser effort cannot help: there is none, or hardware is at work.
  var isLeast: Bool { governor.rung == 0 || !pipeline.hasSoftwareEncoder }

  /// Measures the last second, and changes the effort if that is due. Returns the change in words, with its reason.
  mutating func look(_ thermal: ThermalState, at now: Instant) -> String? {
    let before = governor.effort
    let isAtWork = pipeline.hasSoftwareEncoder
    // What software has taken before hardware came back stays for the next time.
    if pipeline.takeFallenEffort() != nil { governor.noteFallen(at: now) }
    let present = (
      time: now, busy: pipeline.encoderWork.busy, small: pipeline.smallEncoderTime, process: ProcessorBudget.used,
      dropped: pipeline.lateFrames
    )
    times.removeAll()
    pipeline.takeEncodeTimes(&times)
    // Hardware has no presets, and its fallback begins with the present one.
    if isAtWork {
      let measurement = QualityGovernor.Measurement(
        times: times, interval: pipeline.frameRate.interval, elapsed: now - last.time,
        // The encoder of small pictures has the same effort, on one thread.
        encoderTime: (present.busy - last.busy) * Int64(threads) + (present.small - last.small),
        processTime: present.process - last.process,
        dropped: present.dropped - last.dropped, heat: Self.heat(thermal))
      _ = governor.note(measurement, at: now) { [budget] in budget.claim(at: now) }
    }
    let elapsed = max((present.time - last.time).seconds, 0.001)
    let share = (present.busy - last.busy).seconds * Double(threads) / elapsed
    reserve = isAtWork ? share * (1 - governor.rungs[0].cost / governor.rungs[governor.rung].cost) : 0
    last = present
    guard governor.effort != before else { return nil }
    pipeline.govern(governor.effort, fallback: governor.fallback)
    return words(from: before, isAtWork: isAtWork)
  }

  /// The state for the control API.
  var status: StreamStatus.Quality {
    StreamStatus.Quality(
      x264Preset: Self.name(governor.effort), reason: governor.reason.map(Self.name),
      encodeP99Ms: governor.percentile99?.milliseconds,
      encodeLimitMs: pipeline.frameRate.interval.milliseconds * QualityGovernor.limit,
      processors: governor.processors, processorBudget: budget.processors, changes: governor.changes)
  }

  private static func heat(_ state: ThermalState) -> QualityGovernor.Heat {
    switch state {
    case .nominal: .none
    case .fair: .warm
    case .serious, .critical: .hot
    }
  }

  private static func name(_ effort: EncodingEffort) -> String { EncoderSelector.preset(of: effort) ?? "" }

  private static func name(_ reason: QualityGovernor.Reason) -> String {
    switch reason {
    case .room: "room"
    case .late: "late"
    case .slow: "slow"
    case .budget: "budget"
    case .heat: "heat"
    }
  }

  private func words(from former: EncodingEffort, isAtWork: Bool) -> String {
    let limit = Terminal.decimal(pipeline.frameRate.interval.milliseconds * QualityGovernor.limit, digits: 1)
    let reason =
      switch governor.reason {
      case .late: "frames took longer than a frame interval"
      case .slow: "one frame in a hundred took longer than \(limit) ms"
      case .budget: "the program used more than \(Terminal.decimal(budget.processors, digits: 1)) processors"
      case .heat: "the host is hot"
      case .room, nil: "99 of 100 frames are encoded well within \(limit) ms"
      }
    let verb = isAtWork ? "continues" : "will take over"
    return "\(library) \(verb) with \(Self.name(governor.effort)) instead of \(Self.name(former)): \(reason)"
  }
}
