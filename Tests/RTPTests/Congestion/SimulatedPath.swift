import Platform
import RTP
import TestSupport

/// A stream of pictures to one viewer over a link with a queue, in steps of a millisecond. The encoder follows the
/// estimate as the program's does: packets leave at 1.5 times the estimate, and the viewer's reports come back.
struct SimulatedPath {
  /// The way in which the viewer tells what it has received.
  enum Reports {
    /// After so many received bytes, as ffmpeg does.
    case bytes(Int)
    /// At this interval in seconds.
    case interval(Double)
    /// Acknowledgements of TCP, which sends lost bytes again.
    case acknowledgements
  }

  /// Bits a second of the link at a time in seconds.
  var capacity: (Double) -> Double = { _ in 3_000_000 }
  /// The bytes that the queue holds.
  var queueBytes = 250_000
  /// The delay of each direction in seconds.
  var delay = 0.025
  /// The share of packets that are lost by chance.
  var loss = 0.0
  /// The share of reports that are lost on their way back.
  var reportLoss = 0.0
  /// The most by which a packet or a report is late by chance, in seconds. None overtakes another.
  var jitter = 0.0
  var reports = Reports.bytes(5600)
  /// The bitrate of the stream, overhead included.
  var wanted = 3_000_000.0
  var framesPerSecond = 30.0
  /// The time between key frames in seconds.
  var keyFrameInterval = 2.0
  /// The size of a key frame as a multiple of the others.
  var keyFrameFactor = 6.0
  /// The part of the bitrate that the picture needs, at a time in seconds.
  var demand: (Double) -> Double = { _ in 1 }
  /// The smallest bitrate of the encoder.
  var floor = 150_000.0

  /// The events of a run, a value each millisecond.
  struct Outcome {
    var target: [Double] = []
    var capacity: [Double] = []
    /// The queueing delay on the link in seconds.
    var queue: [Double] = []
    /// The delay of the packets at the sender in seconds, before they leave.
    var pacing: [Double] = []
    /// The bits that arrived.
    var arrived: [Double] = []
    var lost = 0
    var sent = 0
    /// Pictures that were not sent because of the queue.
    var skipped = 0

    private func range(_ seconds: Range<Double>) -> Range<Int> {
      Int(seconds.lowerBound * 1000)..<min(target.count, Int(seconds.upperBound * 1000))
    }

    /// The part of the capacity that was used.
    func use(_ seconds: Range<Double>) -> Double {
      let range = range(seconds)
      return arrived[range].reduce(0, +) / (capacity[range].reduce(0, +) / 1000)
    }

    func mean(_ seconds: Range<Double>) -> Double {
      let range = range(seconds)
      return target[range].reduce(0, +) / Double(range.count)
    }

    /// The queueing delay in seconds that `share` of the time does not exceed.
    func queue(_ share: Double, _ seconds: Range<Double>) -> Double {
      let sorted = queue[range(seconds)].sorted()
      return sorted[min(sorted.count - 1, Int(share * Double(sorted.count)))]
    }

    func pacing(_ share: Double, _ seconds: Range<Double>) -> Double {
      let sorted = pacing[range(seconds)].sorted()
      return sorted[min(sorted.count - 1, Int(share * Double(sorted.count)))]
    }

    /// The time in seconds after `begin` at which the target satisfies `condition`; nil for never.
    func time(from begin: Double, until condition: (Double) -> Bool) -> Double? {
      target[Int(begin * 1000)...].firstIndex(where: condition).map { Double($0) / 1000 - begin }
    }
  }

  private static let packetBytes = 1240

  private struct Packet {
    var number: Int
    var bytes: Int
    var time: Double
  }

