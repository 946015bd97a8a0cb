import Platform
import Sound
import Synchronization
import Testing

/// A microphone that is chosen later.
@Suite struct MicrophoneChoiceTests {
  private final class Choice: Sendable {
    private let state = Mutex<(selection: Microphone.Selection?, asked: Int)>((nil, 0))

    var asked: Int { state.withLock { $0.asked } }

    func set(_ selection: Microphone.Selection) { state.withLock { $0.selection = selection } }

    func take() -> Microphone.Selection? {
      state.withLock {
        $0.asked += 1
        return $0.selection
      }
    }
  }

  @Test func `until there is one to choose there is silence and no event, and then it is opened`() throws {
    let choice = Choice()
    let microphone = try Microphone(channels: 1) { _ in choice.take() }
    defer { microphone.stop() }
    let timeline = SoundTimeline(channels: 1, start: .now())
    func fill(until condition: () -> Bool) -> Bool {
      let deadline = Instant.now() + Duration(seconds: 60)
      while .now() < deadline {
        if condition() { return true }
        _ = microphone.fill(timeline, patience: Duration(nanoseconds: 20_000_000))
      }
      return condition()
    }
    #expect(fill { choice.asked > 1 && timeline.silentSamples > 0 })
    #expect(!microphone.condition.isPresent && microphone.takeEvents().isEmpty)
    // A name that nobody has is told, and another choice is still taken.
    choice.set(.device(try SoundDeviceName("nowhere")))
    var events: [SoundEvent] = []
    #expect(
      fill {
        events += microphone.takeEvents()
        return !events.isEmpty
      })
    #expect(events.allSatisfy { if case .lost = $0 { true } else { false } }, "\(events)")
    choice.set(.device(try SoundDeviceName("null")))
    #expect(fill { microphone.condition.isPresent })
    #expect(microphone.condition.name == "null")
  }

  @Test func `a microphone whose driver hangs is released at once`() throws {
    let gate = Choice()
    let entered = try Interrupt()
    let left = try Interrupt()
    do {
      let microphone = try Microphone(channels: 1) { _ in
        entered.fire()
        _ = left.wait(until: .now() + Duration(seconds: 60))
        return gate.take()
      }
      let timeline = SoundTimeline(channels: 1, start: .now())
      _ = microphone.fill(timeline, patience: Duration(nanoseconds: 20_000_000))
      let isSearching = !entered.wait(until: .now() + Duration(seconds: 60))
      #expect(isSearching)
    }
    // The search is still in its call.
    #expect(gate.asked == 0)
    left.fire()
  }

  @Test func `an ended microphone has closed its card, whoever holds it`() throws {
    let name = try SoundDeviceName("null")
    let microphone = try Microphone(.device(name), channels: 1)
    let timeline = SoundTimeline(channels: 1, start: .now())
    let deadline = Instant.now() + Duration(seconds: 60)
    while !microphone.condition.isPresent, .now() < deadline {
      _ = microphone.fill(timeline, patience: Duration(nanoseconds: 20_000_000))
    }
    #expect(microphone.condition.isPresent && microphone.hasOpenCard)
    microphone.end()
    #expect(!microphone.condition.isPresent && !microphone.hasOpenCard)
    #expect(!microphone.fill(timeline, patience: Duration(nanoseconds: 20_000_000)))
  }

  @Test func `a card that was lost as soon as it was open is not opened again at once`() throws {
    let choice = Choice()
    choice.set(.device(try SoundDeviceName("null")))
    let search = try MicrophoneSearch(events: EventQueue()) { _ in
      choice.take()
    } opening: { selection throws(SoundError) in
      try MicrophoneSearch.open(selection, channels: 1)
    }
    defer { search.stop() }
    let begin = Instant.now()
    for round in 0..<2 {
      search.begin(isAfterLoss: round > 0)
      var found: (any CardInput)?
      while found == nil, .now() < begin + Duration(seconds: 60) {
        search.sleep(until: .now() + Duration(nanoseconds: 5_000_000))
        found = search.take()
      }
      #expect(found?.name == "null")
    }
    #expect(Instant.now() - begin >= MicrophoneSearch.interval)
  }

  @Test func `a stopped source fills no more, and a stopped microphone is not searched for`() throws {
    let choice = Choice()
    let timeline = SoundTimeline(channels: 1, start: .now())
    for source in [try ToneSource(), try Microphone(channels: 1) { _ in choice.take() }] as [any SoundSource] {
      source.stop()
      #expect(!source.fill(timeline, patience: Duration(nanoseconds: 20_000_000)))
    }
    #expect(choice.asked == 0 && timeline.silentSamples == 0)
  }
}
