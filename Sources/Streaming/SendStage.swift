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
  private let requests: EncoderRequests
  private let frameInterval: MediaTime
  private var nextKeyFrameRequest = MediaTime.zero
  /// Bits a second that the encoder was last asked for.
  let bitrate: Atomic<Int>
  /// The parameter sets of the stream, replaced whenever a picture brings others, with a count of the changes.
  let currentParameterSets: Mutex<(sets: ParameterSets, changes: Int)>

  /// How often a transport stream without pictures repeats its clock: ISO/IEC 13818-1 allows 100 ms.
  static let keepAliveInterval = MediaTime(nanoseconds: 80_000_000)

  /// The longest that sending one picture may take to one destination, as much as rate control may put into one.
  static let budgetLimit = MediaTime(nanoseconds: 500_000_000)
  /// How often packets lost on a way out that is too slow may cost a key frame, which does not make it faster.
  static let keyFrameRequestInterval = MediaTime(nanoseconds: 500_000_000)

  init(
    pictures: CodedPictureQueue, outputs: [RTPOutput], encoder: EncoderConfiguration, parameterSets: ParameterSets,
    requests: EncoderRequests, statistics: StatisticsRecorder
  ) {
    frameInterval = encoder.frameRate.interval
    bitrate = Atomic(encoder.bitrate)
    self.requests = requests
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
    let budget = budget(for: unit.payloadBytes)
    var sent = 0
    var isCongested = false
    do throws(ParameterSetError) {
      try parameterSetCache.complete(unit) { completed in
        noteParameterSets()
        (sent, isCongested) = sendToAll(completed, within: budget)
      }
    } catch {
      // More NAL units, or longer sets, than the cache holds: no encoder of ours makes them, and a receiver may cope.
      (sent, isCongested) = sendToAll(unit, within: budget)
    }
    let end = MediaTime.now()
    if isCongested { requestKeyFrame(at: end) }
    let captured = unit.captured
    let queued = begin - picture.encoded
    statistics.send.withLock {
      guard sent > 0 else {
        $0.unsent += 1
        return
      }
      $0.frames += 1
      $0.queue.record(queued)
      $0.latency.record(end - begin)
      $0.total.record(end - captured)
      $0.recent.record(end - captured)
      if $0.firstPacket == nil { $0.firstPacket = end }
    }
  }

  private func sendToAll(
    _ unit: borrowing AccessUnit, within budget: MediaTime
  ) -> (packets: Int, isCongested: Bool) {
    var packets = 0
    var isCongested = false
    for output in outputs {
      let outcome = output.send(unit, within: budget, statistics)
      packets += outcome.packets
      if outcome.isCongested { isCongested = true }
    }
    return (packets, isCongested)
  }

  /// How long a picture of so many bytes may take: as long as it does at the stream's own bitrate, so that a
  /// destination that is slower than the stream never holds up the others for longer than the stream lasts.
  private func budget(for bytes: Int) -> MediaTime {
    let bitrate = max(1, bitrate.load(ordering: .relaxed))
    let share = MediaTime(nanoseconds: Int64(bytes) * 8_000_000_000 / Int64(bitrate))
    return min(Self.budgetLimit, max(frameInterval, share))
  }

  /// Nothing after the hole can be decoded without it.
  private func requestKeyFrame(at now: MediaTime) {
    guard now >= nextKeyFrameRequest else { return }
    nextKeyFrameRequest = now + Self.keyFrameRequestInterval
    requests.setKeyFrame()
  }

  /// A stream whose encoder was replaced brings new parameter sets.
  private func noteParameterSets() {
    guard parameterSetCache.changes != notedChanges else { return }
    notedChanges = parameterSetCache.changes
    guard let sets = parameterSetCache.parameterSets else { return }
    currentParameterSets.withLock { $0 = (sets, $0.changes + 1) }
  }
}
