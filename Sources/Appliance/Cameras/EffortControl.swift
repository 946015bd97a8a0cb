package import Encoding
package import Host
import Media
package import Platform
package import Serving
package import Streaming

/// The choice of the effort for one stream, by measurement: of x264's or x265's preset while software encodes, and of VA-API's
/// quality level while hardware does. Reads the figures of the stream and of the process once a second, and sets what the
/// ``QualityGovernor`` or the ``LevelGovernor`` chooses.
package struct EffortControl {
  private let pipeline: Pipeline
  private let budget: ProcessorBudget
  /// The number of threads of the encoder's configuration.
  private let threads: Int
  /// The trial of two sliced threads; nil if none is tried, as with a configured number of threads.
  private var sliced: SlicedThreads?
  /// The last time at which the encoder at work or its preset changed, or the stream was restricted. A trial of threads ends
  /// then, and begins ``SlicedThreads/calm`` later at the earliest.
  private var unsettled: Instant
  /// The name of the software's library.
  private let library: String
  /// The governor of the preset; nil if the preset is configured.
  private var preset: QualityGovernor?
  /// The levels of the hardware; nil if the quality level is configured.
  private let levels: HardwareLevels?
  /// The governor of the quality level; nil before hardware with levels has encoded.
  private var level: LevelGovernor?
  private var times = LatencyHistogram()
  private var last: (time: Instant, busy: Duration, small: Duration, process: Duration, dropped: Int)
  /// The kind of encoder at the last measurement.
  private var atWork: EncoderAtWork
  /// The number of processors that the encoder would free with the least effort, by the last second's measurement.
  private(set) var reserve = 0.0

  /// Returns the presets in the order of their effort, and the encode times as multiples of ultrafast's. Slower presets than
  /// these gain nothing that their time is worth without a lookahead: see docs/performance.md, "Quality".
  private static func costs(of codec: VideoCodec) -> [(preset: String, cost: Double)] {
    switch codec {
    case .h264: [("ultrafast", 1), ("superfast", 1.8), ("veryfast", 3.3), ("faster", 4.8), ("fast", 7.5)]
    case .hevc: [("ultrafast", 1), ("superfast", 1.6), ("veryfast", 2), ("fast", 2.6), ("medium", 3.5)]
    }
  }

  /// Returns the governor of the preset; nil if `preset` is no rung of the ladder.
  private static func governor(
    from preset: String, of codec: VideoCodec, _ budget: ProcessorBudget
  ) -> QualityGovernor? {
    let rungs = costs(of: codec).compactMap { entry in
      EncoderSelector.effort(ofPreset: entry.preset).map { QualityGovernor.Rung(effort: $0, cost: entry.cost) }
    }
    guard let effort = EncoderSelector.effort(ofPreset: preset),
      let start = rungs.firstIndex(where: { $0.effort == effort })
    else { return nil }
    return QualityGovernor(rungs: rungs, start: start, budget: budget.processors)
  }

  /// Begins to choose the effort of `pipeline`, whose encoder encodes by `threads`; nil if there is nothing to choose.
  ///
  /// - Parameters:
  ///   - preset: the preset that the software was opened with; nil if it stays as it is configured.
  ///   - levels: the levels of the hardware; nil if the quality level stays as it is configured.
  ///   - triesThreads: `true` if two sliced threads are tried. With a configured preset they are not.
  package init?(
    _ pipeline: Pipeline, preset: String?, levels: HardwareLevels?, threads: Int, triesThreads: Bool = false,
    _ budget: ProcessorBudget
  ) {
    let codec = pipeline.codec
    let governor = preset.flatMap { Self.governor(from: $0, of: codec, budget) }
    guard governor != nil || levels != nil else { return nil }
    (self.pipeline, self.budget, self.threads) = (pipeline, budget, threads)
    (self.preset, self.levels) = (governor, levels)
    sliced = triesThreads && governor != nil ? SlicedThreads() : nil
    library = codec.softwareLibrary
    unsettled = .now()
    last = (
      .now(), pipeline.encoderWork.busy, pipeline.smallEncoderTime, ProcessorBudget.used, pipeline.lateFrames
    )
    atWork = pipeline.encoderAtWork
    pipeline.govern(nil, fallback: governor?.fallback)
  }

  /// `true` if the preset is chosen.
  var governsPreset: Bool { preset != nil }

  /// `true` if software encoded at the last measurement.
  private var isSoftware: Bool { atWork == .software }

  /// `true` if a lesser effort of the encoder at work cannot help: there is none, or it keeps the configured one.
  package var isLeast: Bool {
    switch atWork {
    case .software: (preset?.rung ?? 0) == 0
    case .hardware: level?.isLeast ?? true
    case .camera: true
    }
  }

  /// Measures the last second, and changes the effort if that is due. Returns the change in words, with its reason.
  package mutating func measure(_ thermal: ThermalState, at now: Instant) -> String? {
    let before = (effort: preset?.effort, level: level?.level, faster: level?.faster, threads: softwareThreads)
    let formerOutcome = sliced?.outcome
    // What the encode stage took by itself is kept, also if the other encoder has taken over since.
    if pipeline.takeFallenEffort() != nil { preset?.noteFallen(at: now) }
    if let taken = pipeline.takeFallenQuality() { level?.noteFallen(to: taken, at: now) }
    let present = (
      time: now, busy: pipeline.encoderWork.busy, small: pipeline.smallEncoderTime, process: ProcessorBudget.used,
      dropped: pipeline.lateFrames
    )
    times.removeAll()
    pipeline.takeEncodeTimes(&times)
    let formerEncoder = atWork
    atWork = pipeline.encoderAtWork
    // A second in which two encoders encoded says nothing of either.
    if atWork == formerEncoder {
      let measurement = QualityGovernor.Measurement(
        times: times, interval: pipeline.frameRate.interval, elapsed: now - last.time,
        // The encoder of small pictures has the same effort, on one thread.
        encoderTime: (present.busy - last.busy) * Int64(before.threads) + (present.small - last.small),
        processTime: present.process - last.process,
        dropped: present.dropped - last.dropped, heat: Self.heat(thermal))
      note(measurement, at: now)
      if preset?.effort != before.effort { unsettled = now }
      noteThreads(measurement, at: now)
    } else {
      unsettled = now
    }
    // Two threads stay at work until another encoder takes over, and the measurements so far are theirs.
    if softwareThreads < before.threads, preset?.effort == before.effort {
      preset?.settle(until: now + SlicedThreads.settling)
    }
    let elapsed = max((present.time - last.time).seconds, 0.001)
    let share = (present.busy - last.busy).seconds * Double(before.threads) / elapsed
    reserve = isSoftware ? preset.map { share * (1 - $0.rungs[0].cost / $0.rungs[$0.rung].cost) } ?? 0 : 0
    last = present
    if preset?.effort != before.effort || level?.level != before.level || level?.faster != before.faster
      || softwareThreads != before.threads
    {
      // Before its first change, the preset is that of the configuration.
      let effort = preset.flatMap { $0.changes > 0 ? $0.effort : nil }
      pipeline.govern(
        effort, fallback: preset?.fallback, vaapiQuality: level?.level, faster: level?.faster,
        threads: requestedThreads)
    }
    let told = [
      words(from: before.effort), words(from: before.level), sliced?.outcome == formerOutcome ? nil : threadWords,
    ].compactMap { $0 }
    return told.isEmpty ? nil : told.joined(separator: "; ")
  }

  /// The number of sliced threads that the trial requests; nil if it requests none, or there is no trial.
  private var requestedThreads: Int? { sliced?.isRequested == true ? SlicedThreads.threads : nil }

  /// The number of threads that software uses once it has what is requested.
  private var softwareThreads: Int { requestedThreads ?? threads }

  /// Gives a measurement to the trial of threads.
  private mutating func noteThreads(_ measurement: QualityGovernor.Measurement, at now: Instant) {
    guard isSoftware, let preset else {
      unsettled = now
      _ = sliced?.end(at: now)
      return
    }
    // Other sizes and rates have other encode times.
    if pipeline.restrictions != StreamRestrictions() { unsettled = now }
    // The governor knows of no room without viewers, and in the first seconds after they return. A trial measures one thread
    // for longer than that before it begins.
    let isSettled = now - unsettled >= SlicedThreads.calm && !preset.hasRoom
    _ = sliced?.note(measurement, isSettled: isSettled, budget: budget.processors, at: now) { [budget] in
      budget.claim(at: now)
    }
  }

  /// Gives a measurement to the governor of the encoder at work. The first one of hardware with levels makes its governor.
  private mutating func note(_ measurement: QualityGovernor.Measurement, at now: Instant) {
    let claim = { [budget] in budget.claim(at: now) }
    switch atWork {
    case .software:
      guard requestedThreads != nil else {
        _ = preset?.note(measurement, at: now, claim: claim)
        return
      }
      // The effort does not grow into the time that the second thread saves, and does not shrink to pay for that thread: above
      // the budget the second thread ends instead.
      var measurement = measurement
      measurement.heat = max(measurement.heat, .warm)
      var isOverBudget = false
      _ = preset?.note(measurement, at: now) {
        isOverBudget = claim()
        return false
      }
      if isOverBudget { _ = sliced?.end(.budget, at: now) }
    case .hardware:
      guard let present = levels?.levels else {
        // Other hardware may have taken the place of that which had levels.
        level = nil
        return
      }
      if level?.count != present.count { level = LevelGovernor(present) }
      _ = level?.note(measurement, at: present.present, now: now, claim: claim)
    case .camera: break
    }
  }

  /// The state for the control API; nil if the encoder at work keeps the configured preset or quality level, and while the camera's own
  /// pictures are passed on.
  package var status: StreamStatus.Quality? {
    let limit = pipeline.frameRate.interval.milliseconds * QualityGovernor.limit
    return switch atWork {
    case .software:
      preset.map {
        StreamStatus.Quality(
          x264Preset: Self.name($0.effort), reason: $0.reason.map(Self.name),
          encodeP99Ms: $0.percentile99?.milliseconds, encodeLimitMs: limit, processors: $0.processors,
          processorBudget: budget.processors, threads: sliced?.isKept == true ? SlicedThreads.threads : nil,
          changes: $0.changes)
      }
    case .hardware:
      level.map {
        StreamStatus.Quality(
          vaapiQuality: $0.levelAtWork, vaapiQualityLevels: $0.count, reason: $0.reason.map(Self.name),
          encodeP99Ms: $0.percentile99?.milliseconds, encodeLimitMs: limit, changes: $0.changes)
      }
    case .camera: nil
    }
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

  /// Returns the change of the preset in words; nil if it is that of before.
  private func words(from former: EncodingEffort?) -> String? {
    guard let preset, let former, former != preset.effort else { return nil }
    let verb = isSoftware ? "continues" : "will take over"
    return "\(library) \(verb) with \(Self.name(preset.effort)) instead of \(Self.name(former)): "
      + words(for: preset.reason)
  }

  /// Returns the change of the quality level in words; nil if it is that of before, or the first one.
  private func words(from former: Int?) -> String? {
    guard let level, level.changes > 0, let former, former != level.level else { return nil }
    let verb = isSoftware ? "will take over" : "continues"
    return "VA-API \(verb) with quality level \(level.level) instead of \(former): \(words(for: level.reason))"
  }

  /// The last outcome of a trial of threads in words.
  private var threadWords: String? {
    func milliseconds(_ time: Duration) -> String { Terminal.decimal(time.milliseconds, digits: 1) }
    let one = "\(library) \(isSoftware ? "continues" : "will take over") with one thread"
    return switch sliced?.outcome {
    case .kept(let alone, let two):
      "\(library) continues with two sliced threads: a picture takes \(milliseconds(two)) ms instead of "
        + "\(milliseconds(alone))"
    case .noGain(let alone, let two):
      "\(one): with two a picture took \(milliseconds(two)) ms, and \(milliseconds(alone)) before"
    case .unsettled: "\(one): the preset, the stream or its viewers have changed since two were tried"
    case .budget: "\(one): with two \(words(for: .budget))"
    case nil: nil
    }
  }

  private func words(for reason: QualityGovernor.Reason?) -> String {
    let limit = Terminal.decimal(pipeline.frameRate.interval.milliseconds * QualityGovernor.limit, digits: 1)
    return switch reason {
    case .late: "frames took longer than a frame interval"
    case .slow: "one frame in a hundred took longer than \(limit) ms"
    case .budget: "the program used more than \(Terminal.decimal(budget.processors, digits: 1)) processors"
    case .heat: "the host is hot"
    case .room, nil: "99 of 100 frames are encoded well within \(limit) ms"
    }
  }
}
