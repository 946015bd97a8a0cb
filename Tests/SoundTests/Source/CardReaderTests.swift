import Foundation
import Platform
import Sound
import Synchronization
import Testing

/// Cards that lose samples, deliver nothing, or have drivers that hang, behind the microphone that reads them.
@Suite struct CardReaderTests {
  /// A card without a driver. It delivers 10 ms of a constant sample at a time, unless told otherwise.
  private final class ScriptedCard: CardInput {
    enum Behaviour: Sendable {
      case delivers, doesNotWait, hasNothingAtOnce, losesForEver, isQuiet, hangs, isUnplugged
    }

    let name = "scripted"
    let device: SoundDeviceName
    let format = SoundFormat(rate: 48_000, channels: 1)
    let period = Duration.milliseconds(10)
    let behaviour = Mutex(Behaviour.delivers)
    let hangsInClosing = Atomic(false)
    let reads = Atomic<Int>(0)
    /// The time of the last reading before the clock paces them, and of each one after it.
    let paced = Mutex<[Instant]>([])
    /// `true` once a reading hangs.
    let isHanging = Atomic(false)
    let isClosed = Atomic(false)
    var hasClosed: Bool { isClosed.load(ordering: .acquiring) }
    /// Ends a hang.
    let repaired: Interrupt
    private let pace: Interrupt

    init() throws {
      device = try SoundDeviceName("hw:CARD=Scripted")
      repaired = try Interrupt()
      pace = try Interrupt()
    }

    func behave(_ new: Behaviour) { behaviour.withLock { $0 = new } }

    func read(
      into memory: UnsafeMutableBufferPointer<Int16>, patience: Duration
    ) throws(SoundError) -> PCMCapture.Result {
      reads.add(1, ordering: .relaxed)
      switch behaviour.withLock({ $0 }) {
      case .delivers: return deliver(1000, into: memory)
      case .doesNotWait:
        // A reading that the clock paces is for a period, and another one for more.
        paced.withLock { paced in
          if memory.count > 480 { paced.removeAll() }
          paced.append(.now())
        }
        memory.update(repeating: 1000)
        return .samples(memory.count, first: .now(), .driver)
      case .hasNothingAtOnce: return .nothing
      case .losesForEver: return .overrun
      case .isQuiet:
        _ = pace.wait(until: .now() + patience)
        return .nothing
      case .hangs:
        isHanging.store(true, ordering: .releasing)
        _ = repaired.wait(until: .now() + Duration(seconds: 600))
        return .nothing
      case .isUnplugged: throw .disconnected(device.text)
      }
    }

    private func deliver(_ sample: Int16, into memory: UnsafeMutableBufferPointer<Int16>) -> PCMCapture.Result {
      let begin = Instant.now()
      _ = pace.wait(until: begin + period)
      UnsafeMutableBufferPointer(rebasing: memory[..<480]).update(repeating: sample)
      return .samples(480, first: begin, .driver)
    }

    func close() {
      if hangsInClosing.load(ordering: .relaxed) { _ = repaired.wait(until: .now() + Duration(seconds: 600)) }
      isClosed.store(true, ordering: .releasing)
    }
  }

  /// A microphone of scripted cards, the next of which is opened where the former one is lost.
  private final class Bench: @unchecked Sendable {
    // Sendable: the test's thread fills; the list is under the mutex.
    let cards = Mutex<[ScriptedCard]>([])
    let timeline = SoundTimeline(channels: 1, start: .now())
    private(set) var microphone: Microphone!
    private(set) var events: [SoundEvent] = []

    init() throws {
      let name = try SoundDeviceName("hw:CARD=Scripted")
      microphone = try Microphone(channels: 1) { _ in
        .device(name)
      } opening: { [weak self] _ throws(SoundError) in
        guard let self, let card = try? ScriptedCard() else { throw .noDevice("hw:CARD=Scripted") }
        self.cards.withLock { $0.append(card) }
        return card
      }
    }

    var card: ScriptedCard? { cards.withLock { $0.last } }
    var cardCount: Int { cards.withLock { $0.count } }
    var losses: [SoundError] { events.compactMap { if case .lost(let error) = $0 { error } else { nil } } }

    /// Fills the timeline until `condition` holds. Returns `false` after a minute, and asserts that the line goes on.
    func fill(until condition: () -> Bool) -> Bool {
      let deadline = Instant.now() + Duration(seconds: 60)
      while .now() < deadline {
        events += microphone.takeEvents()
        if condition() { return true }
        let before = Instant.now()
        #expect(microphone.fill(timeline, patience: .milliseconds(100)))
        // A second at most, ten times what the microphone allows itself.
        #expect(before - timeline.end < Duration(seconds: 1))
      }
      return condition()
    }
  }

