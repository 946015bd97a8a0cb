import Foundation
import Platform
import Sound
import Streaming
import Synchronization
import TestSupport
import Testing

/// The distribution of sound to listeners.
@Suite struct MP3StageTests {
  private let stage = MP3Stage(channels: 1)

  /// Offers frames of a loud sine until `isEnough`.
  private func offer(_ stage: MP3Stage? = nil, until isEnough: () async throws -> Bool) async throws -> Bool {
    let stage = stage ?? self.stage
    let deadline = ContinuousClock.now + .seconds(300)
    while .now < deadline {
      if try await isEnough() { return true }
      offerOne(stage)
      try await Task.sleep(for: .milliseconds(1))
    }
    return false
  }

  private func offerOne(_ stage: MP3Stage, amplitude: Double = 8000) {
    let frame = (0..<960).map { Int16(amplitude * sin(2 * .pi * 1000 * Double($0) / 48_000)) }
    frame.withUnsafeBufferPointer { stage.offer($0) }
  }

  private func soon(_ seconds: Double = 600) -> Instant { .now() + Duration(seconds: seconds) }

  /// The frames of MP3 at 64 kbit/s; nil for bytes that are no whole frames.
  private func frames(_ bytes: [UInt8]) -> [[UInt8]]? {
    guard bytes.count.isMultiple(of: 192) else { return nil }
    let frames = stride(from: 0, to: bytes.count, by: 192).map { Array(bytes[$0..<$0 + 192]) }
    return frames.allSatisfy { $0[0] == 0xff && $0[1] == 0xfb } ? frames : nil
  }

  private func heardNext(_ listener: UInt64) async throws -> [[UInt8]] {
    let sound = try await stage.next(for: listener, until: soon())
    return try #require(frames(sound.bytes))
  }

  @Test func `nothing is encoded while nobody listens`() throws {
    for _ in 0..<100 { offerOne(stage) }
    #expect(!stage.isWanted && !stage.isRunning && stage.statistics == MP3Statistics())
    let listener = try stage.admit("somebody")
    #expect(stage.isWanted && stage.isRunning)
    stage.dismiss(listener)
    #expect(!stage.isWanted)
  }

  @Test func `two listeners get the same bytes, which are encoded once`() async throws {
    let both = [try stage.admit("one"), try stage.admit("two")]
    #expect(try await offer { stage.statistics.encoded >= 20 })
    var heard: [[[UInt8]]] = [[], []]
    var statistics = stage.statistics
    // The thread goes on with the samples that it has got, so that frames may come after these.
    while heard.contains(where: { $0.count < statistics.encoded }) {
      for (place, listener) in both.enumerated() where heard[place].count < statistics.encoded {
        let sound = try await stage.next(for: listener, until: soon())
        stage.noteSent(sound.frames, bytes: sound.bytes.count, to: listener)
        let own = try #require(frames(sound.bytes))
        #expect(own.count == sound.frames)
        heard[place] += own
      }
      statistics = stage.statistics
    }
    #expect(heard[0].count >= 20 && heard[0] == heard[1])
    // No two frames of a sine are the same, so that it is no silence.
    #expect(Set(heard[0].suffix(10)).count > 1)
    #expect(statistics.encoded == heard[0].count && statistics.listeners.map(\.name) == ["one", "two"])
    #expect(statistics.listeners.map(\.units) == heard.map(\.count))
    #expect(statistics.listeners.map(\.bytes) == heard.map { $0.count * 192 })
  }

  @Test func `a listener that waits gets the next frame`() async throws {
    let listener = try stage.admit("listener")
    let waiting = Task { try await stage.next(for: listener, until: soon()) }
    #expect(try await offer { stage.statistics.encoded > 0 })
    let sound = try await waiting.value
    #expect(frames(sound.bytes)?.isEmpty == false)
  }

  @Test func `a slow listener loses the oldest whole frames, counted, and holds nobody up`() async throws {
    let slow = try stage.admit("slow")
    let quick = try stage.admit("quick")
    var heard: [[UInt8]] = []
    let enough = MP3Stage.waitingLimit * 2
    let isDone = try await offer {
      while heard.count < stage.statistics.encoded { heard += try await heardNext(quick) }
      return heard.count >= enough
    }
    #expect(isDone)
    let encoded = stage.statistics.encoded
    let late = try await heardNext(slow)
    #expect(late.count == MP3Stage.waitingLimit)
    // The thread may go on with samples that it has got: the slow one has room for these, and loses no more.
    let figures = stage.statistics
    let lost = figures.listeners.map(\.lost)
    try #require(lost.count == 2)
    let end = lost[0] + late.count
    try #require(lost[1] == 0 && encoded <= end && end <= figures.encoded, "\(encoded), \(lost), \(figures.encoded)")
    // Those behind the lost ones that the quick one got, in order.
    while heard.count < end { heard += try await heardNext(quick) }
    #expect(Array(heard[lost[0]..<end]) == late)
  }

