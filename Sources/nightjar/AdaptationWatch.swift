import Control
import Encoding
import Media
import Streaming
import Synchronization
import SystemService
import ThermalSensing
import Threading

/// Keeps the stream within what the machine can do, on a thread of its own: some firmware takes its time to tell a
/// temperature. The end of this is the end of the thread.
struct AdaptationWatch: ~Copyable {
  // In this order: the thread is waited for before what it uses is gone.
  private let thread: NamedThread
  /// What it does.
  let adaptation: StreamAdaptation

  /// Begins to look after `pipeline`.
  ///
  /// - Parameter sysfs: where sysfs is mounted.
  /// - Throws: ``SystemFailure`` where the system has no thread left.
  init(_ pipeline: Pipeline, _ options: AdaptationOptions, sysfs: String) throws(SystemFailure) {
    let adaptation = try StreamAdaptation(pipeline)
    // Before the encode thread has it.
    let preset = pipeline.encoder.configuration.x264Preset
    let thread = try NamedThread("nj-adapt") { adaptation.run(options, sysfs: sysfs, preset: preset) }
    self.thread = thread
    self.adaptation = adaptation
  }

  deinit {
    adaptation.interrupt.fire()
  }
}

/// What the machine can do, and what the stream is to do with less of for it.
final class StreamAdaptation: Sendable {
  private struct State {
    var reading: ThermalMonitor.Reading?
    var load: Double?
    var changes = 0
  }

  /// What there is to tell.
  let notes = Notes()
  fileprivate let interrupt: Interrupt
  private let state = Mutex(State())
  private let pipeline: Pipeline

  private static let interval = MediaTime(seconds: 1)
  /// Temperatures change slowly, and reading them costs some drivers a bus transfer.
  private static let thermalInterval = MediaTime(seconds: 2)
  /// How often it is looked for zones that were not there, or told nothing.
  private static let zoneInterval = MediaTime(seconds: 60)

  /// What a hot machine does with less of.
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

  /// What there is to do for `pipeline`.
  fileprivate init(_ pipeline: Pipeline) throws(SystemFailure) {
    self.pipeline = pipeline
    interrupt = try Interrupt()
  }

  /// As the control socket tells it.
  var status: StreamStatus.Adaptation {
    let restrictions = pipeline.restrictions
    return state.withLock { state in
      StreamStatus.Adaptation(
        thermalState: state.reading?.state.name, temperature: state.reading?.temperature, zone: state.reading?.zone,
        load: state.load, maximumSize: restrictions.encoder.maximumSize?.description,
        maximumFps: restrictions.maximumFrameRate, x264Preset: restrictions.encoder.x264Preset,
        bitrateShare: restrictions.bitrateShare, changes: state.changes)
    }
  }

  private static func ladder(for pipeline: Pipeline, preset: String) -> [LoadAdaptation.Step] {
    let format = pipeline.sourceFormat
    // Presets are x264's: while hardware encodes they would be steps that bring nothing.
    let isSoftware = EncoderSelector.softwareName.map { pipeline.statistics.encoderName.hasPrefix($0) } ?? false
    return LoadAdaptation.ladder(
      preset: isSoftware ? preset : nil, of: EncoderSelector.x264Presets, size: format.size,
      frameRate: format.frameRate)
  }

  private func note(_ text: String, isWarning: Bool) {
    notes.add(text, isWarning ? .warning : .info, event: "adaptation")
  }

  /// Says which zones are not listened to; those without anything to say are no news.
  private func introduce(_ monitor: ThermalMonitor) {
    for (zone, reason) in monitor.passedOver where zone.thresholds != nil {
      note("thermal zone \(zone.type) is not listened to: \(reason)", isWarning: true)
    }
  }

  // MARK: The thread's side

  /// Looks after the pipeline until it is interrupted.
  ///
  /// - Parameter preset: x264's, as it was asked for.
  fileprivate func run(_ options: AdaptationOptions, sysfs: String, preset: String) {
    var adaptation = options.followsLoad ? LoadAdaptation(steps: Self.ladder(for: pipeline, preset: preset)) : nil
    var monitor: ThermalMonitor?
    switch options.thermal {
    case .off: break
    case .auto: monitor = ThermalMonitor(root: sysfs)
    case .thresholds(let thresholds): monitor = ThermalMonitor(root: sysfs, thresholds: thresholds)
    }
    if let monitor { introduce(monitor) }
    var thermal = ThermalState.nominal
    var nextThermal = MediaTime.now()
    var nextZones = MediaTime.now() + Self.zoneInterval
    // What could not be done, and is tried again.
    var unmet: StreamRestrictions?
    var last = (time: MediaTime.now(), work: pipeline.encoderWork)
    while interrupt.wait(until: .now() + Self.interval) {
      let now = MediaTime.now()
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
          reason = reading.state > thermal ? "the machine is hot: \(words)" : "the machine has cooled: \(words)"
          isWorse = reading.state > thermal
          thermal = reading.state
        }
      }
      let work = pipeline.encoderWork
      let isAtWork = work.frames > last.work.frames
      let load = (work.busy - last.work.busy).seconds / (now - last.time).seconds
      last = (now, work)
      state.withLock { $0.load = isAtWork ? load : nil }
      if isAtWork, let level = adaptation?.level, adaptation?.note(load: load, at: now) == true {
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

  /// Does what follows, and says so; false where it cannot be done now.
  private func follow(_ restrictions: StreamRestrictions, _ reason: String, isWorse: Bool) -> Bool {
    guard restrictions != pipeline.restrictions else {
      note(reason, isWarning: isWorse)
      return true
    }
    let isDone = carryOut(restrictions)
    note(
      isDone
        ? "\(reason): now \(Self.words(for: restrictions))" : "\(reason), but memory is short: it is tried again later",
      isWarning: isWorse || !isDone)
    return isDone
  }

  private func carryOut(_ restrictions: StreamRestrictions) -> Bool {
    guard (try? pipeline.restrict(restrictions)) != nil else { return false }
    state.withLock { $0.changes += 1 }
    return true
  }

  private static func words(for restrictions: StreamRestrictions) -> String {
    var words: [String] = []
    if let preset = restrictions.encoder.x264Preset { words.append("x264's \(preset)") }
    if let rate = restrictions.maximumFrameRate { words.append("\(Terminal.decimal(rate, digits: 1)) fps at most") }
    if let size = restrictions.encoder.maximumSize { words.append("\(size) at most") }
    if restrictions.bitrateShare < 1 {
      words.append("\(Terminal.decimal(restrictions.bitrateShare * 100, digits: 0)) % of the bitrate")
    }
    return words.isEmpty ? "as asked for" : words.joined(separator: ", ")
  }
}
