import Media
import RTP
import Synchronization

/// Packetizes coded pictures and sends them to every destination. Runs on its own thread.
final class SendStage: @unchecked Sendable {
  // Sendable: everything mutable is used by the send thread alone once that runs.
  private let pictures: CodedPictureQueue
  private let outputs: [RTPOutput]
  private let statistics: StatisticsRecorder
  private let parameterSetCache = ParameterSetCache()
  /// How often the cache had changed when ``currentParameterSets`` was last replaced.
  private var notedChanges: Int
  private let repeatsParameterSets = Atomic(false)
  /// The parameter sets of the stream, replaced whenever a picture brings others, with a count of the changes.
  let currentParameterSets: Mutex<(sets: ParameterSets, changes: Int)>

  /// How often a transport stream without pictures repeats its clock: ISO/IEC 13818-1 allows 100 ms.
  static let keepAliveInterval = MediaTime(nanoseconds: 80_000_000)

  init(
    pictures: CodedPictureQueue, outputs: [RTPOutput], parameterSets: ParameterSets, statistics: StatisticsRecorder
  ) {
    self.pictures = pictures
    self.outputs = outputs
    parameterSetCache.update(parameterSets)
    notedChanges = parameterSetCache.changes
    self.statistics = statistics
    currentParameterSets = Mutex((parameterSets, 0))
  }

  /// Runs until the queue is closed and empty.
  func run() {
    while true {
      switch pictures.next(until: .now() + Self.keepAliveInterval) {
      case .picture(let picture):
        send(picture)
        pictures.recycle(picture)
      case .timeout:
        for output in outputs { output.keepAlive(statistics) }
      case .closed:
        return
      }
    }
  }

  /// Puts the parameter sets before the next picture, whatever kind it is: for a receiver that has joined without
  /// them. Any thread, any number of times.
  func repeatParameterSets() {
    repeatsParameterSets.store(true, ordering: .relaxed)
  }

  private func send(_ picture: CodedPicture) {
    let begin = MediaTime.now()
    let unit = picture.accessUnit
    if repeatsParameterSets.exchange(false, ordering: .relaxed) { parameterSetCache.invalidate() }
    var sent = 0
    do throws(ParameterSetError) {
      try parameterSetCache.complete(unit) { completed in
        noteParameterSets()
        for output in outputs { sent += output.send(completed, statistics) }
      }
    } catch {
      // More NAL units, or longer sets, than the cache holds: no encoder of ours makes them, and a receiver may cope.
      for output in outputs { sent += output.send(unit, statistics) }
    }
    let end = MediaTime.now()
    let captured = unit.captured
    let queued = begin - picture.encoded
    statistics.send.withLock {
      $0.frames += 1
      $0.queue.record(queued)
      $0.latency.record(end - begin)
      $0.total.record(end - captured)
      $0.recent.record(end - captured)
      if $0.firstPacket == nil, sent > 0 { $0.firstPacket = end }
    }
  }

  /// A stream whose encoder was replaced brings new parameter sets.
  private func noteParameterSets() {
    guard parameterSetCache.changes != notedChanges else { return }
    notedChanges = parameterSetCache.changes
    guard let sets = parameterSetCache.parameterSets else { return }
    currentParameterSets.withLock { $0 = (sets, $0.changes + 1) }
  }
}