  /// Runs the stream for `seconds`.
  func run(seconds: Double, seed: UInt64 = 1) -> Outcome {
    var outcome = Outcome()
    var random = SplitMix64(seed: seed)
    var estimate = BandwidthEstimate(wanted: wanted)
    var log = SentLog()
    var pacer: [Packet] = []
    var budget = 0.0
    var link: [Packet] = []
    var linkBytes = 0
    var linkBudget = 0.0
    var flying: [(due: Double, packet: Packet)] = []
    var answers: [(due: Double, highest: Int, received: Int, bytes: Int)] = []
    var (number, received, receivedBytes, highest) = (0, 0, 0, 0)
    var lacksKeyFrame = false
    // What had left at the last report.
    var heard = 0
    var (arrivalDue, answerDue) = (0.0, 0.0)
    var (sinceReport, nextReport, nextFrame, nextKeyFrame) = (0, 0.0, 0.0, 0.0)
    // TCP: what arrived in order, and the numbers that are missing in front of others.
    var missing: [(due: Double, packet: Packet)] = []
    var early = Set<Int>()
    let isOrdered = if case .acknowledgements = reports { true } else { false }
    for step in 0..<Int(seconds * 1000) {
      let time = Double(step) / 1000
      let now = Instant(seconds: 1000 + time)
      estimate.expire(sent: log.bytes - heard, at: now)
      if !isOrdered { estimate.takeSilence(after: log, at: now) }
      let target = min(
        wanted, estimate.isSilent(sent: log.bytes - heard, at: now) ? wanted : estimate.target(at: now) ?? wanted)
      let rate = max(floor, target)
      if time >= nextFrame {
        nextFrame += 1 / framesPerSecond
        let isPaused = estimate.isPaused(at: now)
        let isKey = time >= nextKeyFrame || lacksKeyFrame && !isPaused
        if isKey { nextKeyFrame = time + keyFrameInterval }
        lacksKeyFrame = isPaused
        let frames = keyFrameInterval * framesPerSecond
        let usual = min(rate, demand(time) * wanted) / 8 / framesPerSecond * frames / (frames - 1 + keyFrameFactor)
        var bytes = Int(usual * (isKey ? keyFrameFactor : 1) * Double.random(in: 0.7...1.3, using: &random))
        if isPaused { outcome.skipped += 1 }
        while bytes > 0, !isPaused {
          number += 1
          pacer.append(Packet(number: number, bytes: min(bytes, Self.packetBytes), time: time))
          bytes -= Self.packetBytes
        }
      }
      // Pacing at 1.5 times the estimate; not on an open path.
      budget = min(budget + (estimate.limit ?? 1e9) * 1.5 / 8000, 3000)
      while let first = pacer.first, budget >= 0 {
        budget -= Double(first.bytes)
        pacer.removeFirst()
        var packet = first
        packet.time = time
        outcome.sent += 1
        log.note(position: Int64(packet.number), packets: 1, bytes: packet.bytes, at: now)
        if Double.random(in: 0..<1, using: &random) < loss || linkBytes + packet.bytes > queueBytes {
          outcome.lost += 1
          if isOrdered { missing.append((time + 2 * delay + Double(linkBytes) * 8 / capacity(time), packet)) }
        } else {
          link.append(packet)
          linkBytes += packet.bytes
        }
      }
      // TCP sends again what was lost.
      while let first = missing.first, first.due <= time, linkBytes + first.packet.bytes <= queueBytes {
        missing.removeFirst()
        link.append(first.packet)
        linkBytes += first.packet.bytes
      }
      let present = capacity(time)
      outcome.target.append(rate)
      outcome.capacity.append(present)
      outcome.queue.append(Double(linkBytes) * 8 / present)
      outcome.pacing.append(pacer.first.map { time - $0.time } ?? 0)
      linkBudget = link.isEmpty ? 0 : linkBudget + present / 8000
      while let first = link.first, linkBudget >= Double(first.bytes) {
        linkBudget -= Double(first.bytes)
        linkBytes -= first.bytes
        arrivalDue = max(arrivalDue, time + delay + (jitter > 0 ? Double.random(in: 0..<jitter, using: &random) : 0))
        flying.append((arrivalDue, link.removeFirst()))
      }
      var bits = 0.0
      while let first = flying.first, first.due <= time {
        let packet = flying.removeFirst().packet
        bits += Double(packet.bytes * 8)
        received += 1
        sinceReport += packet.bytes
        receivedBytes += packet.bytes
        if isOrdered {
          early.insert(packet.number)
          while early.remove(highest + 1) != nil { highest += 1 }
        } else {
          highest = max(highest, packet.number)
        }
      }
      outcome.arrived.append(bits)
      var isDue = false
      switch reports {
      case .bytes(let bytes): isDue = sinceReport >= bytes
      case .interval(let interval):
        isDue = time >= nextReport && highest > 0
        if isDue { nextReport = time + interval * Double.random(in: 0.5..<1.5, using: &random) }
      case .acknowledgements: isDue = bits > 0
      }
      if isDue {
        sinceReport = 0
        answerDue = max(answerDue, time + delay + (jitter > 0 ? Double.random(in: 0..<jitter, using: &random) : 0))
        if reportLoss == 0 || Double.random(in: 0..<1, using: &random) >= reportLoss {
          answers.append((answerDue, highest, received, receivedBytes))
        }
      }
      while let first = answers.first, first.due <= time {
        answers.removeFirst()
        guard let place = log.place(of: Int64(first.highest), at: now) else { continue }
        heard = log.bytes
        let lost = isOrdered ? 0 : place.packets - first.received
        estimate.take(
          ReceptionSample(
            delivered: isOrdered ? first.bytes : place.arrivedBytes(lost: lost), reached: place.bytes, age: place.age,
            waiting: place.waiting,
            outstanding: log.bytes - place.bytes, expected: place.packets, lost: lost,
            // A receiver's mean of the differences between two delays.
            jitter: Duration(seconds: jitter / 3)), at: now)
      }
    }
    return outcome
  }
}
