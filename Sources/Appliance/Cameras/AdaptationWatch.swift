import Encoding
import Host
import Media
import Platform
import Serving
import Streaming
import Synchronization

/// Keeps the stream within the capacity of the host, on a thread of its own: some firmware takes its time to report a
/// temperature. The thread ends with this value.
struct AdaptationWatch: ~Copyable {
  // In this order: the thread is waited for before the objects that it uses are gone.
  private let thread: NamedThread
  /// The adaptation that runs on the thread.
  let adaptation: StreamAdaptation

  /// Begins to adapt `pipeline`.
  ///
  /// - Parameters:
  ///   - budget: the processors that the program may use.
  ///   - governsPreset: `true` if the preset of software is chosen by measurement.
  ///   - triesThreads: `true` if the number of x264's threads is chosen by measurement as well.
  ///   - levels: the levels of the hardware, if its quality level is chosen by measurement.
  ///   - sysfs: the path where sysfs is mounted.
  /// - Throws: ``SystemFailure`` if the system has no thread left.
  init(
    _ pipeline: Pipeline, _ options: CameraAdaptation, _ budget: ProcessorBudget, governsPreset: Bool,
    triesThreads: Bool, levels: HardwareLevels?, sysfs: String
  ) throws(SystemFailure) {
    let adaptation = try StreamAdaptation(pipeline)
    // After a reload, the encoder at work may have two threads or smaller pictures, which are not configured.
    let configuration = pipeline.originalConfiguration
    let (preset, threads) = (configuration.x264Preset, configuration.threads)
    let thread = try NamedThread("nj-adapt") {
      let effort = EffortControl(
        pipeline, preset: governsPreset ? preset : nil, levels: levels, threads: threads,
        triesThreads: triesThreads, budget)
      adaptation.run(options, effort, sysfs: sysfs, preset: preset)
    }
    self.thread = thread
    self.adaptation = adaptation
  }

  deinit {
    adaptation.interrupt.fire()
  }
}

/// The state of the host, and the restrictions that follow for the stream.
final class StreamAdaptation: Sendable {
  private struct State {
    var reading: ThermalMonitor.Reading?
    var load: Double?
    var changes = 0
    var quality: StreamStatus.Quality?
    var reserve = 0.0
  }

  /// The messages for the main thread.
  let notes = Notes()
  fileprivate let interrupt: Interrupt
  private let state = Mutex(State())
  private let pipeline: Pipeline

  private static let interval = Duration(seconds: 1)
  /// The interval between readings of the temperature. Temperatures change slowly, and reading them costs some drivers
  /// a bus transfer.
  private static let thermalInterval = Duration(seconds: 2)
  /// The interval between searches for zones that were missing or reported nothing.
  private static let zoneInterval = Duration(seconds: 60)

  /// Returns the restrictions for a thermal state.
  static func restrictions(for state: ThermalState) -> StreamRestrictions {
    switch state {
    case .nominal, .fair: StreamRestrictions()
    case .serious: StreamRestrictions(bitrateShare: 0.7)
    case .critical:
      StreamRestrictions(
        encoder: EncoderRestrictions(maximumSize: PictureSize(width: 1280, height: 720)), maximumFrameRate: 25,
        bitrateShare: 0.7)
    }
  }

  /// Creates the adaptation of `pipeline`.
  fileprivate init(_ pipeline: Pipeline) throws(SystemFailure) {
    self.pipeline = pipeline
    interrupt = try Interrupt()
  }

  /// The adaptation's status for the control API.
  var status: StreamStatus.Adaptation {
    let restrictions = pipeline.restrictions
    return state.withLock { state in
      StreamStatus.Adaptation(
        thermalState: state.reading?.state.name, temperature: state.reading?.temperature, zone: state.reading?.zone,
        load: state.load, maximumSize: restrictions.encoder.maximumSize?.description,
        maximumFps: restrictions.maximumFrameRate,
        x264Preset: restrictions.encoder.effort.flatMap(EncoderSelector.preset),
        bitrateShare: restrictions.bitrateShare, changes: state.changes)
    }
  }

  /// The choice of the preset or the quality level; nil if the encoder at work keeps the configured one.
  var quality: StreamStatus.Quality? { state.withLock { $0.quality } }

  /// The number of processors that the encoder would free with the least effort. Other work may count on them: if the process
  /// exceeds its budget, the governor lowers the effort. 0 if the preset is configured.
  var reserve: Double { state.withLock { $0.reserve } }

  private static func ladder(for pipeline: Pipeline, preset: String?) -> [LoadAdaptation.Step] {
    let format = pipeline.sourceFormat
    // Only x264 and x265 have presets: with a hardware encoder these steps would have no effect.
    return LoadAdaptation.ladder(
      effort: pipeline.hasSoftwareEncoder ? preset.flatMap(EncoderSelector.effort) : nil, size: format.size,
      frameRate: format.frameRate)
  }

  private func note(_ text: String, isWarning: Bool) {
    notes.add(text, isWarning ? .warning : .info, event: "adaptation")
  }

