import Media
import RTP
import Synchronization

/// Packetizes coded pictures and sends them to every destination. Runs on its own thread.
final class SendStage: @unchecked Sendable {
  // Sendable: everything mutable is used by the send thread alone once that runs.
  private let pictures: CodedPictureQueue
  private let outputs: [RTPOutput]
  private let statistics: StatisticsRecorder
  private var parameterSets: ParameterSets
  /// The parameter sets of the stream, replaced whenever a key frame brings others, with a count of the changes.
  let currentParameterSets: Mutex<(sets: ParameterSets, changes: Int)>

  /// How often a transport stream without pictures repeats its clock: ISO/IEC 13818-1 allows 100 ms.
  static let keepAliveInterval = MediaTime(nanoseconds: 80_000_000)

  init(
    pictures: CodedPictureQueue, outputs: [RTPOutput], parameterSets: ParameterSets, statistics: StatisticsRecorder
  ) {
    self.pictures = pictures
    self.outputs = outputs
    self.parameterSets = parameterSets
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

  private func send(_ picture: CodedPicture) {
    let begin = MediaTime.now()
    let unit = picture.accessUnit
    if unit.isKeyFrame { noteParameterSets(unit) }
    var sent = 0
    for output in outputs { sent += output.send(unit, statistics) }
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

  /// Key frames carry the parameter sets; a stream whose encoder was replaced brings new ones.
  private func noteParameterSets(_ unit: borrowing AccessUnit) {
    var sequence: NALUnit?
    var picture: NALUnit?
    for nalUnit in unit.nalUnits {
      if nalUnit.type == .sequenceParameterSet { sequence = nalUnit }
      if nalUnit.type == .pictureParameterSet { picture = nalUnit }
    }
    guard let sequence, let picture,
      !sequence.bytes.elementsEqual(parameterSets.sequence) || !picture.bytes.elementsEqual(parameterSets.picture),
      let sets = ParameterSets(sequence: Array(sequence.bytes), picture: Array(picture.bytes))
    else { return }
    parameterSets = sets
    currentParameterSets.withLock { $0 = (sets, $0.changes + 1) }
  }
}
