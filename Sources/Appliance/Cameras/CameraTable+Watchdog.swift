import Host
import Platform
import Streaming

extension CameraTable {
  /// Judges the progress of the pipelines. If the only camera stands still, systemd's watchdog ends the program. One of
  /// several is restarted, from the third standstill on after growing pauses.
  mutating func watch(
    _ progress: [Int: PipelineProgress], _ frameIntervals: [Int: Duration], limit: Duration, at now: Instant,
    _ effects: inout [Effect]
  ) {
    let isAlone = entries.count == 1
    var isAlive = isWaiting(at: now) || entries.contains(where: \.isStreaming)
    var stuck: [Int] = []
    for index in entries.indices {
      guard let progress = progress[entries[index].number], entries[index].isStreaming else { continue }
      let interval = frameIntervals[entries[index].number] ?? .zero
      var watch = entries[index].watch ?? ProgressWatch(limit: limit, frameInterval: interval, at: now)
      watch.judge(progress, at: now)
      entries[index].watch = watch
      tell(watch.stuck, index, isAlone: isAlone, &effects)
      guard watch.stuck != nil else { continue }
      if isAlone { isAlive = false } else { stuck.append(index) }
    }
    for index in stuck { restart(index, at: now, &effects) }
    if isAlive { effects.append(.keepAlive) }
  }

  private mutating func tell(
    _ stage: ProgressWatch.Stage?, _ index: Int, isAlone: Bool, _ effects: inout [Effect]
  ) {
    let told = entries[index].toldStage
    guard stage != told else { return }
    entries[index].toldStage = stage
    let whose = isAlone ? "" : "\(entries[index].name): "
    guard let stage else {
      if let told { effects.append(.tell(nil, "\(whose)\(told.rawValue) continues", .info, event: "recovered")) }
      return
    }
    let consequence =
      isAlone ? "if it does not continue, systemd's watchdog restarts this program" : "nightjar restarts it"
    effects.append(
      .tell(nil, "\(whose)\(stage.rawValue) stands still: \(stage.lack); \(consequence)", .error, event: "stuck"))
  }

  private mutating func restart(_ index: Int, at now: Instant, _ effects: inout [Effect]) {
    guard entries[index].work == nil else { return }
    entries[index].standstills += 1
    release(index, entries[index].configuration.source, &effects)
    // The pipeline may never end, and then leaves threads behind.
    effects.append(.close)
    if entries[index].standstills <= 2 {
      open(index, at: now, &effects)
    } else {
      fail(index, "it stands still again and again", at: now, &effects)
      settle(index)
    }
    // A camera that is already being opened again stays announced.
    effects.append(.publish)
  }
}

extension ProgressWatch.Stage {
  /// The failure of a stage that stands still.
  fileprivate var lack: String {
    switch self {
    case .capture: "no frame has come"
    case .encode: "frames come but are not encoded"
    case .send: "pictures are encoded but not sent"
    }
  }
}