  @Test func `without sound a wait ends in time, and with the listener, the task or the stage`() async throws {
    let listener = try stage.admit("listener")
    await #expect(throws: LiveViewerError.late(.sound)) { try await stage.next(for: listener, until: soon(0.1)) }
    let given = Task { try await stage.next(for: listener, until: soon()) }
    given.cancel()
    await #expect(throws: LiveViewerError.ended) { try await given.value }
    let dismissed = try stage.admit("dismissed")
    let left = Task { try await stage.next(for: dismissed, until: soon()) }
    let closed = Task { try await stage.next(for: listener, until: soon()) }
    // Whether they wait already or not, the end is the same.
    stage.dismiss(dismissed)
    await #expect(throws: LiveViewerError.ended) { try await left.value }
    stage.close()
    await #expect(throws: LiveViewerError.ended) { try await closed.value }
    #expect(throws: LiveViewerError.ended) { try stage.admit("late") }
    #expect(!stage.isWanted)
    #expect(await comesTrue { !stage.isRunning })
  }

  @Test func `the thread ends some time after the last listener has left, and another one begins anew`() async throws {
    let stage = MP3Stage(channels: 1, rest: Duration(seconds: 0.1))
    for round in 1...2 {
      let before = stage.statistics.encoded
      let listener = try stage.admit("listener \(round)")
      #expect(try await offer(stage) { stage.statistics.encoded > before })
      stage.dismiss(listener)
      #expect(await comesTrue { !stage.isRunning })
    }
    #expect(stage.statistics.listeners.isEmpty)
  }

  @Test func `who comes after a pause hears nothing of what was said before`() async throws {
    let first = try stage.admit("first")
    #expect(try await offer { stage.statistics.encoded >= 5 })
    stage.dismiss(first)
    let second = try stage.admit("second")
    let before = stage.statistics.encoded
    let isDone = await comesTrue {
      offerOne(stage, amplitude: 0)
      return stage.statistics.encoded >= before + 5
    }
    #expect(isDone)
    let heard = try await heardNext(second)
    // An encoder that has had nothing but silence makes one frame after another of it, all with the same data.
    #expect(Set(heard.map { Array($0[4...]) }).count == 1, "\(heard.map { $0.prefix(40) })")
  }

  @Test func `samples that the encoder does not take in time make room for newer ones, counted`() throws {
    let ring = SampleRing(frameSamples: 2)
    ring.open(generation: 7)
    for number in 0..<Int16(SampleRing.capacity + 3) { [number, number].withUnsafeBufferPointer { ring.put($0) } }
    #expect(ring.droppedFrames == 3)
    let frame = UnsafeMutableBufferPointer<Int16>.allocate(capacity: 2)
    defer { frame.deallocate() }
    var taken: [Int16] = []
    while case .frame(let generation) = ring.take(frame, until: .now()) {
      taken.append(frame[1])
      #expect(generation == 7)
    }
    #expect(taken == Array(3..<Int16(SampleRing.capacity + 3)))
    // A new generation gets no frame of the former one.
    [5, 5].withUnsafeBufferPointer { ring.put($0) }
    ring.open(generation: 8)
    guard case .nothing = ring.take(frame, until: .now()) else { return #expect(Bool(false), "it is forgotten") }
    ring.pause()
    [7, 7].withUnsafeBufferPointer { ring.put($0) }
    guard case .nothing = ring.take(frame, until: .now()) else { return #expect(Bool(false), "it takes nothing") }
  }

  @Test func `an encoder that cannot be made ends its listeners, and the next one tries again`() async throws {
    let attempts = Counter()
    let stage = MP3Stage(channels: 1) { channels throws(MP3Failure) in
      guard attempts.value.add(1, ordering: .relaxed).newValue > 1 else {
        throw MP3Failure(call: "lame_init", code: -2)
      }
      return MP3Stage.EncoderBox(try MP3Encoder(channels: channels))
    }
    let listener = try stage.admit("listener")
    let waiting = Task { try await stage.next(for: listener, until: soon()) }
    #expect(try await offer(stage) { !stage.isRunning })
    // The wait may have begun after the end.
    await #expect(throws: (any Error).self) { try await waiting.value }
    #expect(stage.statistics.listeners.isEmpty)
    _ = try stage.admit("another")
    #expect(try await offer(stage) { stage.statistics.encoded > 0 })
  }

  private final class Counter: Sendable {
    let value = Atomic(0)
  }

  @Test func `there is a limit of listeners, and room again once one has gone`() throws {
    let listeners = try (0..<MP3Stage.listenerLimit).map { try stage.admit("\($0)") }
    #expect(throws: LiveViewerError.tooMany(.sound, limit: MP3Stage.listenerLimit)) { try stage.admit("one more") }
    stage.dismiss(listeners[3])
    _ = try stage.admit("another")
  }
}
