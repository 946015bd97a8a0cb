import Adaptors
import Synchronization
import Testing

/// The buffers of slow subscribers.
@Suite struct BroadcastTests {
  private final class Reader: Sendable {
    let isDone = Atomic(false)
  }

  @Test func `bytes bound what waits, and the newest value always has room`() async {
    let broadcast = Broadcast<Int>(byteLimit: 35) { $0 }
    let stream = broadcast.stream(.newest(64))
    let all = broadcast.stream(.all)
    for value in [10, 11, 12, 13] { broadcast.send(value) }
    // 36 bytes are too many: two values wait, and one gives way for each that comes.
    #expect(broadcast.dropped == 2)
    broadcast.send(100)
    #expect(broadcast.dropped == 4)
    broadcast.finish()
    var (waited, complete): ([Int], [Int]) = ([], [])
    for await value in stream { waited.append(value) }
    for await value in all { complete.append(value) }
    #expect(waited == [100] && complete == [10, 11, 12, 13, 100])
  }

  @Test func `subscribers come and go`() async {
    let broadcast = Broadcast<Int>()
    var kept: AsyncStream<Int>? = broadcast.stream()
    _ = broadcast.stream()
    #expect(broadcast.subscriberCount == 1)
    let stream = broadcast.stream(.newest(2))
    kept = nil
    #expect(kept == nil && broadcast.subscriberCount == 1)
    let reader = Reader()
    let reading = Task { () -> [Int] in
      var values: [Int] = []
      for await value in stream {
        values.append(value)
        if values.count == 3 { break }
      }
      reader.isDone.store(true, ordering: .relaxed)
      return values
    }
    // A reader that waits gets each value; one that is slow, the newest two. It may be slow to begin, too.
    var sent = 0
    let deadline = ContinuousClock.now + .seconds(90)
    while broadcast.subscriberCount == 1, !reader.isDone.load(ordering: .relaxed), .now < deadline {
      broadcast.send(sent)
      sent += 1
      await Task.yield()
    }
    reading.cancel()
    let values = await reading.value
    #expect(values.count == 3 && values == values.sorted() && Set(values).count == 3)
    let cancelled = Task { [stream = broadcast.stream()] in
      for await _ in stream {}
      return true
    }
    cancelled.cancel()
    #expect(await cancelled.value)
    broadcast.finish()
    for await _ in broadcast.stream() { Issue.record("a value after the end") }
  }
}