  @Test func `overruns are counted, and the samples after them are heard`() throws {
    let bench = try Bench()
    defer { bench.microphone.stop() }
    #expect(bench.fill { bench.microphone.condition.isPresent })
    bench.card?.behave(.losesForEver)
    #expect(bench.fill { bench.microphone.condition.overruns > 3 })
    bench.card?.behave(.delivers)
    let silent = bench.microphone.condition.silentSamples
    var heard = [Int16](repeating: 0, count: 960)
    #expect(
      bench.fill {
        while heard.withUnsafeMutableBufferPointer({ bench.timeline.take($0) }) != nil {}
        return heard.contains(1000)
      })
    #expect(bench.microphone.condition.silentSamples >= silent)
  }

  @Test func `a card that loses samples for ever is given up after a limit, closed, and searched for again`() throws {
    let bench = try Bench()
    defer { bench.microphone.stop() }
    #expect(bench.fill { bench.microphone.condition.isPresent })
    let first = try #require(bench.card)
    first.behave(.losesForEver)
    #expect(bench.fill { bench.microphone.condition.losses == 1 })
    #expect(bench.microphone.condition.overruns == CardReader.overrunLimit)
    #expect(bench.losses == [.overruns("hw:CARD=Scripted", count: CardReader.overrunLimit + 1)])
    #expect(bench.fill { bench.cardCount > 1 && bench.microphone.condition.isPresent })
    // A thread without a processor may take longer for it than the search waits.
    #expect(bench.fill { first.hasClosed })
  }

  @Test func `a device that does not wait for its samples is read by the clock, told once, and counted`() throws {
    let bench = try Bench()
    defer { bench.microphone.stop() }
    #expect(bench.fill { bench.microphone.condition.isPresent })
    let card = try #require(bench.card)
    card.behave(.doesNotWait)
    #expect(bench.fill { bench.microphone.condition.times == .clock })
    // The samples are heard, one after the other. Where the machine has paused, the next hundred blocks are looked at.
    var isHeard = false
    for _ in 0..<5 where !isHeard {
      let begin = Instant.now()
      let blocks = bench.microphone.condition.unstampedBlocks
      let silent = bench.microphone.condition.silentSamples
      #expect(bench.fill { bench.microphone.condition.unstampedBlocks >= blocks + 100 })
      let silence = Double(bench.microphone.condition.silentSamples - silent) / 48_000
      isHeard = silence < (Instant.now() - begin).seconds / 2 + 0.1
    }
    #expect(isHeard)
    // Each reading after the end of the one before, 10 ms of samples later: a pause of the machine only leaves some out.
    let readings = card.paced.withLock { $0 }
    #expect(readings.count > 100)
    let early = readings.indices.filter { readings[$0] < readings[0] + .milliseconds(10) * Int64($0 - 1) }
    #expect(early.isEmpty, "\(readings.map { ($0 - readings[0]).milliseconds })")
    let times = bench.events.map(\.description)
    let words = "the microphone scripted does not wait for its samples, so nightjar takes 48000 of them a second"
    #expect(times.count { $0.hasPrefix(words) } == 1, "\(times)")
    #expect(bench.microphone.condition.losses == 0 && bench.microphone.condition.drift == 0)
  }

  @Test func `a driver that has nothing, and says so at once, is not asked without a pause`() throws {
    let bench = try Bench()
    defer { bench.microphone.stop() }
    #expect(bench.fill { bench.microphone.condition.isPresent })
    let card = try #require(bench.card)
    let (reads, begin) = (card.reads.load(ordering: .relaxed), Instant.now())
    card.behave(.hasNothingAtOnce)
    #expect(bench.fill { bench.microphone.condition.losses == 1 })
    let halves = (Instant.now() - begin).seconds * 200
    let more = Double(card.reads.load(ordering: .relaxed) - reads)
    #expect(more <= halves + 10, "\(more) \(halves)")
    #expect(bench.microphone.condition.isHung)
  }

  @Test func `a card that delivers nothing is given up, and its driver does answer`() throws {
    let bench = try Bench()
    defer { bench.microphone.stop() }
    #expect(bench.fill { bench.microphone.condition.isPresent })
    bench.card?.behave(.isQuiet)
    #expect(bench.fill { !bench.microphone.condition.isPresent })
    let error = try #require(bench.losses.first)
    guard case .stalled = error else { throw error }
    // It is there, until another one delivers in its place.
    #expect(bench.microphone.condition.isHung)
    #expect(bench.fill { bench.microphone.condition.isPresent })
    #expect(!bench.microphone.condition.isHung)
  }

  @Test func `a driver that hangs in reading is left behind, and the line goes on in silence`() throws {
    let bench = try Bench()
    defer { bench.microphone.stop() }
    #expect(bench.fill { bench.microphone.condition.isPresent })
    let first = try #require(bench.card)
    first.behave(.hangs)
    let silent = bench.microphone.condition.silentSamples
    #expect(bench.fill { !bench.microphone.condition.isPresent })
    let error = try #require(bench.losses.first)
    guard case .hung("hw:CARD=Scripted", let milliseconds) = error else { throw error }
    #expect(milliseconds >= Int(Microphone.hangLimit.milliseconds))
    // Nearly all of that time was silence on the line.
    #expect(bench.microphone.condition.silentSamples - silent > 2 * 48_000)
    #expect(!first.hasClosed)
    // Another card takes its place while it still hangs, and it is closed once it answers.
    #expect(bench.fill { bench.cardCount > 1 && bench.microphone.condition.isPresent })
    first.repaired.fire()
    #expect(bench.fill { first.hasClosed })
    #expect(bench.microphone.condition.isPresent)
  }

  @Test func `a driver that hangs in closing delays neither the line nor the next card`() throws {
    let bench = try Bench()
    defer { bench.microphone.stop() }
    #expect(bench.fill { bench.microphone.condition.isPresent })
    let first = try #require(bench.card)
    first.hangsInClosing.store(true, ordering: .relaxed)
    first.behave(.isUnplugged)
    #expect(bench.fill { bench.cardCount > 1 && bench.microphone.condition.isPresent })
    #expect(bench.losses == [.disconnected("hw:CARD=Scripted")])
    #expect(!bench.microphone.condition.isHung)
    first.repaired.fire()
    #expect(bench.fill { first.hasClosed })
  }

  @Test func `drivers that hang one after the other are left behind three times at most`() throws {
    let bench = try Bench()
    defer {
      bench.microphone.stop()
      for card in bench.cards.withLock({ $0 }) { card.repaired.fire() }
    }
    for round in 1...3 {
      #expect(bench.fill { bench.cardCount == round && bench.microphone.condition.isPresent })
      bench.card?.hangsInClosing.store(true, ordering: .relaxed)
      bench.card?.behave(.isUnplugged)
      #expect(bench.fill { !bench.microphone.condition.isPresent })
    }
    // Twice the time after which the search would begin.
    let until = Instant.now() + Microphone.closingTime + MicrophoneSearch.interval * 2
    #expect(bench.fill { Instant.now() > until })
    #expect(bench.cardCount == 3)
    bench.cards.withLock { $0[0] }.repaired.fire()
    #expect(bench.fill { bench.cardCount == 4 })
  }

  @Test func `a microphone ends though its driver hangs`() throws {
    let bench = try Bench()
    #expect(bench.fill { bench.microphone.condition.isPresent })
    let card = try #require(bench.card)
    card.behave(.hangs)
    #expect(bench.fill { card.isHanging.load(ordering: .acquiring) })
    let begin = Instant.now()
    bench.microphone.end()
    #expect(Instant.now() - begin < Duration(seconds: 20))
    #expect(!bench.microphone.hasOpenCard && !card.hasClosed)
    card.repaired.fire()
    let deadline = Instant.now() + Duration(seconds: 60)
    while !card.hasClosed, .now() < deadline { usleep(1000) }
    #expect(card.hasClosed)
  }

  @Test func `what was found is told with its period, and where its times come from`() throws {
    let bench = try Bench()
    defer { bench.microphone.stop() }
    #expect(bench.fill { !bench.events.isEmpty })
    #expect(bench.events.map(\.description) == ["microphone: scripted, 48000 Hz mono, every 10 ms"])
    let condition = bench.microphone.condition
    #expect(condition.times == .driver && condition.period == .milliseconds(10) && condition.unstampedBlocks == 0)
    let bad = SoundEvent.found(
      name: "x", format: SoundFormat(rate: 48_000, channels: 2), period: .milliseconds(21), times: .wakeUp)
    #expect(bad.description.hasPrefix("microphone: x, 48000 Hz stereo, every 21 ms; its driver has no time stamps"))
  }

  @Test func `digital silence is told after a minute, and so is its end`() {
    var silence = DigitalSilence(rate: 48_000)
    func note(_ sample: Int16, seconds: Int, isPresent: Bool = true) -> [DigitalSilence.Change] {
      var changes: [DigitalSilence.Change] = []
      let frame = [Int16](repeating: 0, count: 959) + [sample]
      for _ in 0..<(50 * seconds) {
        frame.withUnsafeBufferPointer { frame in
          if let change = silence.note(frame, count: 960, isPresent: isPresent) { changes.append(change) }
        }
      }
      return changes
    }
    #expect(note(0, seconds: 59).isEmpty && silence.seconds == 59)
    #expect(note(-1, seconds: 2) == [.began] && silence.seconds == 61)
    #expect(note(1, seconds: 10).isEmpty)
    #expect(note(2, seconds: 1) == [.ended(seconds: 71)] && silence.seconds == 0)
    // A word in between begins the minute anew.
    #expect(note(0, seconds: 59).isEmpty && note(500, seconds: 1).isEmpty && note(0, seconds: 59).isEmpty)
    // A microphone that is away is another matter.
    #expect(note(0, seconds: 120, isPresent: false).isEmpty && silence.seconds == 0)
    #expect(note(0, seconds: 60) == [.began])
    #expect(note(0, seconds: 1, isPresent: false).isEmpty && note(2, seconds: 1).isEmpty)
  }
}
