import Platform

/// Reads a sound card on a thread of its own, because a driver may hang in reading or in closing. Another thread takes
/// the samples, and waits only as long as it wants.
///
/// There are two blocks of memory. While one is with the thread that takes, the card is read into the other one; what
/// comes meanwhile waits in the card's own memory.
package final class CardReader: @unchecked Sendable {
  // Sendable: what is neither constant nor under the monitor belongs to the reading thread.

  /// The card's name, for people.
  let name: String
  /// The device's name.
  let device: SoundDeviceName
  /// The card's format.
  let format: SoundFormat
  /// The time between two interrupts of the card.
  let period: Duration

  /// The news of a card.
  enum Delivery {
    /// Samples of all channels, which stay until the next call of ``next(until:)``. The first of them was recorded at
    /// that time.
    case samples(UnsafeBufferPointer<Int16>, first: Instant, times: SampleTimes)
    /// The card has lost samples.
    case overrun
    /// The card is of no use any more. Nothing follows.
    case failed(SoundError)
  }

  private let monitor = Monitor()
  // Under the monitor.
  private var delivery: Delivery?
  private var isLent = false
  private var answerCount = 0
  private var isStopped = false
  private var hasClosed = false

  private let blocks: [UnsafeMutableBufferPointer<Int16>]

  /// The time after which a card that delivers nothing is given up.
  static let stallLimit = Duration(nanoseconds: 2_000_000_000)
  /// The overruns in a row after which a card is given up.
  package static let overrunLimit = 20
  /// The longest wait within the driver.
  private static let patience = Duration(nanoseconds: 100_000_000)

  /// Starts to read `card`, and closes it in the end. No thread waits for the reading thread.
  ///
  /// - Parameter blockLimit: the most samples of each channel in one delivery.
  /// - Throws: ``SystemFailure`` where the system has no thread left.
  init(_ card: any CardInput, blockLimit: Int, urgency: NamedThread.Urgency) throws(SystemFailure) {
    (name, device, format, period) = (card.name, card.device, card.format, card.period)
    let size = blockLimit * card.format.channels
    blocks = (0..<2).map { _ in
      let block = UnsafeMutableBufferPointer<Int16>.allocate(capacity: size)
      block.initialize(repeating: 0)
      return block
    }
    try NamedThread("nj-card", urgency: urgency) { [self] in run(card) }.detach()
  }

  deinit { for block in blocks { block.deallocate() } }

  // MARK: The thread that takes

  /// The number of answers of the driver so far. It stands still while the driver hangs.
  var answers: Int { monitor.locked { answerCount } }

  /// `true` once the card is closed.
  var isOver: Bool { monitor.locked { hasClosed } }

  /// Waits for the next delivery, and gives the former one's memory back. Returns nil where none comes by `deadline`.
  func next(until deadline: Instant) -> Delivery? {
    monitor.locked {
      if isLent {
        (isLent, delivery) = (false, nil)
        monitor.signal()
      }
      while delivery == nil, monitor.wait(until: deadline) {}
      isLent = delivery != nil
      return delivery
    }
  }

  /// Asks the reading thread to close the card, and does not wait.
  func stop() {
    monitor.locked {
      isStopped = true
      monitor.signal()
    }
  }

  /// Waits until the card is closed; returns `false` where it is not by `deadline`.
  func waitUntilOver(by deadline: Instant) -> Bool {
    monitor.locked {
      while !hasClosed, monitor.wait(until: deadline) {}
      return hasClosed
    }
  }

  // MARK: The reading thread

  private func run(_ card: any CardInput) {
    var (place, overruns, quiet) = (0, 0, Duration.zero)
    var pace = CardPace(rate: format.rate, at: .now())
    do throws(SoundError) {
      while !monitor.locked({ isStopped }) {
        let begin = Instant.now()
        // A device that does not wait fills all the room that it gets.
        let room = pace.isByClock ? min(periodSamples, blocks[place].count) : blocks[place].count
        let memory = UnsafeMutableBufferPointer(rebasing: blocks[place][..<room])
        switch try card.read(into: memory, patience: Self.patience) {
        case .samples(let count, let first, let times) where count > 0:
          (overruns, quiet) = (0, .zero)
          let samples = UnsafeBufferPointer(rebasing: blocks[place][..<(count * format.channels)])
          place = 1 - place
          if let turn = pace.note(count, at: .now()) {
            rest(until: turn.upperBound)
            hand(.samples(samples, first: turn.lowerBound, times: .clock))
          } else {
            hand(.samples(samples, first: first, times: times))
          }
        case .overrun:
          (overruns, quiet) = (overruns + 1, .zero)
          guard overruns <= Self.overrunLimit else { throw .overruns(device.text, count: overruns) }
          hand(.overrun)
        case .samples, .nothing:
          monitor.locked { answerCount += 1 }
          // A driver may answer at once that there is nothing.
          rest(until: begin + restTime)
          // Where the whole program was stopped meanwhile, the driver is not to blame.
          quiet = quiet + min(Instant.now() - begin, Self.patience)
          guard quiet < Self.stallLimit else {
            throw .stalled(device.text, milliseconds: Int(quiet.milliseconds))
          }
        }
      }
    } catch {
      hand(.failed(error))
    }
    card.close()
    monitor.locked {
      hasClosed = true
      monitor.signal()
    }
  }

  /// The samples of all channels in a period.
  private var periodSamples: Int {
    max(1, Int(period.seconds * Double(format.rate))) * format.channels
  }

  /// The least time from a reading without samples to the next one.
  private var restTime: Duration { Duration(nanoseconds: max(period.nanoseconds / 2, 1_000_000)) }

  /// Sleeps until `time`, or until ``stop()``.
  private func rest(until time: Instant) {
    monitor.locked { while !isStopped, monitor.wait(until: time) {} }
  }

  /// Hands a delivery over once the former one is taken, unless the reader was stopped.
  private func hand(_ new: Delivery) {
    monitor.locked {
      answerCount += 1
      while delivery != nil, !isStopped { monitor.wait() }
      guard !isStopped else { return }
      delivery = new
      monitor.signal()
    }
  }
}