  /// Warns of zones that are ignored, unless the zone has no thresholds.
  private func introduce(_ monitor: ThermalMonitor) {
    for (zone, reason) in monitor.passedOver where zone.thresholds != nil {
      note("thermal zone \(zone.type) is not listened to: \(reason)", isWarning: true)
    }
  }

  // MARK: The thread's side

  /// Adapts the pipeline until the thread is interrupted.
  ///
  /// - Parameters:
  ///   - effort: the choice of the effort by measurement; nil if preset and quality level are configured.
  ///   - preset: the preset that x264 or x265 was opened with.
  fileprivate func run(_ options: CameraAdaptation, _ effort: EffortControl?, sysfs: String, preset: String) {
    var effort = effort
    // A governed effort is the least when load reduces anything else.
    let steps = Self.ladder(for: pipeline, preset: effort?.governsPreset == true ? nil : preset)
    var adaptation = options.followsLoad ? LoadAdaptation(steps: steps) : nil
    var monitor: ThermalMonitor?
    switch options.thermal {
    case .off: break
    case .auto: monitor = ThermalMonitor(root: sysfs)
    case .thresholds(let thresholds): monitor = ThermalMonitor(root: sysfs, thresholds: thresholds)
    }
    if let monitor { introduce(monitor) }
    var thermal = ThermalState.nominal
    var nextThermal = Instant.now()
    var nextZones = Instant.now() + Self.zoneInterval
    // Restrictions that failed, and are tried again.
    var unmet: StreamRestrictions?
    var last = (time: Instant.now(), work: pipeline.encoderWork)
    while interrupt.wait(until: .now() + Self.interval) {
      let now = Instant.now()
      var reason: String?
      var isWorse = false
      if now >= nextThermal {
        nextThermal = now + Self.thermalInterval
        if now >= nextZones {
          nextZones = now + Self.zoneInterval
          if let current = monitor, current.zones.isEmpty || !current.passedOver.isEmpty { monitor?.lookAgain() }
          if let restrictions = unmet { unmet = carryOut(restrictions) ? nil : restrictions }
        }
        let reading = monitor?.read(at: now)
        state.withLock { $0.reading = reading }
        if let reading, reading.state != thermal {
          let words = "\(reading.zone) has \(Terminal.decimal(reading.temperature, digits: 0)) °C"
          reason = reading.state > thermal ? "the host is hot: \(words)" : "the host has cooled: \(words)"
          isWorse = reading.state > thermal
          thermal = reading.state
        }
      }
      let work = pipeline.encoderWork
      let isAtWork = work.frames > last.work.frames
      let load = (work.busy - last.work.busy).seconds / (now - last.time).seconds
      last = (now, work)
      let change = effort?.measure(thermal, at: now)
      let (quality, reserve) = (effort?.status, effort?.reserve ?? 0)
      state.withLock {
        $0.load = isAtWork ? load : nil
        ($0.quality, $0.reserve) = (quality, reserve)
      }
      if let change { notes.add(change, .info, event: "quality") }
      if isAtWork, let level = adaptation?.level,
        adaptation?.note(load: load, isLeast: effort?.isLeast ?? true, at: now) == true
      {
        let percent = Int((load * 100).rounded())
        let isDown = (adaptation?.level ?? 0) > level
        isWorse = isWorse || isDown
        let words = isDown ? "encoding takes too long" : "there is room for more"
        reason = (reason.map { "\($0); " } ?? "") + "\(words), \(percent) % of the time"
      }
      guard let reason else { continue }
      let restrictions = adaptation?.restrictions ?? StreamRestrictions()
      let joined = Self.restrictions(for: thermal).joined(with: restrictions)
      unmet = follow(joined, reason, isWorse: isWorse) ? nil : joined
    }
  }

  /// Applies `restrictions`, and tells so. Returns `false` if the restrictions cannot be applied now.
  private func follow(_ restrictions: StreamRestrictions, _ reason: String, isWorse: Bool) -> Bool {
    guard restrictions != pipeline.restrictions else {
      note(reason, isWarning: isWorse)
      return true
    }
    let isDone = carryOut(restrictions)
    note(
      isDone
        ? "\(reason): now \(words(for: restrictions))"
        : "\(reason), but memory is short: nightjar tries again later",
      isWarning: isWorse || !isDone)
    return isDone
  }

  private func carryOut(_ restrictions: StreamRestrictions) -> Bool {
    // Only memory can be missing (`FramePoolError`), and the caller says so.
    guard (try? pipeline.restrict(restrictions)) != nil else { return false }
    state.withLock { $0.changes += 1 }
    return true
  }

  private func words(for restrictions: StreamRestrictions) -> String {
    var words: [String] = []
    if let preset = restrictions.encoder.effort.flatMap(EncoderSelector.preset) {
      words.append("\(pipeline.codec.softwareLibrary)'s \(preset)")
    }
    if let rate = restrictions.maximumFrameRate { words.append("\(Terminal.decimal(rate, digits: 1)) fps at most") }
    if let size = restrictions.encoder.maximumSize { words.append("\(size) at most") }
    if restrictions.bitrateShare < 1 {
      words.append("\(Terminal.decimal(restrictions.bitrateShare * 100, digits: 0)) % of the bitrate")
    }
    return words.isEmpty ? "as configured" : words.joined(separator: ", ")
  }
}
